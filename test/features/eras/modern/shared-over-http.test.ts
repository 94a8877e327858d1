import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { probeEraOverHttp } from '../../../../src/features/eras/modern/http-era-probe.ts';
import { createFakeServer } from '../../../support/fake-backend.ts';
import { call, createShared, discovered, sharedOf, subscriptionKey } from './shared-fixture.ts';

const token = (authorization: string) => ({ authorization });
const progress = (progressToken: unknown): object => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: 1 },
});
const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: 'x' } };
const ready = ([what]: readonly [string, ...unknown[]]) => what === 'shared-server-ready';

describe('a transport that tells which request a message came beside', () => {
  it('[P11] gives each client its own log messages, however many clients want them', async () => {
    const { server, send, observed, numberOf, dropped } = createShared();
    const clients = [send(call(1), 'info'), send(call(1), 'debug'), send(call(1))];
    await observed.next(ready);
    for (const n of [1, 2, 3]) server.backend.saysBeside([numberOf(n)], log);
    expect(clients.map(({ got }) => got.items)).toEqual([[log], [log], []]);
    expect(dropped).toEqual(['log']);
  });

  it('[P11] [R6.12] drops a message that names another request', async () => {
    const { server, send, observed, numberOf, dropped } = createShared();
    const [one, other] = [send(call(1, 'tools/call', { _meta: { progressToken: 7 } })), send(call(1))];
    await observed.next(ready);
    server.backend.saysBeside([numberOf(2)], progress(numberOf(1)), { jsonrpc: '2.0', id: numberOf(1), result: {} });
    const changed = { _meta: { [subscriptionKey]: numberOf(1) } };
    server.backend.saysBeside([numberOf(2)], {
      jsonrpc: '2.0',
      method: 'notifications/tools/list_changed',
      params: changed,
    });
    expect([one.got.items, other.got.items, dropped]).toEqual([[], [], ['foreign', 'foreign', 'foreign']]);
  });

  it('gives a client notifications of unknown kinds, but no changes that it did not subscribe to', async () => {
    const { server, send, observed, numberOf, dropped } = createShared();
    const client = send(call(1));
    const listener = send(call(2, 'subscriptions/listen'));
    await observed.next(ready);
    const other = { jsonrpc: '2.0', method: 'notifications/x', params: {} };
    const changed = { jsonrpc: '2.0', method: 'notifications/prompts/list_changed' };
    server.backend.saysBeside([numberOf(1)], other, changed);
    server.backend.saysBeside([numberOf(2)], other, log);
    expect([client.got.items, listener.got.items]).toEqual([[other], []]);
    expect(dropped).toEqual(['unattributed', 'unattributed', 'log']);
  });
});

describe('a request at a modern server over HTTP that is not answered', () => {
  it('[F28] [P3] runs again once with its own headers if it only reads, and ends with the reason otherwise', async () => {
    const { server, send, observed, numberOf } = createShared();
    const list = send(call('l', 'tools/list'), undefined, { headers: token('of list') });
    const tool = send(call('t'));
    await observed.next(ready);
    server.backend.leaves([numberOf(1), numberOf(2)], 'server_unreachable');
    expect(server.backend.sent.items.map(({ method }) => method)).toEqual([
      'server/discover',
      'tools/list',
      'tools/call',
      'tools/list',
    ]);
    expect(server.backend.headers[3]).toEqual(token('of list'));
    expect([list.got.items, tool.got.items]).toEqual([[], ['server_unreachable']]);
    server.backend.leaves([numberOf(1)], 'server_unreachable');
    expect(list.got.items).toEqual(['server_unreachable']);
  });

  it('[J-03] does not run again if the server was away for as long as a request waits', async () => {
    const { server, send, observed, numberOf } = createShared();
    const list = send(call('l', 'tools/list'));
    await observed.next(ready);
    server.backend.leaves([numberOf(1)], 'server_unreachable', true);
    expect(list.got.items).toEqual(['server_unreachable']);
    expect(server.backend.sent.items).toHaveLength(2);
  });

  it('ends with the reason if the server refused it', async () => {
    const { server, send, observed, numberOf } = createShared();
    const list = send(call('l', 'tools/list'));
    await observed.next(ready);
    server.backend.leaves([numberOf(1)], 'server_refused');
    expect(list.got.items).toEqual(['server_refused']);
    expect(server.backend.sent.items).toHaveLength(2);
  });
});

describe('the headers of a client at a shared modern server', () => {
  it('[P11] go with their own requests, and with the start that one of them causes', async () => {
    const { server, send, observed } = createShared();
    send(call(1), undefined, { headers: token('a') });
    send(call(1), undefined, { headers: token('b') });
    await observed.next(ready);
    send(call(1));
    expect(server.backend.headers).toEqual([token('a'), token('a'), token('b'), {}]);
  });

  it('[P11] if the server refuses a start with them, fail no other client', async () => {
    const fake = createFakeServer((message, backend) => {
      if (message['method'] !== 'server/discover') return;
      if (backend.headers[0]?.['authorization'] === undefined) backend.ends({ reason: 'failed' });
      else backend.says({ jsonrpc: '2.0', id: message['id'], result: discovered });
    });
    const shared = sharedOf(fake, {}, 10_000, { isRemote: true, forwardHeaders: ['authorization'] });
    const stranger = shared.send(call(1));
    const client = shared.send(call(1), undefined, { headers: token('a') });
    await shared.observed.next(ready);
    expect([stranger.got.items, client.got.items]).toEqual([['server_start_failed'], []]);
    expect(fake.backend.sent.items).toHaveLength(2);
  });
});

describe('a remote modern server', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is in no crash loop while it cannot be reached', async () => {
    const fake = createFakeServer((_, backend) => queueMicrotask(() => backend.ends({ reason: 'failed' })));
    const { send, observed } = sharedOf(fake, {}, 10_000, { isRemote: true });
    for (let i = 0; i < 8; i++) {
      const { got } = send(call(1));
      await vi.advanceTimersByTimeAsync(5_000);
      expect(got.items).toEqual(['server_start_failed']);
    }
    expect(observed.items.map(([what]) => what)).toEqual(Array(8).fill('shared-start-failed'));
  });

  it.each([
    ['answers as one of the modern era', { result: discovered }, { era: 'modern' }],
    [
      'refuses with an error of the legacy one',
      { error: { code: -32000, message: 'no' } },
      { era: 'legacy', isDoubtful: false },
    ],
    ['refuses as others do', { reason: 'failed', isOtherTransport: true }, { era: 'legacy', isDoubtful: true }],
    ['is not well', { reason: 'failed', isOtherTransport: false }, { era: undefined, end: { reason: 'failed' } }],
  ] as const)(
    '[R6.05] over HTTP is probed with one request, and has the era of its answer: it %s',
    async (_, answer, outcome) => {
      const fake = createFakeServer((message, backend) =>
        queueMicrotask(() => {
          if ('reason' in answer) backend.ends(answer);
          else backend.says({ jsonrpc: '2.0', id: message['id'], ...answer });
        }),
      );
      const headers = token('a');
      const probe = probeEraOverHttp({ open: fake.open, version: '1', timeoutMs: 9_000, headers });
      await vi.advanceTimersByTimeAsync(0);
      expect(await probe.outcome).toMatchObject(outcome);
      expect(fake.backend.sent.items.map(({ method }) => method)).toEqual(['server/discover']);
      expect(fake.backend.headers).toEqual([headers]);
      await probe.close();
    },
  );
});
