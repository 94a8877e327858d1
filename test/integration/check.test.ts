import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { changingFile } from '../support/changing-file.ts';
import { everythingFixture, modernFixture, root } from '../support/gateway.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { isAtLeast } from '../support/log-levels.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';

const [file = '', ...words] = process.env['GATEWAY_PROGRAM']?.split(' ') ?? [process.execPath, `${root}dist/main.js`];

/** Runs `check`, with nothing of a Redis that this environment may have. */
async function check(...args: readonly string[]) {
  const child = spawn(file, [...words, 'check', ...args], { env: { ...process.env, REDIS_URL: '' } });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { stdout, stderr, code };
}

const configOf = async (mcpServers: object, options: object = {}) =>
  (await changingFile('gangway.json', JSON.stringify({ ...options, mcpServers }))).path;

const childAt = (name: string) => ({ command: process.execPath, args: [`${root}test/fixtures/children/${name}.mjs`] });

describe('three broken servers: check says what to do', () => {
  const crashing = { command: process.execPath, args: ['-e', 'console.error("no database"); process.exit(3)'] };
  const waits = "console.error('waiting for the database'); setInterval(() => {}, 1_000)";
  const hanging = {
    command: process.execPath,
    args: ['-e', waits],
    timeouts: { start: '300ms' },
  };
  const servers = { wrong: { command: 'no-such-command-anywhere' }, crashing, hanging };

  it('as text', async () => {
    const { stdout, code } = await check('--config', await configOf(servers));
    const [wrong = '', crash = '', hang = ''] = stdout.split(/^FAIL {2}/m).slice(1);
    expect(wrong).toMatch(/^wrong: .*not found in PATH.*Install it, or write its full path/);
    expect(crash).toMatch(
      /^crashing: No answer arrived\..*code 3.*\n +\| no database\n +Correct the cause .* run the command manually.*--env/,
    );
    expect(hang).toMatch(
      /^hanging: The server did not answer .* within 300 ms.*\n +\| waiting for the database\n +A STDIO server must answer on stdout.*--defaults.timeouts.start/,
    );
    expect(code).toBe(1);
  });

  it('as JSON', async () => {
    const { stdout, code } = await check('--json', '--config', await configOf(servers));
    expect(code).toBe(1);
    const failed = { ok: false, why: expect.any(String), output: [] };
    expect(JSON.parse(stdout)).toEqual({
      ...{ version: expect.any(String), ok: false, redis: null, policies: [], advice: [] },
      servers: [
        { ...failed, name: 'wrong', help: null },
        { ...failed, name: 'crashing', help: expect.stringContaining('manually'), output: ['no database'] },
        {
          ...failed,
          ...{
            name: 'hanging',
            help: expect.stringContaining('--defaults.timeouts.start'),
            output: ['waiting for the database'],
          },
        },
      ],
    });
  });
});

it.each([
  ['/mpc?key=s3cret', 404, [], ['/mcp', '/mpc/mcp', '/sse']],
  ['/alpha/', 405, ['--transport', 'http'], ['/mcp', '/alpha/mcp']],
  ['/mcp', 404, ['--transport', 'http'], []],
  ['/', 404, ['--transport', 'sse'], ['/sse']],
])(
  'names the path %s that a server does not know (%d, %j), and the likely ones',
  async (path, status, args, likely) => {
    const server = createServer((_, outgoing) => outgoing.writeHead(status).end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { stdout, code } = await check(...args, origin + path);
    const { pathname } = new URL(path, origin);
    const tries = likely.length === 0 ? '' : `try ${likely.map((each) => origin + each).join(', ')}, or `;
    expect(stdout).toContain(
      `${origin} has no MCP server at the path ${pathname} (${status}). Correct the URL: ${tries}look for the path in the documentation of the server.\n`,
    );
    expect([stdout.includes('s3cret'), code]).toEqual([false, 1]);
  },
);

it('names what a server offers, of both eras, as JSON', async () => {
  const [command, ...args] = everythingFixture;
  const [program, ...modernArgs] = modernFixture;
  const path = await configOf({
    old: { command, args, hibernateAfter: '1m' },
    modern: { command: program, args: [...modernArgs, '--dual'] },
  });
  const { stdout, code } = await check('--config', path, '--json');
  const { servers, ok, advice } = JSON.parse(stdout);
  expect([code, ok]).toEqual([0, true]);
  expect(servers).toMatchObject([
    { name: 'old', ok: true, transport: 'stdio', eras: ['legacy'], revisions: ['2025-11-25'] },
    { name: 'modern', ok: true, eras: ['modern', 'legacy'], implementation: 'modern-fixture 1.0.0' },
  ]);
  expect(servers[0].tools).toContain('echo');
  expect(servers[0].declares).toEqual(expect.arrayContaining(['tools', 'tasks']));
  expect(servers[0].resources.every((uri: string) => uri.includes(':'))).toBe(true);
  expect(advice).toContainEqual({ about: 'old', text: expect.stringContaining('declares tasks') });
});

it('servers are tried at once, and told of in the order of the configuration', async () => {
  const marker = (await changingFile('started', '')).path;
  // The first one answers only once the second one has been started.
  const first = `const { readFileSync } = require('node:fs');
    const look = setInterval(() => {
      if (readFileSync(process.argv[1], 'utf8') === '') return;
      clearInterval(look);
      import(process.argv[2]);
    }, 10);`;
  const second = `require('node:fs').writeFileSync(process.argv[1], 'here'); import(process.argv[2]);`;
  const entry = (code: string) => ({
    command: process.execPath,
    args: ['-e', code, marker, `${root}test/fixtures/children/mini-server.mjs`],
  });
  const { stdout, stderr, code } = await check('--config', await configOf({ b: entry(first), a: entry(second) }));
  expect([...stdout.matchAll(/^(?:OK|FAIL) +(\w):/gm)].map(([, name]) => name)).toEqual(['b', 'a']);
  expect([code, stderr]).toEqual([0, '']);
});

it('what a server says of itself cannot write to the terminal', async () => {
  const says = `process.stdin.on('data', (line) => {
    const { id, method } = JSON.parse(line.toString().split('\\n')[0]);
    if (method !== 'initialize') return;
    const serverInfo = { name: 'evil\\u001b[2J', version: '\\u202e1' };
    console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo } }));
  })`;
  const { stdout } = await check('--era', 'legacy', '--', process.execPath, '-e', says);
  expect(stdout).toContain('evil\\x1b[2J');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
  expect(stdout).not.toMatch(/[\u001b\u202e]/);
});

describe('Redis', () => {
  const mini = ['--', process.execPath, `${root}test/fixtures/children/mini-server.mjs`];

  it('is shown with its version, latency and policy; an evicting one and a shared prefix are noted', async () => {
    const redis = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lru'] });
    await startLocalGateway({ args: ['--redis', redis.url, '--cluster.prefix', 'mine'], command: mini.slice(1) });
    const other = await check('--json', '--redis', redis.url, ...mini);
    expect(other.code).toBe(0);
    expect(JSON.parse(other.stdout).redis).toEqual({
      ...{ ok: true, version: expect.stringMatching(/^\d+\.\d+/), latencyMs: expect.any(Number) },
      ...{ memoryPolicy: 'allkeys-lru', instances: 0, link: 'local', unreachable: [] },
    });
    const same = await check('--redis', redis.url, '--cluster.prefix', 'mine', ...mini);
    expect(same.stdout).toMatch(
      /^OK {4}Redis: [\d.]+, answers in [\d.]+ ms, maxmemory-policy allkeys-lru, 1 instance$/m,
    );
    expect(same.stdout).toMatch(/^NOTE {2}--redis: .*allkeys-lru.*noeviction/m);
    expect(same.stdout).toMatch(/^NOTE {2}--cluster.prefix: 1 running instance uses /m);
  });

  it('tells of running instances that cannot be reached from here, and of no others', async () => {
    const redis = await startRedis();
    const port = await findFreePort();
    const link = ['--cluster.link.host', '127.0.0.1', '--cluster.link.port', `${port}`];
    const away = ['--cluster.link.address', '127.0.0.1:9'];
    await startLocalGateway({ args: ['--redis', redis.url], command: mini.slice(1) });
    expect(JSON.parse((await check('--json', '--redis', redis.url, ...mini)).stdout).redis).toMatchObject({
      ...{ instances: 1, unreachable: [] },
    });
    const env = { XDG_RUNTIME_DIR: '/nowhere' };
    await startLocalGateway({ args: ['--redis', redis.url, ...link, ...away], command: mini.slice(1), env });
    const { stdout, code } = await check('--redis', redis.url, ...mini);
    expect(stdout).toMatch(
      /^NOTE {2}--cluster.link.host: A running instance cannot be reached .*tcp:127\.0\.0\.1:9\./m,
    );
    expect(code).toBe(0);
  });

  it('[F09] that throws sessions away when it is full is warned of at the start of a gateway too, no other is', async () => {
    const redis = await startRedis({ args: ['--maxmemory-policy', 'volatile-lru'] });
    await using monitor = await redis.monitor();
    const warnings = async () => {
      const before = monitor.commands.items.length;
      const gateway = await startLocalGateway({ args: ['--redis', redis.url], command: mini.slice(1) });
      // Every connection begins with INFO; the one that looked for the policy is closed again.
      const isClosed = async (): Promise<boolean> => {
        const open = await redis.cli('CLIENT', 'LIST');
        const asked = monitor.commands.items.slice(before).filter(({ args }) => args[0]?.toLowerCase() === 'info');
        return asked.some(({ from }) => !open.includes(from));
      };
      await waitFor(isClosed, { what: 'the look to end' });
      await gateway.stop();
      return gateway.logs().filter((line) => isAtLeast(line, 'warn'));
    };
    expect(await warnings()).toMatchObject([{ detail: expect.stringContaining('volatile-lru') }]);
    await redis.cli('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    expect(await warnings()).toEqual([]);
  });

  it.each<[string, (url: string) => string, RegExp]>([
    ['that is not there', () => 'redis://127.0.0.1:1', /^FAIL {2}Redis: .*nothing listens/m],
    ['that wants another password', (url) => url.replace('//', '//:canary-wrong@'), /^FAIL {2}Redis: .*password/m],
  ])('%s is a fault', async (_, urlOf, said) => {
    const redis = await startRedis({ args: ['--requirepass', 'right'] });
    const { stdout, stderr, code } = await check('--redis', urlOf(redis.url), ...mini);
    expect(stdout).toMatch(said);
    expect(stdout + stderr).not.toContain('canary-wrong');
    expect(code).toBe(1);
  });
});

it('notes what has no effect, and a public address without authentication', async () => {
  const args = ['--host', '0.0.0.0', '--limits.user.streams', '9', '--allow-origin', '*'];
  const path = await configOf({ mini: childAt('mini-server') });
  const { stdout, code } = await check(...args, '--config', path);
  expect(code).toBe(0);
  const notes = stdout.split('\n').filter((line) => line.startsWith('NOTE'));
  expect(notes).toEqual([
    expect.stringMatching(/^NOTE {2}configuration: .* have no effect: --limits.user.streams/),
    expect.stringMatching(/^NOTE {2}--host: .*no authentication/),
    expect.stringMatching(/^NOTE {2}--allow-origin: With \*/),
  ]);
});

it('--json is for check alone', async () => {
  const child = spawn(file, [...words, '--json', '--', 'x']);
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect(stderr).toContain('--json: is only for mcp-gangway check');
  expect(code).toBe(2);
});
