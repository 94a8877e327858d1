import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { answered, openAnswered } from '../support/answered-session.ts';
import { startCluster } from '../support/cluster.ts';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import type { Message, Session } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern, type ModernOptions, metaKeys, postModern } from '../support/modern-client.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';
import { waitFor } from '../support/wait-for.ts';

const root = new URL('../..', import.meta.url).pathname;
const fixture = (name: string) => serverEntry([process.execPath, `${root}test/fixtures/${name}`]);
const names = ['s0', 's1', 's2', 's3', 's4'];
const five = Object.fromEntries(names.map((name) => [name, serverEntry(everythingFixture)]));
/** A short time for silent servers, and a long one for slow machines. */
const hasty = { servers: ['*'], timeout: '1500ms' };

async function startView(servers: object, view: object = { servers: ['*'], timeout: '1m' }) {
  const { args } = await writeViewFile(servers, { view });
  const gateway = await startLocalGateway({ args: [...args, '--timeouts.grace', '500ms'] });
  return { gateway, url: `${gateway.baseUrl}/view/mcp` };
}

const call = (session: Session, name: string, args: object = {}, meta?: object) =>
  session.send({
    jsonrpc: '2.0',
    id: `${name}-${Math.random()}`,
    method: 'tools/call',
    params: { name, arguments: args, ...(meta && { _meta: meta }) },
  });
const textOf = (result: Message): string => result.content[0].text;
const namesIn = ({ json }: { json: Message }, key = 'tools'): string[] =>
  json.result[key].map(({ name }: { name: string }) => name);
const pidOf = async (session: Session, server: string): Promise<number> =>
  JSON.parse(textOf(await session.callTool(`${server}__describe_process`))).pid;

test('the names of all servers have prefixes, and each call reaches its server under its own name', async () => {
  const { url } = await startView(five);
  const session = await openAnswered(url);
  const tools = namesIn(await session.request('tools/list'));
  for (const name of names) expect(tools).toContain(`${name}__echo`);
  expect(new Set(tools).size).toBe(tools.length);
  expect(namesIn(await session.request('prompts/list'), 'prompts')).toContain('s3__test_simple_prompt');
  const pids = await Promise.all(names.map((name) => pidOf(session, name)));
  expect(new Set(pids).size).toBe(5);
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) => session.callTool(`s${index % 5}__echo`, { text: `${index}` })),
  );
  expect(answers.map(textOf)).toEqual(answers.map((_, index) => `${index}`));
  const prompt = await session.request('prompts/get', { name: 's4__test_simple_prompt' });
  expect(prompt.json.result.messages).toHaveLength(1);
  const unknown = async (name: string) => (await session.request('tools/call', { name })).json.error.data.reason;
  expect(await unknown('echo')).toBe('unknown_tool');
  expect(await unknown('s5__echo')).toBe('unknown_tool');
});

test('[P2] progress, log messages and questions of five servers at once stay with their calls, and name their server', async () => {
  const { url } = await startView(five);
  const session = await openAnswered(url, { capabilities: { roots: {} } });
  await session.getStream();
  await session.request('logging/setLevel', { level: 'debug' });
  // All servers count their questions from 0, and all calls run at once.
  const asked = await Promise.all(
    names.map(async (name) => {
      const exchange = await call(session, `${name}__ask_client`, { method: 'roots/list' });
      const question = await exchange.nextMessage(({ method }) => method === 'roots/list');
      return { name, exchange, question };
    }),
  );
  expect(asked.map(({ question }) => question.params._meta['mcp-gangway/server'])).toEqual(names);
  expect(new Set(asked.map(({ question }) => question.id)).size).toBe(5);
  for (const { name, question } of [...asked].reverse())
    await session.respond(question.id, { roots: [{ uri: `file:///${name}` }] });
  for (const { name, exchange } of asked) {
    const answer = (await exchange.answer()).messages.at(-1);
    expect(textOf(answer.result)).toContain(`file:///${name}`);
  }
  const streams = await Promise.all(
    names.map(async (name) => {
      const args = { count: 5, marker: name, gapMs: 10 };
      return (await (await call(session, `${name}__progress`, args, { progressToken: name })).answer()).messages;
    }),
  );
  for (const [index, messages] of streams.entries()) {
    const progress = messages.filter(({ method }) => method === 'notifications/progress');
    expect(progress.map(({ params }) => params.progressToken)).toEqual(Array(5).fill(names[index]));
  }
  const logs = await Promise.all(
    names.map(async (name) => (await (await call(session, `${name}__logs`, { count: 3 })).answer()).messages),
  );
  for (const [index, messages] of logs.entries()) {
    const loggers = messages.filter(({ method }) => method === 'notifications/message');
    expect(loggers.map(({ params }) => params.logger)).toEqual(Array(3).fill(`${names[index]}/fixture`));
  }
});

test('a cancellation reaches the server of the call, and list changes the client', async () => {
  const { url } = await startView(five);
  const session = await openAnswered(url);
  const stream = await session.getStream();
  const id = 'to-cancel';
  const params = { name: 's3__wait_for_cancel', arguments: { key: 'k' } };
  const waiting = await session.send({ jsonrpc: '2.0', id, method: 'tools/call', params });
  await session.notify('notifications/cancelled', { requestId: id, reason: 'enough' });
  await waitFor(async () => textOf(await session.callTool('s3__cancellations')).includes('enough'), {
    what: 'the cancellation',
  });
  expect(textOf(await session.callTool('s2__cancellations'))).toBe('[]');
  waiting.drop();
  await session.callTool('s1__change_list', { what: 'tools' });
  const changed = stream.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
  await session.callTool('s1__later', { notification: { method: 'notifications/tools/list_changed' } });
  await changed;
  expect(namesIn(await session.request('tools/list'))).toContain('s1__added_1');
});

test('[P3] a server that exits ends only its own calls, and is back for the next one', async () => {
  const { url } = await startView(five);
  const session = await openAnswered(url);
  const before = await pidOf(session, 's2');
  const others = names.filter((name) => name !== 's2');
  const slow = others.map((name) => session.callTool(`${name}__slow`, { ms: 300 }));
  const { json, messages } = await session.request('tools/call', { name: 's2__exit', arguments: {} });
  expect((json ?? messages.at(-1)).error.data.reason).toBe('server_exited');
  expect((await Promise.all(slow)).map(textOf)).toEqual(others.map(() => 'slept 300 ms'));
  expect(await pidOf(session, 's2')).not.toBe(before);
});

test('a hung server holds no call of another one, is left out of lists, and the answer says so', async () => {
  const { url } = await startView(five, hasty);
  const session = await openAnswered(url);
  const pid = await pidOf(session, 's1');
  process.kill(pid, 'SIGSTOP');
  try {
    const held = session.request('tools/call', { name: 's1__echo', arguments: { text: 'late' } });
    for (const name of ['s0', 's2', 's3', 's4'])
      expect(textOf(await session.callTool(`${name}__echo`, { text: name }))).toBe(name);
    const list = await session.request('tools/list');
    const result = list.json?.result ?? list.messages.at(-1).result;
    expect(result._meta).toEqual({ 'mcp-gangway/unavailable': ['s1'] });
    const listed = result.tools.map(({ name }: { name: string }) => name.slice(0, 2));
    expect([...new Set(listed)]).toEqual(['s0', 's2', 's3', 's4']);
    process.kill(pid, 'SIGCONT');
    const { messages, json } = await held;
    expect(textOf((json ?? messages.at(-1)).result)).toBe('late');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
});

test('a server that cannot start is left out, and the session opens without it', async () => {
  const dead = serverEntry([process.execPath, '-e', 'process.exit(3)']);
  const silent = serverEntry([process.execPath, '-e', 'process.stdin.resume()']);
  const { url } = await startView({ ok: serverEntry(everythingFixture), dead, silent }, hasty);
  const session = await openAnswered(url);
  expect(session.initialized._meta).toEqual({ 'mcp-gangway/unavailable': ['dead', 'silent'] });
  const list = await session.request('tools/list');
  expect(list.json.result._meta).toEqual({ 'mcp-gangway/unavailable': ['dead', 'silent'] });
  expect(namesIn(list)).toContain('ok__echo');
  const { json } = await session.request('tools/call', { name: 'dead__x' });
  expect(json.error.data.reason).toBe('view_unavailable');
});

test('[P8] a server that floods does not hold the others', async () => {
  const { url } = await startView({ ...five, s4: fixture('flooding-server.mjs') });
  const session = await openAnswered(url);
  const timeCalls = async (): Promise<number> => {
    const start = performance.now();
    for (let index = 0; index < 20; index++)
      expect(textOf(await session.callTool(`s${index % 4}__echo`, { text: `${index}` }))).toBe(`${index}`);
    return performance.now() - start;
  };
  await timeCalls(); // the first calls of a process are slow
  const before = await timeCalls();
  await session.callTool('s4__flood');
  // The flood takes its share of the processors, and no more. So may other tests at one of the times.
  const times = [await timeCalls(), await timeCalls(), await timeCalls()];
  expect(Math.min(...times)).toBeLessThan(before * 10 + 1_000);
});

/** The time that a step takes, and its outcome. */
async function timed<T>(step: () => Promise<T>): Promise<{ readonly ms: number; readonly outcome: T }> {
  const start = performance.now();
  const outcome = await step();
  return { ms: performance.now() - start, outcome };
}

/** A server that answers nothing until this file is there. */
const silentUntil = (file: string): object => {
  const [command, ...args] = everythingFixture;
  const wait = `until [ -e '${file}' ]; do sleep 0.05; done; exec "$0" "$@"`;
  return serverEntry(['/bin/sh', '-c', wait, command as string, ...args]);
};

test('a server that is silent at its start delays one session, and the next ones open without it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-silent-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'ready');
  const servers = { ok: serverEntry(everythingFixture), silent: silentUntil(file) };
  const { url } = await startView(servers, { servers: ['*'], timeout: '8s' });
  const missing = { 'mcp-gangway/unavailable': ['silent'] };
  expect((await timed(() => openAnswered(url))).ms).toBeGreaterThan(7_900);
  const { ms, outcome: session } = await timed(() => openAnswered(url));
  expect(ms).toBeLessThan(4_000);
  expect(session.initialized._meta).toEqual(missing);
  const stream = await session.getStream();
  expect((await session.request('tools/list')).json.result._meta).toEqual(missing);
  const changed = stream.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
  await writeFile(file, '');
  await changed;
  const list = await session.request('tools/list');
  expect(list.json.result._meta).toBeUndefined();
  expect(namesIn(list)).toContain('silent__echo');
  expect((await openAnswered(url)).initialized._meta).toBeUndefined();
});

test('a server that leaves a list unanswered delays one list, and list_changed says that it is back', async () => {
  const { args } = await writeViewFile(
    { s0: serverEntry(everythingFixture), s1: serverEntry(everythingFixture) },
    { view: { servers: ['*'], timeout: '6s' } },
  );
  const gateway = await startLocalGateway({ args: [...args, '--share', 'user'] });
  const url = `${gateway.baseUrl}/view/mcp`;
  const session = await openAnswered(url);
  const stream = await session.getStream();
  const pid = await pidOf(session, 's1');
  process.kill(pid, 'SIGSTOP');
  try {
    const isWithout = ({ json }: { json: Message }) =>
      expect(json.result._meta).toEqual({ 'mcp-gangway/unavailable': ['s1'] });
    isWithout(await session.request('tools/list'));
    const other = await openAnswered(url);
    const { ms, outcome } = await timed(() => other.request('tools/list'));
    expect(ms).toBeLessThan(3_000);
    isWithout(outcome);
    const changed = stream.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
    process.kill(pid, 'SIGCONT');
    await changed;
    expect(namesIn(await session.request('tools/list'))).toContain('s1__echo');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
});

test('pages of several servers are pages of the view, and a foreign cursor is refused', async () => {
  const { url } = await startView({ a: fixture('careless-server.mjs'), b: fixture('careless-server.mjs') });
  const session = await openAnswered(url);
  const first = await session.request('tools/list');
  expect(namesIn(first)).toEqual(['a__read_file', 'a__write_file', 'b__read_file', 'b__write_file']);
  expect(first.text).toContain('"maximum":12345678901234567890'); // [P1]
  const second = await session.request('tools/list', { cursor: first.json.result.nextCursor });
  expect(namesIn(second)).toEqual(['a__delete_file', 'a__ran', 'b__delete_file', 'b__ran']);
  expect(second.json.result.nextCursor).toBeUndefined();
  const foreign = await session.request('tools/list', { cursor: 'other' });
  expect(foreign.json.error.data.reason).toBe('bad_cursor');
});

test('a request that names neither a server nor something of one is refused', async () => {
  const { url } = await startView({ a: fixture('careless-server.mjs'), b: fixture('careless-server.mjs') });
  const session = await openAnswered(url);
  const answer = await session.request('vendor/reset');
  expect(answer.json.error.data.reason).toBe('method_of_view');
});

test('filters of a server hold in its views, too', async () => {
  const filtered = serverEntry([process.execPath, `${root}test/fixtures/careless-server.mjs`], {
    allowTools: ['@readOnlyHint'],
    tools: { read_file: { name: 'open' } },
  });
  const { url } = await startView({ a: filtered, b: serverEntry(everythingFixture) });
  const session = await openAnswered(url);
  expect(namesIn(await session.request('tools/list')).filter((name) => name.startsWith('a__'))).toEqual(['a__open']);
  for (const name of ['a__delete_file', 'a__read_file', 'a__DELETE_FILE'])
    expect((await session.request('tools/call', { name })).json.error.data.reason).toBe('unknown_tool');
  expect(textOf(await session.callTool('a__ran'))).toBe('[]');
});

test('modern clients use a view, with legacy and modern servers behind it', async () => {
  const { url } = await startView({ old: serverEntry(everythingFixture), new: serverEntry(modernFixture) });
  const tools = namesIn(await postModern(url, 'tools/list'));
  expect(tools).toEqual(expect.arrayContaining(['old__echo', 'new__echo']));
  for (const server of ['old', 'new']) {
    const { json } = await callModern(url, `${server}__echo`, { text: server });
    expect(textOf(json.result)).toBe(server);
  }
});

test('[P11] calls of modern clients at one server run at once, unless their clients can be asked', async () => {
  const { args } = await writeViewFile({ old: serverEntry(everythingFixture) }, { view: ['*'] });
  const gateway = await startLocalGateway({ args: [...args, '--share', 'user'] });
  const url = `${gateway.baseUrl}/view/mcp`;
  const timeCalls = async (options?: ModernOptions): Promise<number> => {
    await callModern(url, 'old__echo', { text: 'warm' }, options);
    const start = performance.now();
    const answers = await Promise.all([1, 2, 3].map(() => callModern(url, 'old__slow', { ms: 1_000 }, options)));
    expect(answers.map(({ json, messages }) => textOf((json ?? messages.at(-1)).result))).toEqual(
      Array(3).fill('slept 1000 ms'),
    );
    return performance.now() - start;
  };
  expect(await timeCalls()).toBeLessThan(2_500);
  expect(await timeCalls({ meta: { [metaKeys.clientCapabilities]: { roots: {} } } })).toBeGreaterThan(2_900);
});

test('[P4] a session of a view goes on at another instance', async () => {
  const { args } = await writeViewFile(
    { a: serverEntry(everythingFixture), b: serverEntry(everythingFixture) },
    {
      view: ['a', 'b'],
    },
  );
  const cluster = await startCluster({ instances: 2, args: () => args });
  const [first, second] = cluster.instances.map(({ baseUrl }) => `${baseUrl}/view/mcp`) as [string, string];
  const session = await openAnswered(first);
  expect(textOf(await session.callTool('b__echo', { text: 'before' }))).toBe('before');
  const slow = await call(session, 'a__progress', { count: 50, gapMs: 200, marker: 'm' }, { progressToken: 't' });
  const event = await slow.events.next(({ data }) => data?.includes('notifications/progress') === true);
  await cluster.kill(0);
  const resumed = await session.at(second).getStream(event.id);
  const outcome = await resumed.nextMessage(({ error, result }) => error !== undefined || result !== undefined);
  expect(outcome.error.data.reason).toBe('outcome_unknown');
  const elsewhere = answered(session.at(second));
  expect(textOf(await elsewhere.callTool('b__echo', { text: 'after' }))).toBe('after');
  expect(namesIn(await elsewhere.request('tools/list'))).toEqual(expect.arrayContaining(['a__echo', 'b__echo']));
});
