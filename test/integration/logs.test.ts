import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { everythingFixture, type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { isAtLeast } from '../support/log-levels.ts';
import { waitForMetric } from '../support/metrics.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';

const mini = [process.execPath, `${root}test/fixtures/children/mini-server.mjs`];

/** Repeats on stderr what it is told, and ends. */
const tellTale = [
  process.execPath,
  '-e',
  'process.stdin.once("data", (d) => process.stderr.write(d, () => process.exit(1)))',
];

const initializeBody = (name: string) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } },
});

/** Lines above `info`: warnings and errors. */
const alarms = (gateway: Gateway) => gateway.logs().filter((line) => isAtLeast(line, 'warn'));
const saying = (gateway: Gateway, msg: string) => gateway.logs().filter((line) => line['msg'] === msg);
const waitForLog = (gateway: Gateway, msg: string, count = 1) =>
  waitFor(() => saying(gateway, msg).length >= count && saying(gateway, msg), { what: `the log line "${msg}"` });

/** All that a gateway wrote must hold none of these. */
function expectNone(gateway: Gateway, secrets: readonly string[]): void {
  const text = gateway.stdout() + gateway.stderr();
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
}

describe('the log at info', () => {
  test('says which Redis is away, why and what to do, without its password', async () => {
    await using redis = await startRedis({ args: ['--requirepass', 'canary-password'] });
    const url = redis.url.replace('//', '//:canary-password@');
    const gateway = await startGateway({ env: { REDIS_URL: url }, command: mini });
    await waitForLog(gateway, 'Redis is available; sessions are shared');
    await redis.kill();
    const [line] = await waitForLog(gateway, 'Redis is unavailable');
    expect(line).toMatchObject({
      ...{ level: 'warn', part: 'store', redis: `127.0.0.1:${redis.port}` },
      detail: expect.stringMatching(/^(The connection was refused|There is no connection to Redis)/),
      help: expect.stringMatching(/^(Start Redis|Check that Redis is running)/),
    });
    expect(gateway.stderr()).not.toMatch(/maxRetries|canary-password/i);
  });

  test('[S14] [S01] holds nothing of what passes: every channel has its canary', async () => {
    const gateway = await startGateway({ args: ['--defaults.onExit', 'end'], command: everythingFixture });
    let count = 0;
    const canaries: string[] = [];
    const canary = (where: string): string => {
      const text = `canary${++count}${where}`;
      canaries.push(text);
      return text;
    };
    const secretHeaders = (): Record<string, string> => ({
      Authorization: `Bearer ${canary('authorization')}`,
      Cookie: `session=${canary('cookie')}`,
      'User-Agent': canary('agent'),
      'X-Api-Key': canary('header'),
      Traceparent: canary('trace'),
    });
    const json = { 'Content-Type': 'application/json' };

    const session = await initialize(`${gateway.url}?token=${canary('query')}`, {
      headers: secretHeaders(),
      capabilities: { experimental: { [canary('capability')]: {} }, roots: {} },
    });
    const raw = async (body: unknown, headers = {}) =>
      (await session.send(body, { ...secretHeaders(), ...headers })).answer();

    // Params, results, ids, progress tokens and metadata of calls, as JSON and as a stream, good and bad.
    const echoed = canary('argument');
    expect(await session.callTool('echo', { text: echoed }, { [canary('meta')]: 1 })).toMatchObject({
      content: [{ text: echoed }],
    });
    await session.callTool('progress', { count: 2, marker: canary('progress') }, { progressToken: canary('token') });
    await session.request('tools/call', { name: canary('tool') }, { id: canary('id') });
    await session.request(canary('method'), { x: canary('param') });
    await session.notify(`notifications/${canary('notification')}`, { x: canary('param') });
    await session.respond(canary('response'), { x: canary('result') });
    await session.callTool('later', {
      notification: { method: 'notifications/message', params: { level: 'info', data: canary('data') } },
    });
    // What is dropped: noise, responses to nothing, broken messages.
    await session.callTool('raw_write', {
      text: `${canary('noise')}\n{"jsonrpc":"2.0","id":"${canary('unknown')}","result":{}}\n`,
    });
    // Requests of the server and their answers.
    const asking = await session.send({ jsonrpc: '2.0', id: 70, method: 'tools/call', params: { name: 'roots' } });
    const question = await asking.nextMessage(({ method }) => method === 'roots/list');
    await session.respond(question.id, { roots: [{ uri: `file:///${canary('root')}` }] });
    await asking.answer();
    // Refusals of each kind.
    for (const body of [
      `{"${canary('broken')}`,
      [canary('batch')],
      { jsonrpc: '2.0', id: {}, method: canary('bad') },
    ]) {
      expect((await raw(body)).status).toBe(400);
    }
    const refusals = [
      { 'Mcp-Session-Id': canary('session') },
      { 'MCP-Protocol-Version': canary('version') },
      { 'Content-Type': canary('type') },
      { Accept: canary('accept') },
      // No secrets: the line of a refused request names them, so that the operator can allow them.
      { Origin: 'http://refused.example' },
      { Host: 'refused.example' },
      { 'Content-Encoding': canary('encoding') },
    ];
    for (const headers of refusals) {
      expect((await raw({ jsonrpc: '2.0', id: 1, method: 'ping' }, headers)).status).toBeGreaterThanOrEqual(400);
    }
    for (const id of [canary('event'), `7.${canary('event')}-1`]) {
      const stream = await session.getStream(id);
      expect(stream.status).toBe(400);
    }
    expect((await open(`${gateway.baseUrl}/${canary('path')}`, { method: 'GET' })).status).toBe(404);
    expect((await post(gateway.url, initializeBody('x'), { ...json, Origin: 'nullrefused' })).status).toBe(403);
    // A session whose server dies, after it was told secrets.
    await session.request('tools/call', { name: 'exit', arguments: { code: 5, x: canary('last') } }, { id: 99 });
    await waitForLog(gateway, 'session ended');
    await gateway.stop();

    expect(canaries.length).toBeGreaterThan(80);
    expectNone(gateway, [...canaries, session.id, session.id.slice(0, 8)]);
    // It does tell of the session, without its contents.
    const [started] = saying(gateway, 'session started');
    const [serverEnded] = saying(gateway, 'server ended');
    const [ended] = saying(gateway, 'session ended');
    expect(started).toMatchObject({
      protocolVersion: '2025-11-25',
      pid: expect.any(Number),
      startMs: expect.any(Number),
    });
    expect(serverEnded).toMatchObject({ session: started?.['session'], reason: 'exited', exitCode: 5 });
    expect(ended).toMatchObject({ session: started?.['session'], reason: 'server_exited', noise: 1 });
  });

  test('[S14] holds nothing of initialize where the server repeats it on stderr and ends', async () => {
    const gateway = await startGateway({ command: tellTale });
    const { status } = await post(gateway.url, initializeBody('canary-client'), { 'Content-Type': 'application/json' });
    expect(status).toBe(502);
    await waitForLog(gateway, 'session ended');
    await gateway.stop();
    expectNone(gateway, ['canary-client']);
  });

  test.each(['process.exit(1)', 'process.stdin.resume()'])(
    '[S14] holds nothing of what a server that has credentials of its client writes at its start, then %s',
    async (then) => {
      const code = `console.error('token ' + process.env.TOKEN); ${then}`;
      const args = ['--defaults.credentials', 'TOKEN={header:X-Token}', '--defaults.timeouts.start', '500ms'];
      const gateway = await startGateway({ args, command: [process.execPath, '-e', code] });
      const headers = { 'Content-Type': 'application/json', 'X-Token': 'canary-token' };
      expect((await post(gateway.url, initializeBody('client'), headers)).status).toBeGreaterThanOrEqual(500);
      await waitForLog(gateway, 'session ended');
      await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'the end of its processes' });
      await gateway.stop();
      expectNone(gateway, ['canary-token']);
    },
  );

  test('[S14] holds nothing of what a server writes to stderr and stdout beside the protocol', async () => {
    const gateway = await startGateway({ command: mini });
    const session = await initialize(gateway.url);
    expect((await session.request('x', { noise: 'canary-noise' })).status).toBe(200);
    await session.delete();
    await waitForLog(gateway, 'session ended');
    await gateway.stop();
    expectNone(gateway, ['canary-noise']);
  });

  test('has a line for the start and one for the end of each session, and no more', async () => {
    const gateway = await startGateway({ command: mini });
    for (let client = 1; client <= 2; client++) {
      const session = await initialize(gateway.url);
      for (let call = 0; call < 5; call++) await session.request('x');
      await session.delete();
      await waitForLog(gateway, 'session ended', client);
    }
    const lines = gateway.logs().filter(({ session }) => session !== undefined);
    expect(lines.map(({ msg }) => msg)).toEqual([
      'session started',
      'session ended',
      'session started',
      'session ended',
    ]);
    expect(lines.map(({ reason }) => reason)).toEqual([undefined, 'deleted', undefined, 'deleted']);
    expect(lines[0]?.['session']).not.toBe(lines[2]?.['session']);
    expect(alarms(gateway)).toEqual([]);
  });
});

describe('what a server writes beside the protocol', () => {
  const noiseNotice = expect.objectContaining({ level: 'warn', msg: expect.stringContaining('not MCP messages') });

  test('[R6.03] on stdout is dropped, logged and counted, and the session goes on', async () => {
    const gateway = await startGateway({ command: mini, args: ['--log-level', 'debug'] });
    const session = await initialize(gateway.url);
    const lines = ['Server ready', '{"level":30}', '[]', '{"jsonrpc":"2.0"'];
    for (const noise of lines) {
      const { json } = await session.request('x', { noise });
      expect(json.result.method).toBe('x');
    }
    await session.delete();
    const [ended] = await waitForLog(gateway, 'session ended');
    expect(ended?.['noise']).toBe(lines.length);
    expect(saying(gateway, 'message dropped').map(({ what, text }) => [what, text])).toEqual(
      lines.map((line) => ['noise', line]),
    );
    expect(alarms(gateway)).toEqual([noiseNotice]);
  });

  test('[R6.03] [P8] as messages of a spare process is kept up to 64 KiB, and the rest is counted and logged once', async () => {
    const adminPort = await findFreePort();
    const early = `{"jsonrpc":"2.0","method":"${'canary-noise'.padEnd(995, '.')}"}`;
    const code = `process.stdout.write((${JSON.stringify(early)} + '\\n').repeat(200)); process.stdin.resume()`;
    const command = [process.execPath, '-e', code];
    const gateway = await startGateway({ adminPort, command, args: ['--warm', '1', '--log-level', 'debug'] });
    const dropped = { kind: 'unused' }; // of one spare for `--warm`, and of one that the gateway starts to test the server
    await waitForMetric(adminPort, 'mcp_gangway_messages_dropped_total', dropped, (value) => value === 2 * (200 - 64));
    const help = expect.stringContaining('log to stderr');
    const told = gateway.logs().filter(({ msg }) => String(msg).startsWith('a spare process of the server wrote'));
    expect(told).toEqual([expect.objectContaining({ level: 'warn', part: 'server', help })]);
    await gateway.stop();
    expectNone(gateway, ['canary-noise']);
  });

  test('[R6.04] on stderr is logged at debug, however it sounds, and its call succeeds', async () => {
    const gateway = await startGateway({ command: mini, args: ['--log-level', 'debug'] });
    const session = await initialize(gateway.url);
    const words = 'ERROR fatal: everything is lost';
    expect((await session.request('x', { noise: words })).messages[0].result.method).toBe('x');
    const logged = await waitFor(() => gateway.logs().find(({ stderr }) => stderr === words), { what: 'the line' });
    expect(logged).toMatchObject({ level: 'debug', msg: 'server wrote to stderr' });
    expect((await session.request('x')).status).toBe(200);
    await session.delete();
    await waitForLog(gateway, 'session ended');
    expect(alarms(gateway)).toEqual([noiseNotice]);
  });

  test('[R6.01] [R6.03] characters of several bytes survive, wherever the pipe cuts them', async () => {
    const gateway = await startGateway({ command: everythingFixture });
    const session = await initialize(gateway.url);
    // 3 bytes each and an odd start: a cut at any power of two lies inside of one. U+2028 is no line end.
    for (const text of ['€'.repeat(150_000), `x${'🌍\u2028'.repeat(50_000)}`]) {
      expect(await session.callTool('echo', { text })).toEqual({ content: [{ type: 'text', text }] });
    }
    await session.delete();
  });
});

describe('levels of parts', () => {
  test('tell of what servers write to stderr, with the session that it is of, and of nothing else at debug', async () => {
    const gateway = await startGateway({ command: mini, args: ['--log-level', 'info,stderr=debug'] });
    const session = await initialize(gateway.url);
    await session.request('x', { noise: 'a line' });
    const stderr = await waitFor(() => gateway.logs().find((line) => line['stderr'] === 'a line'), {
      what: 'the line',
    });
    const [started] = saying(gateway, 'session started');
    expect(stderr).toMatchObject({
      ...{ part: 'stderr', server: 'mini-server', level: 'debug' },
      session: started?.['session'],
      pid: started?.['pid'],
    });
    expect(started?.['part']).toBe('session');
    await session.delete();
    await waitForLog(gateway, 'session ended');
    expect(gateway.logs().filter((line) => !isAtLeast(line, 'info') && line['part'] !== 'stderr')).toEqual([]);
  });

  test('[P12] tell of each request, with an id that its client is told; it is never a session id', async () => {
    const gateway = await startGateway({ command: mini, args: ['--log-level', 'info,http=debug'] });
    const given = '3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10';
    const session = await initialize(gateway.url);
    const asked = await session.request('x', {}, { headers: { 'X-Request-Id': given } });
    expect(asked.headers['x-request-id']).toBe(given);
    const own = await session.request('x', {}, { headers: { 'X-Request-Id': session.id } });
    expect(own.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const called = await session.request('tools/call', { name: 'no-such', _meta: { traceparent } });
    const opened = await initialize(gateway.url);
    const refused = await post(gateway.url, '{', { 'Content-Type': 'application/json' });
    const astray = await open(`${gateway.baseUrl}/secret-path?secret=query`, { method: 'GET' });
    const idOf = ({ headers }: { headers: Record<string, unknown> }) => headers['x-request-id'];
    const lineOf = (id: unknown) =>
      waitFor(() => saying(gateway, 'request').find(({ requestId }) => requestId === id), {
        what: `the line of ${id}`,
      });
    const ofPost = { part: 'http', method: 'POST', path: '/mcp' };
    expect(await lineOf(given)).toMatchObject({ ...ofPost, status: 200, durationMs: expect.any(Number) });
    expect(await lineOf(idOf(own))).toMatchObject({ ...ofPost, status: 200 });
    expect(await lineOf(idOf(refused))).toMatchObject({ ...ofPost, status: 400, reason: 'not_json' });
    const short = saying(gateway, 'session started').map((line) => line['session']);
    const known = { server: 'mini-server', session: short[0] };
    expect(await lineOf(idOf(called))).toMatchObject({
      ...{ ...known, call: 'tools/call', name: 'no-such', traceId: '0af7651916cd43dd8448eb211c80319c' },
    });
    const openings = saying(gateway, 'request').filter(({ call }) => call === 'initialize');
    expect(openings.map((line) => line['session'])).toEqual(short);
    expect(await lineOf(given)).toMatchObject({ ...known, call: 'x' });
    expect(await lineOf(idOf(astray))).toMatchObject({ method: 'GET', status: 404, reason: 'no_such_path' });
    await session.delete();
    await opened.delete();
    await gateway.stop();
    expectNone(gateway, [session.id, opened.id, 'secret-path', 'query']);
  });

  test('say nothing of requests at info, nor do their answers have an id', async () => {
    const gateway = await startGateway({ command: mini });
    const session = await initialize(gateway.url);
    expect((await session.request('x')).headers).not.toHaveProperty('x-request-id');
    await session.delete();
    await waitForLog(gateway, 'session ended');
    expect(saying(gateway, 'request')).toEqual([]);
  });
});

describe('the form of the log', () => {
  test('is JSON where nobody looks, and lines for a person where that is said', async () => {
    const gateway = await startGateway({ command: mini, args: ['--observe.logFormat', 'pretty'] });
    const session = await initialize(gateway.url);
    await session.delete();
    await waitFor(() => gateway.stderr().includes('session ended'), { what: 'the end of the session' });
    expect(gateway.logs()).toEqual([]);
    expect(gateway.stderr()).toMatch(/^[\d:.]{12}Z INFO {2}session session started server=mini-server session=\S+ /m);
    expect(gateway.stderr()).not.toContain('\u001b');
  });

  test('is for a person on a terminal, with colours unless NO_COLOR is set', () => {
    const { PATH } = process.env;
    // Nothing of the environment of these tests: CI, TMUX and more say whether a terminal has colours (tty.WriteStream).
    const onTerminal = (env: NodeJS.ProcessEnv): string =>
      execFileSync('script', ['-qc', `"${process.execPath}" "${root}dist/main.js" --port 0 -- false`, '/dev/null'], {
        env: { PATH, TERM: 'xterm-256color', GANGWAY_PORTS: '1', ...env },
        encoding: 'utf8',
      });
    const warning =
      'The environment variable GANGWAY_PORTS has no effect, because it does not name an option. Did you mean GANGWAY_PORT?';
    expect(onTerminal({ NO_COLOR: '1' })).toContain(`Z WARN  app     ${warning}`);
    expect(onTerminal({})).toContain(`\u001b[33mWARN \u001b[0m`);
  });
});
