import { describe, expect, test } from 'vitest';
import { initialize, post, type Session } from '../support/http-client.ts';
import { stillAlive, waitForDescendants, waitUntilGone } from '../support/processes.ts';
import { loadMs, withDeadline } from '../support/wait-for.ts';
import {
  hanging,
  logged,
  type Moody,
  requestOf,
  responseOf,
  restored,
  startMoody,
  statusOf,
  toolCall,
} from './moody.ts';

/** A call that is answered with an error, and within what time after the child's end. */
const exited = { error: { code: -32000, data: { reason: 'server_exited' } } };
const answerMs = 1_000;

const ping = async (session: Session): Promise<number> => (await session.request('x')).messages[0].result.pid;

/** Sends a call that the server never answers, and resolves when the server has it. */
async function sendHanging(moody: Moody, session: Session, message: object, headers = {}) {
  const count = (moody.told().at(-1)?.length ?? 0) + 1;
  const exchange = session.send(message, headers);
  await moody.toldBy(moody.told().length - 1, count);
  return exchange;
}

describe('a child that ends in the middle of a tool call', () => {
  test('[F12] [P3] with or without a code, or by a signal: the call is answered at once, and the session goes on', async () => {
    const { gateway, pids } = await startMoody();
    const session = await initialize(gateway.url);
    const ways = [
      ['exit', { code: 0 }],
      ['exit', { code: 3 }],
      ['kill', { signal: 'SIGSEGV' }],
      ['kill', { signal: 'SIGKILL' }],
    ] as const;
    for (const [index, [name, args]] of ways.entries()) {
      const before = performance.now();
      const answer = await (await session.send(toolCall(1, name, args), { Accept: 'application/json' })).answer();
      expect(performance.now() - before, name).toBeLessThan(answerMs + loadMs);
      expect([answer.status, answer.json]).toMatchObject([502, { id: 1, ...exited }]);
      const pid = await ping(session);
      expect(pids()).toHaveLength(index + 2);
      expect(pids().at(-1)).toBe(pid);
      expect(await gateway.descendants()).toMatchObject([{ pid }]);
    }
  });

  test('[F12] [P3] by kill -9 from outside: its calls on streams are answered within 1 s, each once', async () => {
    const moody = await startMoody({}, { args: ['--sse.streamAfter', '10ms'] });
    const session = await initialize(moody.gateway.url);
    const calls = [];
    for (let id = 1; id <= 5; id++) calls.push(await sendHanging(moody, session, toolCall(id, 'x', {}, hanging)));
    const before = performance.now();
    moody.kill();
    const responses = await Promise.all(calls.map((call, index) => responseOf(call, index + 1)));
    expect(performance.now() - before).toBeLessThan(answerMs + loadMs);
    for (const [index, response] of responses.entries()) expect(response).toMatchObject({ id: index + 1, ...exited });
    expect(await ping(session)).toBe(moody.pids()[1]);
  });

  test('[F12] [P3] while a grandchild holds its stdout: answered within 1 s, and the grandchild ends', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url);
    await session.callTool('fork');
    const family = await waitForDescendants(moody.gateway.pid, 2);
    const call = await sendHanging(moody, session, toolCall(7, 'x', {}, hanging));
    const before = performance.now();
    moody.kill();
    expect(await responseOf(call, 7)).toMatchObject(exited);
    expect(performance.now() - before).toBeLessThan(answerMs + loadMs);
    await ping(session);
    await waitUntilGone(family);
    await waitForDescendants(moody.gateway.pid, 1);
  });
});

describe('what only reads', () => {
  const reads = [
    'ping',
    'tools/list',
    'prompts/list',
    'prompts/get',
    'resources/list',
    'resources/templates/list',
    'resources/read',
    'completion/complete',
    'logging/setLevel',
  ];

  test('[F12] [P3] and is in flight is run again, in its order, and answered once', async () => {
    const moody = await startMoody({}, { args: ['--sse.streamAfter', '10ms'] });
    const session = await initialize(moody.gateway.url);
    const calls = [];
    for (const method of reads) {
      const request = requestOf(method, method, { name: 'n', uri: 'u' }, { hangsUntil: 1 });
      calls.push(await sendHanging(moody, session, request));
    }
    moody.kill();
    for (const [index, call] of calls.entries()) {
      expect((await call.answer()).messages).toMatchObject([{ id: reads[index], result: { run: 1 } }]);
    }
    for (const run of moody.told()) expect(run.map(({ id }) => id).filter((id) => reads.includes(id))).toEqual(reads);
  });

  test('[F12] [P3] is run again where its answer is still to be JSON', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url);
    const json = { Accept: 'application/json' };
    const sent = session.send(requestOf(1, 'tools/list', {}, { hangsUntil: 1 }), json);
    await moody.toldBy(0, 3);
    moody.kill();
    expect((await (await sent).answer()).json).toMatchObject({ id: 1, result: { run: 1 } });
  });

  test('[F12] [P3] of a batch is run again, and the rest answered with an error, together', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url, { version: '2025-03-26' });
    const batch = [
      toolCall(1, 'x', {}, hanging),
      requestOf(2, 'tools/list', {}, { hangsUntil: 1 }),
      requestOf(3, 'x'),
      { jsonrpc: '2.0', method: 'notifications/x' },
    ];
    const sent = session.send(batch, { Accept: 'application/json' });
    await moody.toldBy(0, 6);
    moody.kill();
    const { messages } = await (await sent).answer();
    expect(messages.map(({ id }) => id).sort()).toEqual([1, 2, 3]);
    expect(messages.find(({ id }) => id === 1)).toMatchObject(exited);
    expect(messages.find(({ id }) => id === 2)).toMatchObject({ result: { run: 1 } });
    expect(messages.find(({ id }) => id === 3)).toMatchObject({ result: { run: 0 } });
  });

  test('[F12] [P3] whose server dies of it is answered with an error in the end, and its session goes on', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url);
    const call = session.send(requestOf(1, 'resources/read', { uri: 'poison' }, { dies: true }));
    expect(await responseOf(call, 1)).toMatchObject(exited);
    expect(await statusOf(session)).toBe(200);
  });

  test('[F12] [P4] whose client went away meanwhile is run again, and its answer waits in the log', async () => {
    const moody = await startMoody({}, { args: ['--sse.streamAfter', '10ms'] });
    const session = await initialize(moody.gateway.url);
    const call = await sendHanging(moody, session, requestOf(1, 'tools/list', {}, { hangsUntil: 1 }));
    const { id } = await call.events.next();
    call.drop();
    moody.kill();
    await restored(moody.gateway);
    expect(await responseOf(session.getStream(id), 1)).toMatchObject({ result: { run: 1 } });
  });

  test('[F12] [P3] that was cancelled is not run again', async () => {
    const moody = await startMoody({}, { args: ['--sse.streamAfter', '10ms'] });
    const session = await initialize(moody.gateway.url);
    const call = await sendHanging(moody, session, requestOf(1, 'tools/list', {}, { hangsUntil: 1 }));
    await session.notify('notifications/cancelled', { requestId: 1 });
    await moody.toldBy(0, 4);
    moody.kill();
    await responseOf(call, 1);
    await ping(session);
    expect(moody.told()[1]?.filter(({ method }) => method === 'tools/list')).toEqual([]);
  });
});

describe('progress of what is run again', () => {
  test('[F12] [P3] not above the last value is not told again', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url);
    const call = await session.send(
      requestOf(1, 'tools/list', {}, { progressToken: 't', values: [1, 2, 3], hangsUntil: 1 }),
    );
    await call.nextMessage(({ params }) => params?.progress === 3);
    moody.kill();
    const { messages } = await call.answer();
    expect(messages.map(({ params }) => params?.progress)).toEqual([1, 2, 3, undefined]);
  });

  test('[F12] [P3] that is no number does no harm', async () => {
    const value = { valueOf: 1, toString: 1 };
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url);
    const call = await session.send(
      requestOf(1, 'tools/list', {}, { progressToken: 't', values: [value], hangsUntil: 1 }),
    );
    await call.nextMessage(({ params }) => params?.progressToken === 't');
    moody.kill();
    expect(await responseOf(call, 1)).toMatchObject({ result: { run: 1 } });
  });
});

describe('--defaults.rerun hints', () => {
  const tools = [
    { name: 'reads', annotations: { readOnlyHint: true } },
    { name: 'idem', annotations: { idempotentHint: true } },
    { name: 'writes', annotations: { readOnlyHint: false } },
    { name: 'bare' },
    { name: 'ask', annotations: { readOnlyHint: true } },
  ];
  const start = () => startMoody({ tools }, { args: ['--defaults.rerun', 'hints', '--sse.streamAfter', '10ms'] });
  const once = { hangsUntil: 1 };

  test('[F12] [P3] tools that a list declared harmless are run again, others are not', async () => {
    const moody = await start();
    const session = await initialize(moody.gateway.url);
    await session.request('tools/list');
    const names = ['reads', 'idem', 'writes', 'bare', 'unknown'];
    const calls = [];
    for (const name of names) calls.push(await sendHanging(moody, session, toolCall(name, name, {}, once)));
    moody.kill();
    const responses = await Promise.all(calls.map((call, index) => responseOf(call, names[index] as string)));
    expect(responses.map(({ result, error }) => result?.run ?? error.data.reason)).toEqual([
      1,
      1,
      'server_exited',
      'server_exited',
      'server_exited',
    ]);
  });

  test('[F12] [P3] a list that another session got counts, since all of them are lists of the server', async () => {
    const moody = await start();
    await (await initialize(moody.gateway.url)).request('tools/list');
    const session = await initialize(moody.gateway.url);
    const call = await sendHanging(moody, session, toolCall('c', 'reads', {}, once));
    moody.kill();
    expect(await responseOf(call, 'c')).toMatchObject({ result: { run: 1 } });
  });

  test('[F12] [P3] without a list, and by default, no tool is run again', async () => {
    for (const args of [['--defaults.rerun', 'hints'], []]) {
      const moody = await startMoody({ tools }, { args });
      const session = await initialize(moody.gateway.url);
      if (args.length === 0) await session.request('tools/list');
      const call = await sendHanging(moody, session, toolCall('c', 'reads', {}, once));
      moody.kill();
      expect(await responseOf(call, 'c')).toMatchObject(exited);
    }
  });

  test('[F12] [P3] a call that has asked its client something is never run again', async () => {
    const moody = await start();
    const session = await initialize(moody.gateway.url);
    await session.request('tools/list');
    const call = await session.send(toolCall('c', 'ask', { as: 'q' }));
    await call.nextMessage(({ id }) => id === 'q');
    moody.kill();
    expect(await responseOf(call, 'c')).toMatchObject(exited);
  });

  test.each([true, false])(
    '[F12] [P3] nor one that may have asked, where several are in flight and a GET stream is open: %s',
    async (hasGet) => {
      const moody = await start();
      const session = await initialize(moody.gateway.url);
      await session.request('tools/list');
      const get = hasGet ? await session.getStream() : undefined;
      const call = await session.send(toolCall('c', 'ask', { as: 'q', method: 'roots/list', waits: 500 }));
      const other = await sendHanging(moody, session, toolCall('o', 'reads', {}, once));
      await (get ?? other).nextMessage(({ id }) => id === 'q');
      moody.kill();
      expect(await responseOf(call, 'c')).toMatchObject(exited);
      expect(moody.told()[1]?.filter(({ id }) => id === 'c') ?? []).toEqual([]);
    },
  );

  test('[F12] names that are no strings, from server and client, end nothing', async () => {
    const name = { toString: 1, valueOf: 1 };
    const moody = await startMoody({ tools: [{ name }, { name: 'reads' }] }, { args: ['--defaults.rerun', 'hints'] });
    const session = await initialize(moody.gateway.url);
    expect((await session.request('tools/list')).messages[0].result.tools[0]).toEqual({ name });
    const call = await sendHanging(moody, session, requestOf('c', 'tools/call', { name }, hanging));
    moody.kill();
    expect(await responseOf(call, 'c')).toMatchObject(exited);
    expect(await statusOf(session)).toBe(200);
  });
});

describe('--defaults.onExit end', () => {
  test('[F12] [P3] answers all calls, those that only read too, and ends the session, but not others', async () => {
    const moody = await startMoody({}, { args: ['--defaults.onExit', 'end', '--sse.streamAfter', '10ms'] });
    const session = await initialize(moody.gateway.url);
    const other = await initialize(moody.gateway.url);
    const first = moody.pids()[0] as number;
    const calls = [
      await session.send(requestOf(1, 'tools/list', {}, hanging)),
      await session.send(toolCall(2, 'x', {}, hanging)),
    ];
    process.kill(first, 'SIGKILL');
    for (const [index, call] of calls.entries()) expect(await responseOf(call, index + 1)).toMatchObject(exited);
    expect([await statusOf(session), await statusOf(other)]).toEqual([404, 200]);
    await waitForDescendants(moody.gateway.pid, 1);
  });
});

describe('a child that ends during initialize', () => {
  test('[F12] [P3] by kill -9: 502, no session, no child, and the next one works', async () => {
    const moody = await startMoody({ deaf: true, later: { deaf: false } });
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const opening = post(moody.gateway.url, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
    await moody.toldBy(0, 1);
    const [child] = await moody.gateway.descendants();
    moody.kill();
    const { status, headers, json } = await opening;
    expect([status, json.error.data.reason, headers['mcp-session-id']]).toEqual([
      502,
      'server_start_failed',
      undefined,
    ]);
    expect(await stillAlive(child === undefined ? [] : [child])).toEqual([]);
    const session = await initialize(moody.gateway.url);
    expect(await statusOf(session)).toBe(200);
  });

  test('[F12] [P3] by itself, with calls of another session in flight that notice nothing', async () => {
    const moody = await startMoody({ later: { dies: 4 } });
    const session = await initialize(moody.gateway.url);
    const call = await session.send(toolCall(1, 'x', {}, { hangsUntil: 0 }));
    await withDeadline(expect(initialize(moody.gateway.url)).rejects.toThrow(/502/), { what: 'the refusal' });
    expect(await responseOf(call, 1)).toMatchObject({ result: { run: 0 } });
    expect(await statusOf(session)).toBe(200);
    expect(await logged(moody.gateway, 'session ended')).toMatchObject([{ reason: 'server_start_failed' }]);
  });
});
