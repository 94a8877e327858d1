import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { programOf } from '../../src/app/commands/banner.ts';
import { environmentNumber } from '../support/environment-number.ts';
import {
  everythingFixture,
  type Gateway,
  type GatewayOptions,
  modernFixture,
  root,
  startGateway,
} from '../support/gateway.ts';
import { initialize, open, post, type Session } from '../support/http-client.ts';
import {
  descendantsOf,
  type ProcessInfo,
  stillAlive,
  waitForDescendants,
  waitUntilGone,
} from '../support/processes.ts';
import { loadMs, waitFor, withDeadline } from '../support/wait-for.ts';
import { startRemoteServer } from './remote-server.ts';

const childAt = (name: string, ...args: string[]) => [
  process.execPath,
  `${root}test/fixtures/children/${name}.mjs`,
  ...args,
];
const mini = childAt('mini-server');
/** Starts, says something, and never reads: it does not answer initialize, and the end of its input does not end it. */
const deaf = childAt('never-reads');

const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

/** What is said to be the child of a gateway can only be its children and theirs: the tests count them. */
const start = (command: readonly string[], args: readonly string[] = [], more: GatewayOptions = {}): Promise<Gateway> =>
  startGateway({
    command,
    args: ['--timeouts.grace', '600ms', ...args],
    ...more,
  });

const toolCall = (id: number, name: string, args: object = {}, meta?: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, ...(meta && { _meta: meta }) },
});

const statusOf = async (session: Session): Promise<number[]> => {
  const answers = [await session.request('ping'), await (await session.getStream()).answer(), await session.delete()];
  return answers.map(({ status }) => status);
};

/** Waves of 20 sessions; `SESSION_WAVES=10` is the full size. */
const waves = environmentNumber('SESSION_WAVES', 1);

function tempFile(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe('sessions and their children', () => {
  test(`[R6.14] [R7.21] [R6.09] [A12] of ${20 * waves} sessions, ended by DELETE and by killed clients, no child is left`, async () => {
    const gateway = await start(mini, ['--session-idle', '10s']); // a wave of starts may take long
    const children = new Map<string, ProcessInfo>();
    const ids = new Set<string>();
    for (let wave = 0; wave < waves; wave++) {
      const clients = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const agent = new Agent({ keepAlive: true });
          return { agent, session: await initialize(gateway.url, { agent }) };
        }),
      );
      for (const child of await gateway.descendants()) children.set(`${child.pid} ${child.started}`, child);
      await Promise.all(
        clients.map(async ({ agent, session }, index) => {
          ids.add(session.id);
          if (index % 2 === 0) expect((await session.delete()).status).toBe(200);
          else await session.getStream(); // a stream that the death of its client breaks
          agent.destroy();
        }),
      );
    }
    expect([ids.size, children.size]).toEqual([20 * waves, 20 * waves]);
    await waitUntilGone([...children.values()], { deadlineMs: 40_000 });
    expect(await gateway.descendants()).toEqual([]);
  });

  test('[A12] an idle session ends with its child, but not while its client listens', async () => {
    const gateway = await start(mini, ['--session-idle', '1s']); // no less than it takes to look at the children
    const session = await initialize(gateway.url);
    const children = await gateway.descendants();
    expect(children).toHaveLength(1);
    const stream = await session.getStream();
    await new Promise((resolve) => setTimeout(resolve, 2_000)); // longer than an idle session lasts: nothing happens
    expect(await gateway.descendants()).toEqual(children);
    stream.drop();
    await waitUntilGone(children);
    expect(await statusOf(session)).toEqual([404, 404, 404]);
  });

  test('a session whose client comes back for its GET stream goes on, and no longer than that', async () => {
    const idleMs = 2_000; // no less than a busy machine takes from one stream to the next
    const gateway = await start(mini, ['--session-idle', `${idleMs}ms`, '--sse.maxAge', '100ms']);
    const session = await initialize(gateway.url);
    const until = performance.now() + 2 * idleMs;
    while (performance.now() < until) {
      const stream = await session.getStream();
      expect(stream.status).toBe(200);
      await stream.events.ended; // it ends at its greatest age, and a client opens the next one
    }
    expect((await session.request('ping')).status).toBe(200);
    await waitForDescendants(gateway.pid, 0);
  });

  test('a call that takes longer than a session may be idle is not ended, and the session lives right after it', async () => {
    const gateway = await start(everythingFixture, ['--session-idle', '1s']);
    const session = await initialize(gateway.url);
    expect(await session.callTool('slow', { ms: 2_500 })).toMatchObject({ content: [{ text: 'slept 2500 ms' }] });
    expect((await session.request('ping')).status).toBe(200);
    await waitForDescendants(gateway.pid, 0);
  });

  test('[R6.11] [A12] clients that go during initialize leave no child', async () => {
    const gateway = await start(deaf);
    const agents = [new Agent(), new Agent()];
    const answers = agents.map((agent) => post(gateway.url, initializeBody, {}, agent));
    // One has taken the process that the gateway began with, the other one has its own: both have arrived.
    const children = await waitForDescendants(gateway.pid, 2);
    for (const agent of agents) agent.destroy();
    await Promise.allSettled(answers);
    await waitUntilGone(children);
    expect(await gateway.descendants()).toEqual([]);
  });

  test('[R6.15] when a server exits, its calls are answered at once, its session is gone, and the next one works', async () => {
    const gateway = await start(everythingFixture, ['--defaults.onExit', 'end', '--sse.streamAfter', '3s']);
    const session = await initialize(gateway.url);
    const waiting = await session.send(toolCall(1, 'wait_for_cancel'));
    await waiting.nextMessage(({ method }) => method === 'notifications/message');
    const listening = await session.getStream();
    const exiting = await session.request('tools/call', { name: 'exit', arguments: { code: 3 } }, { id: 2 });

    const error = { code: -32000, data: { reason: 'server_exited' } };
    expect([exiting.status, exiting.json]).toMatchObject([502, { id: 2, error }]);
    const { status, messages } = await waiting.answer();
    expect([status, messages.at(-1)]).toMatchObject([200, { id: 1, error }]);
    await listening.events.ended;
    expect(await statusOf(session)).toEqual([404, 404, 404]);
    await waitForDescendants(gateway.pid, 0);

    const next = await initialize(gateway.url);
    expect(await next.callTool('echo', { text: 'again' })).toMatchObject({ content: [{ text: 'again' }] });
  });

  test('[A12] an error to initialize passes, without a session id, and leaves no child', async () => {
    const gateway = await start([...mini, 'refuse']);
    const { status, headers, json } = await post(gateway.url, initializeBody);
    expect([status, json]).toEqual([200, { jsonrpc: '2.0', id: 0, error: { code: -32602, message: 'Not with you' } }]);
    expect(headers).not.toHaveProperty('mcp-session-id');
    // The process that was asked for its era waits 10 s for a first client.
    await waitForDescendants(gateway.pid, 0, { deadlineMs: 20_000 });
  });

  test.each([
    ['as 504 in JSON', ['--defaults.timeouts.start', '200ms'], 504],
    ['in band on a stream that is committed', ['--defaults.timeouts.start', '300ms', '--sse.heartbeat', '50ms'], 200],
  ])('a server that does not answer initialize in time is told %s', async (_, args, expected) => {
    const gateway = await start(deaf, args);
    const { status, headers, messages } = await post(gateway.url, initializeBody);
    expect(status).toBe(expected);
    expect(headers['content-type']).toBe(expected === 200 ? 'text/event-stream' : 'application/json');
    expect(messages).toMatchObject([{ id: 0, error: { data: { reason: 'server_start_timeout' } } }]);
    await waitForDescendants(gateway.pid, 0);
  });

  test('a warm spare is used: its process is there before its client', async () => {
    const gateway = await start([...mini, '1000'], ['--warm', '1', '--log-level', 'debug']);
    await waitFor(() => gateway.logs().filter(({ stderr }) => stderr === 'up').length === 2, { what: 'two spares' });
    const before = (await gateway.descendants()).map(({ pid }) => pid);
    for (let client = 0; client < 2; client++) {
      const session = await initialize(gateway.url);
      expect(before).toContain((await session.request('x')).messages[0].result.pid);
    }
    const started = gateway.logs().filter(({ msg }) => msg === 'session started');
    expect(started).toHaveLength(2);
    for (const { startMs } of started) expect(startMs).toBeLessThan(1_000);
    await waitForDescendants(gateway.pid, 3); // and the next spare is there
  });
});

describe('the end of the gateway', () => {
  /** A gateway with a call that runs until it is cancelled, and an idle session. */
  async function startBusy(args: readonly string[] = []) {
    const gateway = await start(everythingFixture, args);
    const idle = await initialize(gateway.url);
    const idleChildren = await gateway.descendants();
    const busy = await initialize(gateway.url);
    const call = await busy.send(toolCall(1, 'wait_for_cancel', { key: 'k' }));
    await call.nextMessage(({ method }) => method === 'notifications/message');
    const children = await gateway.descendants();
    expect([idleChildren.length, children.length]).toEqual([1, 2]);
    return { gateway, idle, busy, call, idleChildren, children };
  }

  const isUnready = async ({ baseUrl }: Gateway): Promise<boolean> =>
    (await open(`${baseUrl}/readyz`, { method: 'GET' })).status === 503;

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '[R6.14] [A12] after %s it is unready, ends idle sessions, finishes calls, and exits with 0 and no child',
    async (signal) => {
      const { gateway, idle, busy, call, idleChildren, children } = await startBusy();
      expect(await isUnready(gateway)).toBe(false);
      process.kill(gateway.pid, signal);
      await waitFor(() => isUnready(gateway), { what: 'readyz to be 503' });
      expect((await open(`${gateway.baseUrl}/healthz`, { method: 'GET' })).status).toBe(200);
      const refused = await post(gateway.url, initializeBody);
      expect([refused.status, refused.headers['retry-after'], refused.json.error.data.reason]).toEqual([
        503,
        '5',
        'draining',
      ]);
      await waitUntilGone(idleChildren);
      expect((await idle.request('ping')).status).toBe(404);
      expect(await stillAlive(children)).toHaveLength(1);

      await busy.notify('notifications/cancelled', { requestId: 1 });
      await call.answer(); // by the server, or by the gateway when its time is over: a cancelled call is as good as any
      expect(await withDeadline(gateway.exited, { what: 'the exit' })).toEqual({ code: 0, signal: null });
      expect(await stillAlive(children)).toEqual([]);
    },
  );

  test('[P9] after SIGTERM a running call gets its result', async () => {
    const gateway = await start(everythingFixture);
    const session = await initialize(gateway.url);
    const call = await session.send(
      toolCall(1, 'progress', { count: 20, gapMs: 40, marker: 'm' }, { progressToken: 1 }),
    );
    await call.nextMessage(({ method }) => method === 'notifications/progress');
    process.kill(gateway.pid, 'SIGTERM');
    const { messages } = await call.answer();
    expect(messages).toHaveLength(21);
    expect(messages.at(-1)).toMatchObject({ id: 1, result: {} });
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
  });

  test('[P9] a call that never ends is answered with an error at the end of --timeouts.drain, and the exit is in time', async () => {
    const drainMs = 2_500;
    const { gateway, call, children } = await startBusy(['--timeouts.drain', `${drainMs}ms`]);
    const before = performance.now();
    process.kill(gateway.pid, 'SIGTERM');
    const { messages } = await call.answer();
    expect(messages.at(-1)).toMatchObject({ id: 1, error: { data: { reason: 'outcome_unknown' } } });
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - before).toBeLessThan(drainMs + loadMs); // far below the default
    expect(await stillAlive(children)).toEqual([]);
  });

  test('[A12] [F27] [P10] a second SIGTERM ends it at once, and no child is left', async () => {
    const { gateway, children } = await startBusy();
    process.kill(gateway.pid, 'SIGTERM');
    await waitFor(() => isUnready(gateway), { what: 'readyz to be 503' });
    process.kill(gateway.pid, 'SIGTERM');
    expect(await withDeadline(gateway.exited, { what: 'the exit' })).toEqual({ code: 1, signal: null });
    await waitUntilGone(children);
  });

  test('[A12] [P10] after kill -9 its children see the end of their input, and end', async () => {
    const { gateway, children } = await startBusy();
    process.kill(gateway.pid, 'SIGKILL');
    expect(await gateway.exited).toEqual({ code: null, signal: 'SIGKILL' });
    await waitUntilGone(children);
  });
});

describe('the program', () => {
  const [file = '', ...programArgs] = process.env['GATEWAY_PROGRAM']?.split(' ') ?? [
    process.execPath,
    `${root}dist/main.js`,
  ];

  /** Runs it to its end. */
  function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    return new Promise((resolve) => {
      execFile(file, [...programArgs, ...args], { cwd: root, timeout: 20_000 }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });
  }
  const serve = (...args: string[]) => run('--port', '0', '--admin-port', '0', ...args);

  test('prints where it is, and a line that works, on stdout, and nothing else there', async () => {
    const gateway = await start(mini);
    const lines = gateway.stdout().split('\n');
    expect(lines).toEqual([
      `Ready: ${gateway.url}  (HTTP+SSE: /sse, WebSocket: /ws)`,
      expect.stringMatching(/^Sessions: kept in memory/),
      `Try it: ${programOf(`${root}dist/main.js`, process.cwd())} check ${gateway.url}`,
      '',
    ]);
    await gateway.stop();
    expect(gateway.stdout().split('\n')).toEqual(lines);
  });

  test('a server of a file whose command is not found stands apart, with what to do', async () => {
    const servers = {
      lost: { command: 'no-such-command-of-anybody' },
      found: { command: mini[0], args: mini.slice(1) },
    };
    const gateway = await startGateway({
      args: ['--config', tempFile('c.json', JSON.stringify({ mcpServers: servers }))],
    });
    const told = gateway.stdout();
    const sections = [...told.matchAll(/^(\S.*):\n((?: .*\n)+)/gm)].map(([, title, rows = '']) => [title, rows.trim()]);
    const { 'Not ready': unready = '', ...well } = Object.fromEntries(sections);
    expect(unready).toMatch(
      /^lost +http:\/\/\S+\/lost\/mcp\n +The command of the server was not found\. .*mcp-gangway check/,
    );
    expect(Object.keys(well)).toEqual(['Ready']);
    expect(JSON.stringify(well)).not.toContain('lost');
    expect(told).toMatch(/^Check the servers: .* check --config \S*c\.json$/m);
    const endpoints = gateway.logs().filter(({ msg }) => /^endpoint/.test(String(msg)));
    expect(endpoints).toMatchObject([
      { server: 'lost', msg: 'endpoint ready, but its server is not', failure: expect.stringContaining('not found') },
      { server: 'found', msg: 'endpoint ready' },
    ]);
  });

  test('serves several servers of a file, each with sessions of its own', async () => {
    const config = tempFile(
      'servers.json',
      JSON.stringify({
        mcpServers: { one: { command: mini[0], args: mini.slice(1) }, two: { command: mini[0], args: mini.slice(1) } },
      }),
    );
    const gateway = await startGateway({ args: ['--config', config] });
    const [one, two] = ['one', 'two'].map((name) => `${gateway.baseUrl}/${name}/mcp`) as [string, string];
    expect(gateway.stdout()).toContain(one);
    expect(gateway.stdout()).toContain(two);
    const sessions = [await initialize(one), await initialize(two)] as const;
    const pids = await Promise.all(
      sessions.map(async (session) => (await session.request('x')).messages[0].result.pid),
    );
    expect(new Set(pids).size).toBe(2);
    const astray = { jsonrpc: '2.0', id: 1, method: 'ping' };
    expect((await post(two, astray, { 'Mcp-Session-Id': sessions[0].id })).status).toBe(404);
    expect((await post(one, astray, { 'Mcp-Session-Id': sessions[0].id })).status).toBe(200);
    expect((await post(`${gateway.baseUrl}/mcp`, initializeBody)).status).toBe(404);
  });

  test('exits with 2 and all faults of its configuration', async () => {
    const { code, stdout, stderr } = await run('--port', '99999', '--warm', 'x', '--no-such-option', '--', ...mini);
    expect([code, stdout]).toEqual([2, '']);
    for (const fault of ['--port: ', '--warm: ', '--no-such-option: ']) expect(stderr).toContain(fault);
  });

  test.each([
    ['does not exist', ['no-such-command-anywhere'], /no-such-command-anywhere was not found in PATH/],
    ['is a path that does not exist', ['/no/such/command'], /\/no\/such\/command does not exist/],
    ['is not executable', [`${root}package.json`], /package\.json is not executable/],
    [
      'ends at once',
      [process.execPath, '-e', 'console.error("no database"); process.exit(3)'],
      /code 3[\s\S]*no database/,
    ],
  ])('exits with 1 and the reason if the command %s', async (_, command, reason) => {
    const { code, stdout, stderr } = await serve('--', ...command);
    expect(code).toBe(1);
    expect(stderr).toMatch(reason);
    expect(stderr).toMatch(/^mcp-gangway: /m);
    if (!command.includes('-e')) expect(stdout).toBe('');
  });

  test('exits with 1 if its port is in use, and leaves no child', async () => {
    const first = await start(mini);
    const { code, stderr } = await run('--port', `${first.port}`, '--', ...mini);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Port ${first.port} on 127.0.0.1 is in use`)]);
    expect((await post(first.url, initializeBody)).status).toBe(200);
  });

  test('checks servers: OK with what was found, and 0', async () => {
    const { code, stdout } = await run('check', '--', ...everythingFixture);
    expect(stdout).toMatch(
      /^OK {4}\S+: everything-fixture 1\.0\.0, stdio, legacy era, revision 2025-11-25, \d+ tools, \d+ prompts, \d+ resources, started in \d+ ms\n( {6}(tools|prompts|resources): .+\n){3}Checked 1: 1 OK\.\n$/,
    );
    expect(code).toBe(0);
  });

  test('[R6.05] checks servers of the modern era and of both, as programs and at a URL', async () => {
    const [command, ...args] = modernFixture;
    const remote = await Promise.all(['modern', 'both', 'modern-tcp'].map((kind) => startRemoteServer(kind)));
    onTestFinished(() => Promise.all(remote.map((server) => server.stop())).then(() => undefined));
    const [modernUrl, bothUrl, modernTcp] = remote.map(({ url }) => ({ url }));
    const mcpServers = {
      modern: { command, args },
      both: { command, args: [...args, '--dual'] },
      ...{ modernUrl, bothUrl, modernTcp },
    };
    const { code, stdout } = await run('check', '--config', tempFile('servers.json', JSON.stringify({ mcpServers })));
    const found = (name: string, era: string) =>
      expect.stringMatching(
        new RegExp(`^OK {4}${name}: modern-fixture 1\\.0\\.0, ${era}, \\d+ tools, \\d+ prompts, \\d+ resources, `),
      );
    const [modern, both] = ['modern era, revision 2026-07-28', 'both eras, revisions 2026-07-28 and 2025-11-25'];
    expect(stdout.split('\n').filter((line) => /^\S/.test(line))).toEqual([
      found('modern', `stdio, ${modern}`),
      found('both', `stdio, ${both}`),
      found('modernUrl', `http, ${modern}`),
      found('bothUrl', `http, ${both}`),
      found('modernTcp', `tcp, ${modern}`),
      'Checked 5: 5 OK.',
    ]);
    expect(code).toBe(0);
  });

  test('checks servers: FAIL where the era is forced and the server speaks the other one', async () => {
    const [command, ...args] = everythingFixture;
    const [program, ...modernArgs] = modernFixture;
    const remote = await Promise.all([startRemoteServer('http'), startRemoteServer('modern')]);
    onTestFinished(() => Promise.all(remote.map((server) => server.stop())).then(() => undefined));
    const mcpServers = {
      legacy: { command, args, era: 'modern' },
      modern: { command: program, args: modernArgs, era: 'legacy' },
      legacyUrl: { url: remote[0].url, era: 'modern' },
      modernUrl: { url: remote[1].url, era: 'legacy' },
    };
    const { code, stdout } = await run('check', '--config', tempFile('servers.json', JSON.stringify({ mcpServers })));
    const supports = (name: string, era: string, forced: string): string =>
      `FAIL  ${name}: The server supports the ${era} era, but --era is ${forced}. Remove --era. `;
    expect(code).toBe(1);
    expect(stdout.split('\n')).toEqual([
      expect.stringContaining(supports('legacy', 'legacy', 'modern')),
      expect.stringContaining(supports('modern', 'modern', 'legacy')),
      expect.stringContaining(supports('legacyUrl', 'legacy', 'modern')),
      expect.stringContaining(supports('modernUrl', 'modern', 'legacy')),
      'Checked 4: 0 OK, 4 failed.',
      '',
    ]);
    const start = await run('--era', 'modern', remote[0].url);
    expect([start.code, start.stderr]).toEqual([1, expect.stringContaining('Remove --era')]);
  });

  test('checks filters: a note for each pattern or name that matches nothing, in servers and views', async () => {
    const [command, ...args] = everythingFixture;
    const file = {
      mcpServers: { every: { command, args, allowTools: ['echo', 'add_nubers'] }, off: { command, disabled: true } },
      views: { all: { servers: ['every'], tools: { echo: { title: 'Echo' } } } },
    };
    const { code, stdout } = await run('check', '--config', tempFile('servers.json', JSON.stringify(file)));
    expect(stdout).toMatch(/^OK {4}every: .*, 1 tool,/);
    expect(stdout.split('\n').filter((line) => line.startsWith('NOTE'))).toEqual([
      'NOTE  off: The file disables this server, so the gateway ignores it.',
      expect.stringMatching(/^NOTE {2}every: allowTools: "add_nubers" matches no tool\./),
      'NOTE  all: tools: "echo" matches no tool. Did you mean "every__echo"?',
    ]);
    expect(code).toBe(0);
  });

  test('checks servers: FAIL with the reason for each that does not work, and 1', async () => {
    const [command, ...args] = mini;
    const dying = ['-e', 'console.error("no database"); process.exit(3)'];
    const mcpServers = {
      good: { command, args },
      missing: { command: 'no-such-command-anywhere' },
      refusing: { command, args: [...args, 'refuse'] },
      dying: { command, args: dying },
      deaf: { command, args: deaf.slice(1), timeouts: { start: '300ms' } },
    };
    const { code, stdout } = await run('check', '--config', tempFile('servers.json', JSON.stringify({ mcpServers })));
    const lines = stdout.split('\n').filter((line) => /^\S/.test(line));
    expect(code).toBe(1);
    expect(lines).toEqual([
      expect.stringMatching(/^OK {4}good: mini 1/),
      expect.stringMatching(/^FAIL {2}missing: .*not found/),
      expect.stringMatching(/^FAIL {2}refusing: .*Not with you/),
      expect.stringMatching(/^FAIL {2}dying: .*code 3/),
      expect.stringMatching(/^FAIL {2}deaf: .*within 300 ms/),
      'Checked 5: 1 OK, 4 failed.',
    ]);
    expect(stdout).toContain('no database');
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    '[P10] a check that is interrupted by %s leaves no child',
    async (signal) => {
      const sign = tempFile('sign', '');
      const code = 'require("node:fs").writeFileSync(process.argv[1], "runs"); setInterval(() => undefined, 1_000);';
      const command = [process.execPath, '-e', code, sign]; // one that the end of its input does not end
      const check = spawn(file, [...programArgs, 'check', '--', ...command], { cwd: root, stdio: 'ignore' });
      const exited = new Promise<void>((resolve) => check.once('exit', () => resolve()));
      onTestFinished(() => void check.kill('SIGKILL'));
      await waitFor(() => readFileSync(sign, 'utf8') === 'runs', { what: 'the server to run' });
      const children = await waitForDescendants(check.pid as number, (count) => count > 0);
      onTestFinished(async () => {
        for (const child of await stillAlive(children)) process.kill(child.pid, 'SIGKILL');
      });
      check.kill(signal);
      await withDeadline(exited, { what: 'the exit of the check' });
      await waitUntilGone(children);
    },
  );

  test('prints its help and its version', async () => {
    const [help, version] = [await run('--help'), await run('--version')];
    expect([help.code, version.code]).toEqual([0, 0]);
    expect(help.stdout).toContain('mcp-gangway [options] -- <command>');
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect([help.stderr, version.stderr]).toEqual(['', '']);
  });
});

/** The tests must not leave processes of theirs behind either. */
test('no child of this test process is left', async () => {
  await waitFor(
    async () => (await descendantsOf(process.pid)).every(({ command }) => !command.includes('mini-server')),
    {
      what: 'the end of all servers',
    },
  );
});
