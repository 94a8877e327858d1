import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { McpClient } from '../../src/core/backend/mcp-client.ts';
import { OwnRequests } from '../../src/core/backend/own-requests.ts';
import { nextOwnId } from '../../src/core/protocol/ids/own-ids.ts';
import { createMessage } from '../../src/core/protocol/message/message.ts';
import { probeEra } from '../../src/features/eras/modern/era-probe.ts';
import { asMessage } from '../support/as-message.ts';
import { createFakeServer } from '../support/fake-backend.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const open = () => {
  const server = createFakeServer();
  const client = new McpClient(server.open, { version: '1' });
  return { client, backend: server.backend };
};

describe('a client of the gateway itself', () => {
  test('has numbers as ids, and an envelope in the modern era', () => {
    const { client, backend } = open();
    client.request('legacy', 'tools/list', {});
    client.request('modern', 'tools/list', { cursor: 'c' });
    const [legacy, modern] = backend.sent.items;
    expect([legacy.params, typeof legacy.id, typeof modern.id]).toEqual([{}, 'number', 'number']);
    expect(modern.params).toMatchObject({
      cursor: 'c',
      _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' },
    });
  });

  test('answers a ping, and refuses what else a server wants', () => {
    const { backend } = open();
    backend.says({ jsonrpc: '2.0', id: 'p', method: 'ping' }, { jsonrpc: '2.0', id: 'r', method: 'roots/list' });
    backend.says({ jsonrpc: '2.0', method: 'notifications/message', params: {} });
    expect(backend.sent.items).toMatchObject([
      { id: 'p', result: {} },
      { id: 'r', error: { code: -32601 } },
    ]);
  });

  test.each([
    ['silent', { kind: 'silent' }, () => vi.advanceTimersByTime(1_000)],
    [
      'lost',
      { kind: 'unanswered', reason: 'server_unreachable' },
      ({ backend }: ReturnType<typeof open>) => backend.leaves([backend.sent.items[0].id], 'server_unreachable'),
    ],
    ['ended', { kind: 'ended' }, ({ backend }: ReturnType<typeof open>) => backend.ends()],
    [
      'sent back',
      { kind: 'echo' },
      ({ backend }: ReturnType<typeof open>) => backend.says({ jsonrpc: '2.0', ...backend.sent.items[0] }),
    ],
  ])('[P3] tells why there is no answer: %s', async (_, answer, act) => {
    const opened = open();
    const asked = opened.client.initialize(1_000);
    act(opened);
    expect(await asked).toMatchObject(answer);
    expect(opened.backend.sent.items).toHaveLength(1); // an echo is not answered
  });

  test('[P3] a request after the end is answered by it', async () => {
    const { client, backend } = open();
    backend.ends({ detail: 'gone' });
    expect(await client.discover()).toMatchObject({ kind: 'ended', end: { detail: 'gone' } });
  });
});

describe('requests of the gateway itself', () => {
  test('[P8] a late answer reaches nobody, of as many requests as are remembered', async () => {
    const requests = new OwnRequests();
    const ids = Array.from({ length: 101 }, () => nextOwnId());
    for (const id of ids) {
      const answer = requests.send(createMessage({ id, method: 'ping' }), () => 'sent', 10);
      vi.advanceTimersByTime(10);
      expect(await answer).toEqual({ kind: 'silent' });
    }
    const isOwn = (id: number | undefined): boolean =>
      requests.answer(asMessage(JSON.stringify({ jsonrpc: '2.0', id, result: {} })));
    expect([isOwn(ids[0]), isOwn(ids[1]), isOwn(ids[1]), isOwn(ids[100])]).toEqual([false, true, false, true]);
  });
});

test('the era of a command that sends everything back is given up at once', async () => {
  const server = createFakeServer((message, backend) => queueMicrotask(() => backend.says(message)));
  const probe = probeEra({ open: server.open, version: '1', timeoutMs: 60_000 });
  expect(await probe.outcome).toEqual({ era: undefined, end: undefined, isEcho: true });
  await probe.close();
});
