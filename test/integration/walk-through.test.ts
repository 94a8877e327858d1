import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { everythingReference, root, startGateway } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';

/** What a new user pastes from README.md and docs/tutorial.md, run as it stands there, and compared with the output there. */

const run = promisify(execFile);

interface Block {
  readonly language: string;
  readonly text: string;
}

/** A command of a `console` block and the output that the page shows for it. */
interface Step {
  readonly command: string;
  readonly shown: string;
}

function blocksOf(page: string): Block[] {
  const text = readFileSync(`${root}${page}`, 'utf8');
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', block = '']) => ({
    language,
    text: block,
  }));
}

/** A line that begins with `$ ` is a command, which goes on in indented lines; everything else is output. */
function stepsOf({ language, text }: Block): Step[] {
  if (language === 'sh') return [{ command: text, shown: '' }];
  if (language !== 'console') return [];
  return [...text.matchAll(/^\$ (.*\n(?: {4}.*\n)*)((?:(?!\$ ).*\n)*)/gm)].map(([, command = '', shown = '']) => ({
    command,
    shown,
  }));
}

/**
 * Runs the commands one after the other in one shell. After each, the number of server processes is in `counts`. Their
 * parent is the gateway's starter.
 */
async function outputsOf(commands: readonly string[], gatewayPid: number, counts: number[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-walk-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const end = '@@ end of a command @@\n';
  const count = `printf '@@ %s\\n' "$(pgrep -P "$(pgrep -d , -P ${gatewayPid})" | wc -l)"\n`;
  const script = commands.map((command) => `${command}${count}printf '%s\\n' '${end.trim()}'\n`).join('');
  const { stdout } = await run('bash', ['-c', script], { cwd: folder, timeout: 50_000 });
  return stdout
    .split(end)
    .slice(0, -1)
    .map((output) =>
      output.replace(/@@ +(\d+)\n$/, (_, processes) => {
        counts.push(Number(processes));
        return '';
      }),
    );
}

const withoutOmitted = (output: string): string =>
  output.replaceAll('\r', '').replace(/^(?:Date|Connection|Keep-Alive|): .*\n/gm, '');

/** The shown output as a pattern: ids, sizes and ports differ each time, and `…` stands for the rest of a line or a part of it. */
function patternOf(shown: string): RegExp {
  const pattern = shown
    .trim()
    .replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    .replace(/…/g, '.*')
    .replace(/^id: \d.*?(~\d+)?$/gm, (_, requests = '') => `id: \\d+\\.\\d+-\\d+${requests}`)
    .replace(/^(mcp-session-id: ).*$/gm, '$1[\\w-]{43}')
    .replace(/^(content-length: )[1-9]\d*$/gm, '$1\\d+')
    .replace(/\b\d+ ms$/gm, '\\d+ ms')
    .replace(/:(?:8080|9464)\//g, ':\\d+/');
  return new RegExp(`^${pattern}$`);
}

/** The messages of an event stream, in order. */
const messagesOf = (stream: string): string[] => stream.match(/^data: \{.*$/gm) ?? [];

it('docs/tutorial.md: each command does what the page shows, and the resumed stream lacks nothing', async () => {
  const [start, ...blocks] = blocksOf('docs/tutorial.md');
  expect(start?.text).toBe('npm ci && npm run demo\n');
  // A busy machine may need longer than 100 ms for an answer that the page shows as JSON.
  const gateway = await startGateway({
    command: everythingReference,
    args: ['--sse.streamAfter', '5s'],
    env: { GANGWAY_SHARE: undefined }, // as it is by default, and not as in other tests
  });
  const steps = blocks.flatMap(stepsOf);
  const commands = steps.map(({ command }) => command.replace('http://127.0.0.1:8080/mcp', gateway.url));
  const counts: number[] = [];
  const outputs = (await outputsOf(commands, gateway.pid, counts)).map(withoutOmitted);

  // The page says how many processes there are: after a call without a session, two sessions, and the end of one.
  const processesAfter = (part: string) => counts.at(commands.findIndex((command) => command.includes(part)));
  expect([processesAfter('2026-07-28'), processesAfter('session=$(curl')]).toEqual([1, 3]);
  await waitFor(async () => (await gateway.descendants()).length === 2, { what: 'the end of the process' });
  const page = readFileSync(`${root}docs/tutorial.md`, 'utf8');
  expect(page).toMatch(/keeps running for further requests.*now has three processes.*two processes remain/s);
  expect(steps.length).toBeGreaterThan(8);
  const pairs = steps.map((step, index) => ({ ...step, output: outputs[index] ?? '' }));
  const cut = pairs.findIndex(({ command }) => command.includes('| tee cut.txt'));
  const resumed = pairs.findIndex(({ command }) => command.includes('Last-Event-ID'));
  expect([cut, resumed]).not.toContain(-1);
  // How much comes before the cut is a matter of time; both parts together are not.
  const bothParts = (part: 'output' | 'shown') => [cut, resumed].flatMap((at) => messagesOf(pairs[at]?.[part] ?? ''));
  expect(bothParts('output')).toEqual(bothParts('shown'));
  for (const [index, { command, shown, output }] of pairs.entries()) {
    if (index !== cut && index !== resumed) expect(output.trim(), command).toMatch(patternOf(shown));
  }
});

it('README.md: the gateway prints what "Try it" shows, and the command in it works', async () => {
  const state = mkdtempSync(join(tmpdir(), 'gangway-state-'));
  onTestFinished(() => rmSync(state, { recursive: true, force: true }));
  const printed = blocksOf('README.md').find(({ text }) => text.startsWith('Ready:'))?.text ?? '';
  const banner = printed.replace('/home/ada/.local/state', state);
  const gateway = await startGateway({
    command: ['mcp-server-everything'],
    adminPort: await findFreePort(),
    env: {
      PATH: `${root}node_modules/.bin:${process.env['PATH']}`,
      ...{ GANGWAY_SHARE: undefined, GANGWAY_REPLAY_STORE: undefined, XDG_STATE_HOME: state },
    },
  });
  expect(gateway.stdout().trim()).toMatch(patternOf(banner));
  const [, command = ''] = /^Try it: (.*)$/m.exec(gateway.stdout()) ?? [];
  const checked = await run('sh', ['-c', command], { cwd: root });
  expect(checked.stdout).toMatch(/^OK /);
});

it('docs/authentication.md and docs/health.md show what `key` and `check` print', async () => {
  const program = [process.execPath, `${root}dist/main.js`];
  const shownBy = (page: string, command: string): string =>
    blocksOf(page)
      .flatMap(stepsOf)
      .find((step) => step.command.startsWith(command))?.shown ?? '';
  const [file = '', ...rest] = program;

  const folder = mkdtempSync(join(tmpdir(), 'gangway-walk-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const key = await run(file, [...rest, 'key', 'alice', '--add', join(folder, 'keys.json')]);
  const header = shownBy('docs/authentication.md', 'cat alice.txt');
  expect(header).not.toBe('');
  expect(key.stdout.trim()).toMatch(patternOf(header));

  const [command, ...args] = everythingReference;
  const fails = { command: 'sh', args: ['-c', "echo 'Error: no such directory: /data' >&2; exit 1"] };
  const config = join(folder, 'gangway.json');
  writeFileSync(config, JSON.stringify({ mcpServers: { everything: { command, args }, files: fails } }));
  const check = await run(file, [...rest, 'check', '--config', config]).catch((error) => error);
  const [servers = ''] = shownBy('docs/health.md', 'mcp-gangway check').split('OK    Redis');
  const [checked, summary] = check.stdout.split(/\n(?=Checked )/);
  expect(checked).toMatch(patternOf(servers));
  expect(summary).toBe('Checked 2: 1 OK, 1 failed.\n');
});

it('README.md shows how to run it on its first screen, has the test command, and is short', () => {
  const text = readFileSync(`${root}README.md`, 'utf8');
  const firstScreen = text.split('\n').slice(0, 42).join('\n');
  expect(firstScreen).toMatch(/^## Try it\n(?:(?!## ).*\n)*?```sh\ngit clone .*\ncd .*\nnpm ci && npm run demo\n```/m);
  expect(text).toMatch(/^## Develop\n\n```sh\nnpm ci && npm test\n```/m);
  const prose = text.replace(/^```.*?^```$/gms, '').replace(/^\|.*$/gm, '');
  expect(prose.split(/\s+/).length).toBeLessThan(600);
});
