import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { allHeldBytes } from '../../../../../src/core/backend/held-bytes.ts';
import type { SharedServer } from '../../../../../src/features/eras/modern/process/shared-server.ts';
import { createFakeServer } from '../../../../support/fake-backend.ts';
import { call, createClient, createShared, readRequest, sharedOf, subscriptionKey } from '../shared-fixture.ts';

const listenCall = (id: unknown): object =>
  call(id, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
const ack = (number: number): object => ({
  jsonrpc: '2.0',
  method: 'notifications/subscriptions/acknowledged',
  params: { _meta: { [subscriptionKey]: number }, notifications: { toolsListChanged: true } },
});
const changed = (number: number, what = 'tools'): object => ({
  jsonrpc: '2.0',
  method: `notifications/${what}/list_changed`,
  params: { _meta: { [subscriptionKey]: number } },
});
const progress = (progressToken: unknown, value: number): object => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: value },
});
const log = (level: string, data: string): object => ({
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level, data },
});

describe('a shared modern process', () => {
  it('starts with the first request, gets server/discover and no initialize', async () => {
    const { shared, server, send, observed } = createShared();
    expect(server.opened).toHaveLength(0);
    send(call('a'));
    await observed.next(([what]) => what === 'shared-server-ready');
    send(call('a'));
    expect(server.opened).toHaveLength(1);
    expect(server.backend.sent.items.map(({ method }) => method)).toEqual([
      'server/discover',
      'tools/call',
      'tools/call',
    ]);
    await shared.drain(0);
  });

  it('[R6.08] [P2] gives each client its own messages, also where clients use the same ids and tokens', async () => {
    const { server, send, shared, observed } = createShared();
    const ids = [1, '1', 0, -7, 2 ** 53 - 1, 1, '1'];
    const clients = ids.map((id) => send(call(id, 'tools/call', { _meta: { progressToken: id } })));
    await observed.next(([what]) => what === 'shared-server-ready');
    const sent = server.backend.sent.items.slice(1);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(ids.length);
    for (const { id, params } of sent) expect(params._meta.progressToken).toBe(id);
    for (const [index, { id }] of [...sent.entries()].reverse()) server.backend.says(progress(id, index));
    for (const [index, { id }] of sent.entries()) server.backend.says({ jsonrpc: '2.0', id, result: { index } });
    for (const [index, { got }] of clients.entries()) {
      expect(got.items).toEqual([
        progress(ids[index], index),
        { status: 200, jsonrpc: '2.0', id: ids[index], result: { index } },
      ]);
    }
    await shared.drain(0);
  });

  it('[P3] [S-05] ends only the request whose response is too complex, at once', async () => {
    const { server, send, shared, dropped, observed } = createShared();
    const [first, second] = [send(call('a')), send(call('b'))];
    await observed.next(([what]) => what === 'shared-server-ready');
    const [, { id }, { id: other }] = server.backend.sent.items;
    const nested = '['.repeat(1_001) + ']'.repeat(1_001);
    server.backend.says(`{"result":{"a":${nested}},"jsonrpc":"2.0","id":${id}}`);
    expect(first.got.items).toEqual(['response_too_complex']);
    server.backend.says(`{"jsonrpc":"2.0","result":{"a":${nested}}}`, { jsonrpc: '2.0', id: other, result: {} });
    expect(second.got.items).toEqual([{ status: 200, jsonrpc: '2.0', id: 'b', result: {} }]);
    expect(dropped).toMatchObject(['noise']);
    await shared.drain(0);
  });

  it('[P3] [S-05] fails its start at once if the answer to server/discover is too complex', async () => {
    const nested = '['.repeat(1_001) + ']'.repeat(1_001);
    const server = createFakeServer(({ id }, backend) => {
      backend.says(`{"result":{"a":${nested}},"jsonrpc":"2.0","id":${id}}`);
    });
    const { send, shared } = sharedOf(server);
    const { got } = send(call('a'));
    await got.next(() => true);
    expect(got.items).toEqual(['server_not_modern']);
    await shared.drain(0);
  });

  it('[R6.12] [R6.02b] [F17] has messages that belong to no client dropped and counted', async () => {
    const { server, send, shared, dropped, observed } = createShared();
    const { got } = send(call(1, 'tools/call', { _meta: { progressToken: 1 } }));
    await observed.next(([what]) => what === 'shared-server-ready');
    server.backend.says(
      'not json',
      [7],
      { jsonrpc: '2.0', id: 999, result: {} },
      progress(999, 1),
      progress('1', 1),
      { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
      log('error', 'nobody asked'),
      { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'x' } },
    );
    expect(got.items).toEqual([]);
    expect(dropped).toEqual([...['noise', 'noise', 'late', 'late', 'late', 'unattributed', 'log', 'late']]);
    expect(server.backend.sent.items).toHaveLength(2);
    await shared.drain(0);
    expect(observed.items.at(-1)).toMatchObject([
      'shared-server-closed',
      { dropped: { noise: 2, late: 4, unattributed: 1, log: 1 } },
    ]);
  });

  it('[J-01] gets a method-not-found error at once for a request of its own, which is counted', async () => {
    const { server, send, shared, dropped, observed } = createShared();
    const headers = { authorization: 'a' };
    const { got } = send(call(1), undefined, { headers });
    await observed.next(([what]) => what === 'shared-server-ready');
    server.backend.says({ jsonrpc: '2.0', id: 'q', method: 'roots/list' });
    server.backend.saysBeside([server.backend.sent.items[1].id], { jsonrpc: '2.0', id: 7, method: 'ping' });
    expect(server.backend.sent.items.slice(2)).toMatchObject([
      { id: 'q', error: { code: -32601, data: { reason: 'no_server_requests' } } },
      { id: 7, error: { code: -32601 } },
    ]);
    expect(server.backend.headers.at(-1)).toBe(headers);
    expect([got.items, dropped]).toEqual([[], ['server_request', 'server_request']]);
    await shared.drain(0);
  });

  it('[J-02] [P11] has a vendor notification delivered to the only request in flight, never to one of several', async () => {
    const { server, send, shared, dropped, observed, numberOf } = createShared({ graceMs: 60_000 });
    const vendor = (n: number) => ({ jsonrpc: '2.0', method: 'notifications/acme/hello', params: { n } });
    const one = send(call(1));
    send(listenCall('l'));
    await observed.next(([what]) => what === 'shared-server-ready');
    server.backend.says(vendor(1));
    const two = send(call(1));
    server.backend.says(vendor(2));
    one.leave(); // the server may still speak of it
    server.backend.says(vendor(3));
    const three = send(call(1));
    server.backend.says({ jsonrpc: '2.0', id: server.backend.sent.items.at(-1).id, result: {} }, vendor(4));
    server.backend.says({ jsonrpc: '2.0', id: numberOf(1), result: {} }, vendor(5));
    server.backend.says({ jsonrpc: '2.0', id: numberOf(3), result: {} }, vendor(6));
    expect([one, two].map(({ got }) => got.items.map(({ params, id }) => params?.n ?? id))).toEqual([[1], [5, 1]]);
    expect(three.got.items).toMatchObject([{ status: 200 }]);
    expect(dropped).toEqual(['unattributed', 'unattributed', 'unattributed', 'late', 'unattributed']);
    await shared.drain(0);
  });

  it('[J-02] gets client notifications that waited for its start in order with the calls', async () => {
    const { server, send, shared, observed } = createShared();
    const notify = (n: number) =>
      shared.notify(readRequest({ jsonrpc: '2.0', method: 'notifications/acme/hello', params: { n } }), { h: `${n}` });
    expect(notify(1)).toBeUndefined();
    send(call(1));
    expect(notify(2)).toBeUndefined();
    await observed.next(([what]) => what === 'shared-server-ready');
    expect(notify(3)).toBeUndefined();
    expect(server.backend.sent.items.slice(1).map(({ method, params }) => params.n ?? method)).toEqual([
      ...[1, 'tools/call', 2, 3],
    ]);
    expect(server.backend.headers.slice(1)).toEqual([{ h: '1' }, {}, { h: '2' }, { h: '3' }]);
    await shared.drain(0);
  });

  it('[J-02] [P8] limits the notifications that wait for its start, and counts them as dropped if it does not start', async () => {
    const server = createFakeServer((_, backend) => backend.ends({ reason: 'failed' }));
    const { shared, dropped, observed } = sharedOf(server, { maxQueuedBytes: 150 });
    const hello = readRequest({ jsonrpc: '2.0', method: 'notifications/acme/hello', params: { pad: 'x'.repeat(50) } });
    const before = allHeldBytes();
    expect([shared.notify(hello), shared.notify(hello)]).toEqual([undefined, 'server_busy']);
    expect(allHeldBytes() - before).toBe(hello.text.length);
    await observed.next(([what]) => what === 'shared-start-failed');
    expect(dropped).toEqual(['unplaced']);
    expect(allHeldBytes()).toBe(before);
    await shared.drain(0);
  });

  it('[J-07] gets a cancellation with the reason that the client gave, if any', async () => {
    const { server, shared, observed } = createShared();
    const ask = () => shared.request(readRequest(call(1)), undefined, createClient().answer);
    const cancels = [ask(), ask()];
    await observed.next(([what]) => what === 'shared-server-ready');
    cancels[0]?.('The user pressed "stop" ü');
    cancels[1]?.();
    expect(server.backend.sent.items.slice(3).map(({ params }) => params.reason)).toEqual([
      'The user pressed "stop" ü',
      'The client no longer waits for the answer.',
    ]);
    await shared.drain(0);
  });

  it('[R2.20] [R2.21] [R2.24] has each of its errors answered with the matching HTTP status', async () => {
    const { send, shared } = createShared({
      onSend: ({ id, params }, backend) =>
        backend.says({ jsonrpc: '2.0', id, error: { code: (params as { code: number }).code, message: 'x' } }),
    });
    const statuses = [];
    for (const code of [-32601, -32021, -32022, -32602, 7]) {
      statuses.push((await send(call(1, 'tools/call', { code })).got.next()).status);
    }
    expect(statuses).toEqual([404, 400, 400, 200, 200]);
    await shared.drain(0);
  });
});

describe('a log message of a shared modern process', () => {
  const start = async (options?: Parameters<typeof createShared>[0]) => {
    const parts = createShared(options);
    parts.shared.start();
    await parts.observed.next(([what]) => what === 'shared-server-ready');
    return parts;
  };

  it('goes to the request that wants log messages, at its level and above', async () => {
    const { server, send, shared, dropped } = await start();
    const plain = send(call(1));
    const { got } = send(call(2), 'warning');
    server.backend.says(log('info', 'a'), log('warning', 'b'), log('emergency', 'c'), log('loud', 'd'));
    expect(plain.got.items).toEqual([]);
    expect(got.items.map(({ params }) => params.data)).toEqual(['b', 'c']);
    expect(dropped).toEqual(['log', 'log']);
    await shared.drain(0);
  });

  it('goes to nobody while several requests want log messages', async () => {
    const { server, send, shared, dropped } = await start();
    const clients = [send(call(1), 'debug'), send(call(1), 'debug')];
    server.backend.says(log('error', 'whose?'));
    expect(clients.map(({ got }) => got.items)).toEqual([[], []]);
    expect(dropped).toEqual(['log']);
    server.backend.says({ jsonrpc: '2.0', id: server.backend.sent.items[1].id, result: {} }, log('error', 'mine'));
    expect(clients[1]?.got.items).toHaveLength(1);
    await shared.drain(0);
  });

  it('[P11] goes to nobody once several users had requests: it may be a late one for another user', async () => {
    const { server, send, shared, dropped } = await start();
    const requesterOf = (subject: string) => ({
      principal: { issuer: 'keys', subject, client: '' },
      scopes: undefined,
    });
    const alice = send(call(1), 'debug', { requester: requesterOf('alice') });
    server.backend.says(log('info', 'of Alice'));
    expect(alice.got.items.map(({ params }) => params.data)).toEqual(['of Alice']);
    server.backend.says({ jsonrpc: '2.0', id: server.backend.sent.items[1].id, result: {} });
    const bob = send(call(2), 'debug', { requester: requesterOf('bob') });
    server.backend.says(log('info', 'of Alice'), { jsonrpc: '2.0', method: 'notifications/acme/hello' });
    expect(bob.got.items).toEqual([]);
    expect(dropped).toEqual(['log', 'unattributed']);
    await shared.drain(0);
  });

  it('[P11] of a cancelled request goes to no other client until the server has had time to stop', async () => {
    const { server, send, shared, dropped } = await start();
    const cancelled = send(call(1), 'debug');
    const { got } = send(call(2), 'debug');
    cancelled.leave();
    server.backend.says(log('error', 'of the cancelled one'));
    // An answer to a later request does not show that the server has stopped.
    send(call(3));
    server.backend.says({ jsonrpc: '2.0', id: server.backend.sent.items.at(-1).id, result: {} });
    server.backend.says(log('error', 'of the cancelled one'));
    expect([...cancelled.got.items, ...got.items]).toEqual([]);
    server.backend.says({ jsonrpc: '2.0', id: server.backend.sent.items[1].id, result: {} }, log('error', 'mine'));
    expect(got.items.map(({ params }) => params.data)).toEqual(['mine']);
    expect(dropped).toEqual(['log', 'log', 'late']);
    await shared.drain(0);
  });

  it('reaches the only request that is waited for, if one user alone has the process: it is about that or a cancelled one', async () => {
    const { server, send, shared, dropped } = await start({ isOfOneUser: true });
    const cancelled = send(call(1), 'debug');
    const { got } = send(call(2), 'debug');
    cancelled.leave();
    server.backend.says(log('error', 'of either'));
    expect(got.items.map(({ params }) => params.data)).toEqual(['of either']);
    send(call(3), 'debug');
    server.backend.says(log('error', 'whose?'));
    expect(got.items).toHaveLength(1);
    expect(dropped).toEqual(['log']);
    await shared.drain(0);
  });
});

describe('a client that leaves a shared modern process', () => {
  it('[R2.27] [R6.10] has its request cancelled at the server and gets nothing more', async () => {
    const { server, send, shared, dropped, observed } = createShared();
    const { got, leave } = send(call('x', 'tools/call', { _meta: { progressToken: 't' } }));
    await observed.next(([what]) => what === 'shared-server-ready');
    const { id } = server.backend.sent.items[1];
    leave();
    leave();
    expect(server.backend.sent.items.slice(2)).toMatchObject([
      { method: 'notifications/cancelled', params: { requestId: id } },
    ]);
    server.backend.says(progress(id, 1), { jsonrpc: '2.0', id, result: {} });
    expect(got.items).toEqual([]);
    expect(dropped).toEqual(['late', 'late']);
    await shared.drain(0);
  });

  it('[R5.08] has its subscription cancelled at the server, unless that was not sent yet', async () => {
    const { server, send, shared, observed } = createShared();
    send(call('early')).leave();
    const { leave } = send(listenCall('l'));
    await observed.next(([what]) => what === 'shared-server-ready');
    leave();
    const [, listen, cancelled] = server.backend.sent.items;
    expect(server.backend.sent.items).toHaveLength(3);
    expect(listen.method).toBe('subscriptions/listen');
    expect(cancelled).toMatchObject({ method: 'notifications/cancelled', params: { requestId: listen.id } });
    await shared.drain(0);
  });

  it('cannot cancel requests of other clients with a notification', async () => {
    const { server, send, shared, dropped, observed } = createShared();
    send(call(1));
    await observed.next(([what]) => what === 'shared-server-ready');
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } };
    expect(shared.notify(readRequest(cancelled))).toBeUndefined();
    expect(server.backend.sent.items).toHaveLength(2);
    expect(dropped).toEqual(['cancellation']);
    expect(shared.notify(readRequest({ jsonrpc: '2.0', method: 'notifications/x' }))).toBeUndefined();
    expect(server.backend.sent.items.at(-1)).toEqual({ jsonrpc: '2.0', method: 'notifications/x' });
    await shared.drain(0);
  });
});

describe('a subscription at a shared modern process', () => {
  const open = async () => {
    const parts = createShared();
    const ids = [7, '7', 7];
    const clients = ids.map((id) => parts.send(listenCall(id)));
    await parts.observed.next(([what]) => what === 'shared-server-ready');
    const numbers = parts.server.backend.sent.items.slice(1).map(({ id }) => id as number);
    return { ...parts, ids, clients, numbers };
  };

  it('[R5.01] [R5.02] [R9.03] gets only its own notifications, under its own id and that id’s type', async () => {
    const { server, clients, numbers, ids, shared } = await open();
    const other = { jsonrpc: '2.0', method: 'notifications/x', params: { _meta: { [subscriptionKey]: numbers[1] } } };
    server.backend.says(...numbers.map(ack), other);
    for (const [index, { got }] of clients.entries()) {
      expect(got.items[0].params._meta[subscriptionKey]).toBe(ids[index]);
      expect(got.items).toHaveLength(index === 1 ? 2 : 1);
    }
    expect(clients[1]?.got.items[1].params._meta[subscriptionKey]).toBe('7');
    await shared.drain(0);
  });

  it('gets a change of its kind that names no subscription, as all subscribers do, under its own id', async () => {
    const { server, clients, numbers, ids, dropped, shared } = await open();
    const [first = 0, second = 0] = numbers;
    const unnamed = (method: string) => ({ jsonrpc: '2.0', method: `notifications/${method}` });
    server.backend.says(ack(first), ack(second), unnamed('tools/list_changed'), unnamed('prompts/list_changed'));
    for (const [index, { got }] of clients.slice(0, 2).entries())
      expect(got.items[1]).toMatchObject({
        method: 'notifications/tools/list_changed',
        params: { _meta: { [subscriptionKey]: ids[index] } },
      });
    expect(clients.map(({ got }) => got.items.length)).toEqual([2, 2, 0]);
    expect(dropped).toEqual(['unattributed']);
    await shared.drain(0);
  });

  it.each([
    ['keeps only the newest subscription', (newest: number) => [newest, newest]],
    ['sends the older ones first', (newest: number, older: number[]) => [...older, newest, ...older, newest]],
    ['sends the newest one first', (newest: number, older: number[]) => [newest, ...older, newest, ...older]],
    ['sends copies of two changes together', (newest: number, older: number[]) => [newest, newest, ...older, ...older]],
  ])('[P2] gets each change of its kind once if the server %s', async (_, order) => {
    const { server, clients, numbers, ids, shared } = await open();
    server.backend.says(...numbers.map(ack));
    const [newest = 0, ...older] = [...numbers].reverse();
    server.backend.says(...order(newest, older).map((number) => changed(number)));
    for (const [index, { got }] of clients.entries()) {
      const changes = got.items.slice(1).map(({ params }) => params._meta[subscriptionKey]);
      expect(changes).toEqual([ids[index], ids[index]]);
    }
    await shared.drain(0);
  });

  it('[P2] gets no change of a kind that only a newer subscription has, nor one of an older one', async () => {
    const { server, clients, numbers, shared } = await open();
    const prompts = { ...ack(0), params: { _meta: {}, notifications: { promptsListChanged: true } } };
    const [first = 0, second = 0, third = 0] = numbers;
    server.backend.says(ack(first), ack(second));
    server.backend.says({ ...prompts, params: { ...prompts.params, _meta: { [subscriptionKey]: third } } });
    server.backend.says(changed(third, 'prompts'), changed(second), changed(first));
    expect(clients.map(({ got }) => got.items.slice(1).map(({ method }) => method))).toEqual([
      ['notifications/tools/list_changed'],
      ['notifications/tools/list_changed'],
      ['notifications/prompts/list_changed'],
    ]);
    await shared.drain(0);
  });

  it('[R5.01] [R5.05] gets nothing before the acknowledgement, and never progress or log messages', async () => {
    const { server, clients, numbers, dropped, shared } = await open();
    const [number = 0] = numbers;
    const meta = { _meta: { [subscriptionKey]: number } };
    const scoped = (method: string, params: object) => ({ jsonrpc: '2.0', method, params: { ...meta, ...params } });
    server.backend.says(changed(number), ack(number));
    server.backend.says(
      scoped('notifications/progress', { progressToken: number, progress: 1 }),
      scoped('notifications/message', { level: 'error', data: 'x' }),
      progress(number, 1),
    );
    expect(clients[0]?.got.items.map(({ method }) => method)).toEqual(['notifications/subscriptions/acknowledged']);
    expect(dropped).toEqual(['unacknowledged', 'unacknowledged', 'unacknowledged', 'late']);
    await shared.drain(0);
  });

  it('[R5.07] ends with a result, whether the server answers or cancels it', async () => {
    const { server, clients, numbers, shared } = await open();
    const [answered = 0, cancelled = 0] = numbers;
    const end = (id: unknown) => ({ resultType: 'complete', _meta: { [subscriptionKey]: id } });
    server.backend.says(...numbers.map(ack));
    server.backend.says(
      { jsonrpc: '2.0', id: answered, result: end(answered) },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: cancelled } },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 4711 } },
    );
    expect(clients[0]?.got.items.at(-1)).toEqual({ status: 200, jsonrpc: '2.0', id: 7, result: end(7) });
    expect(clients[1]?.got.items.at(-1)).toEqual({ status: 200, jsonrpc: '2.0', id: '7', result: end('7') });
    expect(clients[2]?.got.items).toHaveLength(1);
    await shared.drain(0);
  });

  it('[R5.07] [F27] ends with a result when the gateway ends, or with an error before the acknowledgement', async () => {
    const { server, clients, numbers, shared } = await open();
    server.backend.says(ack(numbers[0] as number));
    await shared.drain(0);
    expect(clients[0]?.got.items.at(-1)).toMatchObject({ id: 7, result: { resultType: 'complete' } });
    expect(clients[1]?.got.items).toEqual(['draining']);
    expect(server.backend.isClosed).toBe(true);
  });
});

describe('a failing shared modern process', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());
  const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  const close = async (shared: SharedServer) => {
    const drained = shared.drain(0);
    await tick();
    await drained;
  };

  it('[F12] [R6.14] [P3] ends its requests with an error at once, but requests that only read run again once', async () => {
    const { server, send, shared, observed } = createShared();
    const called = send(call(1));
    const read = send(call(2, 'resources/read', { _meta: { progressToken: 'p' } }));
    await tick();
    const [, , first] = server.backend.sent.items;
    server.backend.says(progress(first.id, 2));
    server.backend.ends();
    expect(called.got.items).toEqual(['server_exited']);
    await tick();
    expect(server.opened).toHaveLength(2);
    expect(server.backend.sent.items.map(({ method }) => method)).toEqual(['server/discover', 'resources/read']);
    server.backend.says(progress(first.id, 1), progress(first.id, 2), progress(first.id, 3));
    expect(read.got.items.map(({ params }) => params.progress)).toEqual([2, 3]);
    server.backend.ends();
    expect(read.got.items.at(-1)).toBe('server_exited');
    expect(observed.items.filter(([what]) => what === 'shared-server-ended')).toMatchObject([
      ['shared-server-ended', { end: { reason: 'exited' }, inFlight: 2, runAgain: 1 }],
      ['shared-server-ended', { end: { reason: 'exited' }, inFlight: 1, runAgain: 0 }],
    ]);
    await tick();
    expect(server.opened).toHaveLength(2); // nothing waits for a third
    await close(shared);
  });

  it('[F15] that wrote too long a line ends its requests with that reason', async () => {
    const { server, send, shared } = createShared();
    const { got } = send(call(1));
    await tick();
    server.backend.ends({ reason: 'line_too_long' });
    expect(got.items).toEqual(['line_too_long']);
    await close(shared);
  });

  it('[R5.09] has its subscriptions opened again, and their clients are told what may have changed', async () => {
    const { server, send, shared } = createShared();
    const { got } = send(listenCall('l'));
    await tick();
    const { id } = server.backend.sent.items[1];
    server.backend.says(ack(id), changed(id));
    server.backend.ends();
    await tick();
    expect(server.backend.sent.items[1]).toMatchObject({ id, method: 'subscriptions/listen' });
    server.backend.says(ack(id), changed(id));
    expect(got.items.map(({ method }) => method)).toEqual([
      'notifications/subscriptions/acknowledged',
      'notifications/tools/list_changed', // before
      'notifications/tools/list_changed', // of the gateway
      'notifications/tools/list_changed', // after
    ]);
    expect(new Set(got.items.map(({ params }) => params._meta[subscriptionKey]))).toEqual(new Set(['l']));
    await close(shared);
  });

  it('[R6.14] is replaced when the next request comes', async () => {
    const { server, send, shared } = createShared({
      onSend: ({ id }, backend) => backend.says({ jsonrpc: '2.0', id, result: {} }),
    });
    send(call(1));
    await tick();
    server.backend.ends();
    const { got } = send(call(2));
    await tick(250);
    expect(got.items).toMatchObject([{ id: 2, result: {} }]);
    expect(server.opened).toHaveLength(2);
    await close(shared);
  });

  it('that ends too often is in a crash loop: it does not start for a while, and every request fails with that reason', async () => {
    const { server, send, shared, observed } = createShared();
    const listening = send(listenCall('l'));
    await tick();
    server.backend.says(ack(server.backend.sent.items[1].id));
    for (let i = 0; i < 6; i++) {
      server.backend.ends();
      await tick(5_000);
    }
    expect(server.opened).toHaveLength(6);
    expect(listening.got.items.at(-1)).toBe('server_crash_loop');
    expect(observed.items.filter(([what]) => what === 'shared-crash-loop')).toEqual([
      ['shared-crash-loop', { pauseMs: 30_000 }],
    ]);
    expect(send(call(1)).got.items).toEqual(['server_crash_loop']);
    await tick(30_000);
    send(call(2));
    await tick(5_000);
    expect(server.opened).toHaveLength(7);
    await close(shared);
  });

  it('that cannot be restarted fails the waiting requests, while subscriptions keep waiting', async () => {
    let isBroken = false;
    const server = createFakeServer((message, backend) => {
      if (message['method'] !== 'server/discover') return;
      if (isBroken) queueMicrotask(() => backend.ends({ reason: 'failed', detail: 'no such program' }));
      else backend.says({ jsonrpc: '2.0', id: message['id'], result: { supportedVersions: ['2026-07-28'] } });
    });
    const { send, shared, observed } = sharedOf(server);
    const listening = send(listenCall('l'));
    await tick();
    server.backend.says(ack(server.backend.sent.items[1].id));
    const reading = send(call(1, 'tools/list'));
    isBroken = true;
    server.backend.ends();
    await tick(250);
    expect(reading.got.items).toEqual(['server_start_failed']);
    const failed = observed.items.filter(([what]) => what === 'shared-start-failed');
    expect(failed.length).toBeGreaterThan(0);
    for (const [, details] of failed) expect(details).toMatchObject({ isByProbe: false });
    isBroken = false;
    await tick(5_000);
    expect(server.backend.sent.items[1]).toMatchObject({ method: 'subscriptions/listen' });
    expect(listening.got.items).toHaveLength(1);
    await close(shared);
  });

  it('[F13] that is silent at its start is ended after the timeout, and waiting requests fail', async () => {
    const { send, shared, server } = sharedOf(createFakeServer(), {}, 1_000);
    const { got } = send(call(1));
    await tick(1_000);
    expect(got.items).toEqual(['server_start_timeout']);
    expect(server.backend.isClosed).toBe(true);
    await close(shared);
  });

  it('[R6.07] that answers server/discover like a legacy server fails the waiting requests', async () => {
    const server = createFakeServer(({ id }, backend) =>
      backend.says({ jsonrpc: '2.0', id, error: { code: -32601, message: 'x' } }),
    );
    const { send, shared, observed } = sharedOf(server);
    const { got } = send(call(1));
    await tick();
    expect(got.items).toEqual(['server_not_modern']);
    expect(observed.items.some(([what]) => what === 'notModern')).toBe(true);
    await close(shared);
  });

  it('[F13] that does not finish a request in time has it cancelled and answered, while subscriptions may last', async () => {
    vi.useRealTimers();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    const { server, send, shared } = createShared({ requestIdleMs: 1_000, requestTotalMs: 3_000 });
    const { got } = send(call(1, 'tools/call', { _meta: { progressToken: 1 } }));
    const listening = send(listenCall('l'));
    await tick();
    const { id } = server.backend.sent.items[1];
    await tick(900);
    server.backend.says(progress(id, 1));
    await tick(900);
    expect(got.items).toHaveLength(1);
    await tick(400);
    expect(got.items.at(-1)).toBe('request_timeout');
    expect(server.backend.sent.items.at(-1)).toMatchObject({ params: { requestId: id } });
    await tick(10_000);
    expect(listening.got.items).toEqual([]);
    await close(shared);
  });
});

describe('a shared modern server', () => {
  it('[P8] limits the requests in flight, including subscriptions', async () => {
    const { send, shared, observed } = createShared({ maxSharedCalls: 3 });
    const clients = [send(call(1)), send(listenCall(2)), send(call(3)), send(call(4))];
    expect(clients.map(({ got }) => got.items)).toEqual([[], [], [], ['server_full']]);
    await observed.next(([what]) => what === 'shared-server-ready');
    clients[0]?.leave();
    expect(send(call(5)).got.items).toEqual([]);
    await shared.drain(0);
  });

  it('[P8] limits the bytes that wait for the process and that subscriptions hold', async () => {
    const { send, shared, observed } = createShared({ maxQueuedBytes: 1_000 });
    const large = (id: number, method: string) => call(id, method, { padding: 'x'.repeat(600) });
    expect(send(large(1, 'tools/call')).got.items).toEqual([]);
    expect(send(large(2, 'tools/call')).got.items).toEqual(['server_busy']);
    await observed.next(([what]) => what === 'shared-server-ready');
    expect(send(large(3, 'tools/call')).got.items).toEqual([]); // goes out at once, and is not held
    const listening = send(large(4, 'subscriptions/listen'));
    expect(send(large(5, 'subscriptions/listen')).got.items).toEqual(['server_busy']);
    listening.leave();
    expect(send(large(6, 'subscriptions/listen')).got.items).toEqual([]);
    await shared.drain(0);
  });

  it('[P8] keeps requests to run again only while there is room', async () => {
    const { send, shared, server, observed } = createShared({ maxQueuedBytes: 1_000 });
    shared.start();
    await observed.next(([what]) => what === 'shared-server-ready');
    const reads = [1, 2].map((id) => send(call(id, 'resources/read', { padding: 'x'.repeat(600) })));
    server.backend.ends();
    expect(reads.map(({ got }) => got.items)).toEqual([[], ['server_exited']]);
    await shared.drain(0);
  });

  it('[P8] [F14] is busy if the process does not read, and then nothing of the request reaches it', async () => {
    const { send, shared, server, observed, dropped } = createShared();
    const { leave } = send(call(1));
    await observed.next(([what]) => what === 'shared-server-ready');
    server.backend.answerToSend = 'full';
    expect(send(call(2)).got.items).toEqual(['server_busy']);
    leave();
    expect(dropped).toEqual(['cancellation']);
    await shared.drain(0);
  });

  it('[F27] in a drain waits for requests in flight and refuses new ones', async () => {
    const { send, shared, server, observed } = createShared();
    const { got } = send(call(1));
    await observed.next(([what]) => what === 'shared-server-ready');
    const drained = shared.drain(60_000);
    expect(send(call(2)).got.items).toEqual(['draining']);
    server.backend.says({ jsonrpc: '2.0', id: server.backend.sent.items[1].id, result: {} });
    await drained;
    expect(got.items).toMatchObject([{ id: 1, result: {} }]);
    expect(server.backend.isClosed).toBe(true);
  });

  it('[F27] [P9] in a drain serves sessions until they have ended', async () => {
    const { send, shared, server, observed } = createShared();
    const listening = send(listenCall('l'), undefined, { isOfSession: true });
    await observed.next(([what]) => what === 'shared-server-ready');
    let end = (): void => undefined;
    const drained = shared.drain(60_000, new Promise<void>((resolve) => (end = resolve)));
    const { got } = send(call(1), undefined, { isOfSession: true });
    server.backend.says({ jsonrpc: '2.0', id: server.backend.sent.items.at(-1).id, result: {} });
    expect(got.items).toMatchObject([{ id: 1, result: {} }]);
    expect(listening.got.items).toEqual([]);
    listening.leave();
    end();
    await drained;
    expect(server.backend.isClosed).toBe(true);
  });

  it('[F27] [P3] in a drain says after the grace which requests another instance can run', async () => {
    const { send, shared, observed } = createShared();
    const sent = [send(call(1)), send(call(2, 'tools/list'))];
    await observed.next(([what]) => what === 'shared-server-ready');
    await shared.drain(1);
    expect(sent.map(({ got }) => got.items)).toEqual([['outcome_unknown'], ['draining']]);
  });

  it('[F27] [P3] in a drain says that a request has not run if its server has not started', async () => {
    const { send, shared } = sharedOf(createFakeServer());
    const { got } = send(call(1));
    await shared.drain(1);
    expect(got.items).toEqual(['draining']);
  });
});
