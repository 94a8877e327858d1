import { existsSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { createAuditFile, linesIn, wordsOf } from '../support/audit-lines.ts';
import { everythingFixture, modernFixture, startGateway } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { type AnyGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, openModern, postModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

const call = (id: number, name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

const waitForLog = (gateway: AnyGateway, msg: string) =>
  waitFor(() => gateway.logs().find((line) => line['msg']?.toString().startsWith(msg)), {
    what: `the log line ${msg}`,
  });

describe('a call of a legacy client leaves one line', () => {
  test('that says who called what, how it ended, how long it took and how large it was, and no content', async () => {
    const audit = createAuditFile();
    const gateway = await startGateway({ args: audit.args, command: everythingFixture });
    const session = await initialize(gateway.url);
    const request = JSON.stringify(call(7, 'echo', { text: 'canary-argument' }));
    const { text: response } = await (await session.send(request)).answer();
    const started = performance.now();
    await session.callTool('slow', { ms: 150 }); // answered on a stream
    const tookMs = performance.now() - started;
    await session.request('resources/read', { uri: 'canary://uri' });
    await session.request('prompts/get', { name: 'test_simple_prompt' });
    await session.request('no/such');
    await session.request('tools/list');
    expect(await audit.words(7)).toEqual([
      'initialize ok',
      'tools/call echo ok',
      'tools/call slow ok',
      'resources/read error -32002',
      'prompts/get test_simple_prompt ok',
      'no/such error -32601',
      'tools/list ok',
    ]);
    const requestId = '3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10';
    const headers = { 'X-Request-Id': requestId };
    await session.request('tools/list', {}, { headers });
    await post(gateway.url, '{', { 'Content-Type': 'application/json', ...headers });
    const { length } = await audit.words(9);
    expect(audit.lines().slice(length - 2)).toMatchObject([
      { method: 'tools/list', requestId },
      { reason: 'not_json', requestId },
    ]);
    const [, echo, slow] = audit.lines();
    const server = gateway.logs().find(({ msg }) => msg === 'endpoint ready')?.['server'];
    const short = gateway.logs().find(({ msg }) => msg === 'session started')?.['session'];
    expect(echo).toEqual({
      ...{ time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/), instance: expect.stringMatching(/:\d+$/) },
      ...{ server, era: 'legacy', session: short, method: 'tools/call', name: 'echo', outcome: 'ok' },
      ...{ durationMs: expect.any(Number), bytesIn: request.length, bytesOut: response.length },
    });
    expect(slow?.['durationMs']).toBeGreaterThanOrEqual(149);
    // On a busy machine, the client can have the answer before the gateway looks at the clock.
    expect(slow?.['durationMs']).toBeLessThanOrEqual(Math.ceil(tookMs) + 1_000);
    expect(audit.text()).not.toMatch(/canary/);
    expect(audit.text()).not.toContain(session.id);
  });

  test('whether it is one of a batch, was cancelled, lost its client or its server', async () => {
    const audit = createAuditFile();
    const args = [...audit.args, '--timeouts.grace', '50ms', '--defaults.onExit', 'end'];
    const gateway = await startLocalGateway({ args, command: everythingFixture });
    const session = await initialize(gateway.url, { version: '2025-03-26' });
    await (await session.send([call(1, 'echo', { text: 'a' }), call(2, 'echo', { text: 'b' })])).answer();
    expect(await audit.words(3)).toEqual(['initialize ok', 'tools/call echo ok', 'tools/call echo ok']);

    const cancelled = await session.send(call(3, 'slow', { ms: 30_000 }));
    await session.notify('notifications/cancelled', { requestId: 3 });
    await cancelled.answer();
    expect((await audit.words(4)).at(-1)).toBe('tools/call slow fault cancelled');

    const dropped = await session.send(call(4, 'slow', { ms: 300 }));
    dropped.drop();
    expect((await audit.words(5)).at(-1)).toBe('tools/call slow ok');

    await session.request('tools/call', { name: 'exit', arguments: {} });
    expect((await audit.words(6)).at(-1)).toBe('tools/call exit fault server_exited');
    await gateway.stop();
    expect(audit.lines()).toHaveLength(6);
  });

  test('also where it was refused, with the reason, and without what could not be read', async () => {
    const audit = createAuditFile();
    const gateway = await startLocalGateway({ args: audit.args, command: everythingFixture });
    const session = await initialize(gateway.url);
    const inSession = (id: string) => ({ 'Mcp-Session-Id': id });
    await post(gateway.url, call(1, 'echo'), inSession('no-such-session'));
    await post(gateway.url, '{"jsonrpc":"2.0","id":1,', inSession(session.id));
    await post(gateway.url, [call(1, 'echo'), call(2, 'slow')], inSession(session.id));
    await post(gateway.url, call(1, 'echo'), { Origin: 'https://canary.example' });
    await post(gateway.url, { jsonrpc: '2.0', method: 'notifications/x' }, inSession('no-such-session'));
    await open(gateway.url, { method: 'DELETE', headers: inSession('no-such-session') });
    await session.request('tools/call', { name: `n${'a'.repeat(500)}`, arguments: {} });
    await session.request('tools/call', { name: `n${'a'.repeat(5_000)}`, arguments: {} });
    expect(await audit.words(8)).toEqual([
      'initialize ok',
      'tools/call echo fault unknown_session',
      'fault not_json',
      'tools/call echo fault batch_not_allowed',
      'tools/call slow fault batch_not_allowed',
      'fault origin_not_allowed',
      `tools/call n${'a'.repeat(127)} error -32602`,
      'tools/call error -32602',
    ]);
    expect(audit.text()).not.toMatch(/canary/);
  });
});

test('clients of HTTP+SSE and on WebSocket leave one line for each call, too', async () => {
  const audit = createAuditFile();
  const gateway = await startLocalGateway({ args: audit.args, command: everythingFixture });
  const old = await connectOld(gateway.baseUrl);
  await old.request('tools/call', { name: 'echo', arguments: { text: 'a' } });
  expect(await audit.words(2)).toEqual(['initialize ok', 'tools/call echo ok']);
  expect(audit.text()).not.toContain(old.token);

  const client = await connectWebSocket(webSocketUrlOf(gateway.url));
  await client.request('tools/list');
  await client.initialize();
  await client.callTool('echo', { text: 'a' });
  client.send([call(5, 'echo'), call(6, 'slow')]);
  const words = await audit.words(7);
  expect(words.slice(2)).toEqual([
    'tools/list fault not_initialized',
    'initialize ok',
    'tools/call echo ok',
    'tools/call echo fault batch_not_allowed',
    'tools/call slow fault batch_not_allowed',
  ]);
});

describe('a call of a modern client leaves one line', () => {
  const kinds = [
    ['a legacy', everythingFixture],
    ['a modern', modernFixture],
  ] as const;
  test.each(kinds)('at %s server', async (_kind, command) => {
    const audit = createAuditFile();
    // The head of a call that runs is sent with the first heartbeat, and the client leaves after the head.
    const gateway = await startLocalGateway({ args: [...audit.args, '--sse.heartbeat', '100ms'], command });
    await callModern(gateway.url, 'echo', { text: 'canary' });
    await postModern(gateway.url, 'tools/list');
    await postModern(gateway.url, 'no/such');
    await callModern(gateway.url, 'echo', { text: 'canary' }, { headers: { 'Mcp-Name': 'other' } });
    await postModern(gateway.url, 'ping');
    const left = await openModern(
      gateway.url,
      'tools/call',
      { name: 'slow', arguments: { ms: 30_000 } },
      {
        meta: { progressToken: 1 },
      },
    ).catch(() => undefined);
    left?.drop();
    const words = await audit.words(5);
    expect(words.slice(0, 5)).toEqual([
      'tools/call echo ok',
      'tools/list ok',
      'no/such error -32601',
      'tools/call echo fault header_mismatch',
      'ping fault method_removed',
    ]);
    for (const line of audit.lines()) expect(line).toMatchObject({ era: 'modern' });
    expect(audit.text()).not.toMatch(/canary/);
  });

  test('that its client has left', async () => {
    const audit = createAuditFile();
    const gateway = await startLocalGateway({
      args: [...audit.args, '--sse.heartbeat', '10ms'],
      command: modernFixture,
    });
    const exchange = await openModern(gateway.url, 'tools/call', { name: 'slow', arguments: { ms: 30_000 } });
    exchange.drop();
    expect(await audit.words(1)).toEqual(['tools/call slow left']);
  });
});

test('a legacy client of a modern server leaves a line for each of its calls, and none for those of the gateway', async () => {
  const audit = createAuditFile();
  const gateway = await startLocalGateway({ args: audit.args, command: modernFixture });
  const session = await initialize(gateway.url);
  await session.callTool('echo', { text: 'a' });
  await session.request('no/such');
  expect(await audit.words(3)).toEqual(['initialize ok', 'tools/call echo ok', 'no/such error -32601']);
});

test('a line says whose key was shown, and that none was', async () => {
  const audit = createAuditFile();
  const keys = `${audit.path}.keys`;
  await writeFile(keys, JSON.stringify([{ name: 'ada', sha256: digestOfKey('canary-key') }]));
  const gateway = await startLocalGateway({
    args: [...audit.args, '--api-keys-file', keys],
    command: everythingFixture,
  });
  const headers = { Authorization: 'Bearer canary-key' };
  const session = await initialize(gateway.url, { headers });
  await session.callTool('echo', { text: 'a' });
  expect((await post(gateway.url, call(1, 'echo'))).status).toBe(401);
  expect((await post(gateway.url, call(1, 'echo'), { Authorization: 'Bearer canary-other' })).status).toBe(401);
  const words = await audit.words(4);
  expect(words.slice(0, 2)).toEqual(['initialize ok', 'tools/call echo ok']);
  for (const word of words.slice(2)) expect(word).toMatch(/^fault /);
  const principals = audit.lines().map(({ principal }) => principal);
  const ada = expect.objectContaining({ subject: 'ada' });
  expect(principals).toEqual([ada, ada, undefined, undefined]);
  expect(audit.text()).not.toMatch(/canary/);
});

test('a call that is refused for a quota leaves a line with its user and the reason', async () => {
  const audit = createAuditFile();
  const quota = ['--limits.user.requestsPerSecond', '1'];
  const env = { GANGWAY_API_KEYS: `ada:sha256:${digestOfKey('0123456789abcdef0123456789abcdef')}` };
  const gateway = await startLocalGateway({ args: [...audit.args, ...quota], command: everythingFixture, env });
  const headers = { Authorization: 'Bearer 0123456789abcdef0123456789abcdef' };
  const answers = [];
  for (let id = 0; id < 15; id++) answers.push(await post(gateway.url, call(id, 'echo'), headers));
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThanOrEqual(1);
  const words = await audit.words(answers.length);
  const told = audit.lines().filter(({ reason }) => reason === 'quota_requests');
  expect([words.length, told.length]).toEqual([answers.length, refused.length]);
  for (const line of told) expect(line).toMatchObject({ principal: { subject: 'ada' }, outcome: 'fault' });
});

test('requests of the legacy era without a session leave one line each, and none for what opens their session', async () => {
  const audit = createAuditFile();
  const gateway = await startLocalGateway({
    args: [...audit.args, '--defaults.sessionless', 'serve'],
    command: everythingFixture,
  });
  expect((await post(gateway.url, call(1, 'echo', { text: 'canary' }))).status).toBe(200);
  await post(gateway.url, { jsonrpc: '2.0', id: 2, method: 'no/such' });
  await open(gateway.url, { method: 'GET', headers: { Accept: 'text/event-stream' } });
  expect(await audit.words(2)).toEqual(['tools/call echo ok', 'no/such error -32601']);
  for (const line of audit.lines()) expect(line).toMatchObject({ era: 'legacy' });
  await gateway.stop();
  expect(audit.lines()).toHaveLength(2);
  expect(audit.text()).not.toMatch(/canary/);
});

describe('lines that cannot be written', () => {
  test('are told of, wait, and are written when the file is opened anew at SIGHUP', async () => {
    const audit = createAuditFile();
    symlinkSync('/dev/full', audit.path);
    const gateway = await startGateway({ args: audit.args, command: everythingFixture });
    const session = await initialize(gateway.url);
    expect(await session.callTool('echo', { text: 'a' })).toMatchObject({ content: [{ text: 'a' }] });
    expect(await waitForLog(gateway, 'cannot write audit lines')).toMatchObject({ level: 'error' });
    rmSync(audit.path);
    process.kill(gateway.pid, 'SIGHUP');
    expect(await audit.words(2)).toEqual(['initialize ok', 'tools/call echo ok']);
    await waitForLog(gateway, 'audit lines are written again');
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  });

  test('at the end are counted, and do not hold the end up', async () => {
    const gateway = await startGateway({ args: ['--observe.audit', '/dev/full'], command: everythingFixture });
    await initialize(gateway.url);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    expect(
      gateway.logs().find(({ msg }) => msg === 'audit lines were lost because they could not be written'),
    ).toMatchObject({
      lost: 1,
    });
  });
});

test('a file that was moved away gets no line after SIGHUP', async () => {
  const audit = createAuditFile();
  const gateway = await startGateway({ args: audit.args, command: everythingFixture });
  const session = await initialize(gateway.url);
  await audit.words(1);
  renameSync(audit.path, `${audit.path}.1`);
  process.kill(gateway.pid, 'SIGHUP');
  await waitFor(() => existsSync(audit.path), { what: 'the new file' });
  await session.request('ping');
  expect(await audit.words(1)).toEqual(['ping ok']);
});

test('lines go to stdout, in one piece each, and nothing else does', async () => {
  const gateway = await startGateway({ args: ['--observe.audit', 'stdout'], command: everythingFixture });
  const session = await initialize(gateway.url);
  await Promise.all(Array.from({ length: 50 }, () => session.request('ping')));
  const written = await waitFor(
    () => {
      const lines = linesIn(gateway.stdout());
      return lines.length >= 51 && lines;
    },
    { what: 'the lines' },
  );
  expect(written.map(wordsOf)).toEqual(['initialize ok', ...Array(50).fill('ping ok')]);
});

test('a file that cannot be opened is said at the start', async () => {
  const path = '/no/such/folder/audit.jsonl';
  await expect(startLocalGateway({ args: ['--observe.audit', path], command: everythingFixture })).rejects.toThrow(
    /--observe.audit/,
  );
});
