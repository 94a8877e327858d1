import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { waitFor } from '../support/wait-for.ts';

/** What people see of a server that does not do what it should. */

const chatty = (...args: readonly string[]) => [process.execPath, `${root}test/fixtures/children/chatty.mjs`, ...args];
const notice = 'the server writes lines to stdout that are not MCP messages; the gateway drops them';

it('[P-01] a banner on stdout is told once for each session, as the server wrote it', async () => {
  const gateway = await startLocalGateway({ command: chatty('Welcome to Chatty 1.0'), args: ['--era', 'legacy'] });
  for (let sessions = 0; sessions < 3; sessions++) await initialize(gateway.url);
  const told = () => gateway.logs().filter(({ msg }) => msg === notice);
  await waitFor(() => told().length === 3, { what: 'the notices' });
  await gateway.stop();
  const notices = gateway.logs().filter(({ msg }) => msg === notice);
  for (const each of notices) expect(each).toMatchObject({ level: 'warn', line: 'Welcome to Chatty 1.0' });
  expect(new Set(notices.map(({ session }) => session)).size).toBe(3);
  expect(told()[0]?.['help']).toContain('to stderr');
});

it('[P-01] noise that may hold what a client said is told without its text in a log that is kept', async () => {
  const gateway = await startLocalGateway({ command: chatty(), args: ['--era', 'legacy'] });
  const session = await initialize(gateway.url);
  await session.request('x', { noise: 'the words of a client' });
  await session.request('x', { noise: 'more of them' });
  await gateway.stop();
  const told = gateway.logs().filter(({ msg }) => msg === notice);
  expect(told).toEqual([expect.objectContaining({ help: expect.stringContaining('mcp-gangway check') })]);
  expect(gateway.stderr()).not.toContain('the words of a client');
});

const check = async (...args: readonly string[]) => {
  const child = spawn(process.execPath, [`${root}dist/main.js`, 'check', ...args], {
    env: { ...process.env, REDIS_URL: '' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return { output, code };
};

it('[P-01] check shows the first line of the noise', async () => {
  const { output, code } = await check('--', ...chatty('Welcome to Chatty 1.0'));
  expect(code).toBe(0);
  expect(output).toMatch(/^NOTE .*stdout that are not MCP messages.* The first line: "Welcome to Chatty 1\.0"/m);
});

it('[P-01] check shows the menu of a program that waits for a person', async () => {
  const menu = 'console.log("1) Start\\n2) Quit"); process.stdin.resume(); setInterval(() => {}, 1e3)';
  const { output, code } = await check('--defaults.timeouts.start', '3s', '--', process.execPath, '-e', menu);
  expect(code).toBe(1);
  expect(output).toMatch(/^FAIL .*did not answer.*\n +\| stdout: 1\) Start\n +\| stdout: 2\) Quit\n/m);
});

it('[P-02] a terminal shows what a server wrote before it crashed in use', async () => {
  const words = [process.execPath, `${root}dist/main.js`, '--port', '0', '--admin-port', '0', '--era', 'legacy', '--'];
  const command = [...words, ...chatty()].map((word) => `'${word}'`).join(' ');
  // util-linux's script gives the gateway a terminal of its own.
  const terminal = spawn('script', ['-qfec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void terminal.kill('SIGTERM'));
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (chunk: string) => (shown += chunk));
  const urlIn = (): string | undefined => /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(shown)?.[0];
  await waitFor(() => urlIn() !== undefined, { what: 'the URL', deadlineMs: 20_000 });
  const session = await initialize(urlIn() ?? '');
  await session.request('x', { dies: 'fatal: licence expired' });
  await waitFor(() => shown.includes('| fatal: licence expired'), { what: 'the last line of the server' });
  expect(shown).toMatch(/server ended[^\n]*\n {4}\| fatal: licence expired/);
  terminal.stdin.write('\u0003');
  await once(terminal, 'exit');
});
