import { describe, expect, it } from 'vitest';
import type { BackendEnd, BackendEvents } from '../../../src/core/backend/backend.ts';
import { LaterBackend, type Opening } from '../../../src/core/backend/later-backend.ts';
import { createFakeServer, readMessage } from '../../support/fake-backend.ts';

const ping = (id: number, more = '') => readMessage({ jsonrpc: '2.0', id, method: 'ping', params: { more } });

/** A backend whose server is not ready yet. */
function openLater() {
  const server = createFakeServer();
  const ends: BackendEnd[] = [];
  const messages: unknown[] = [];
  const ignore = (): undefined => undefined;
  const user: BackendEvents = {
    onMessages: (received) => messages.push(...received),
    onEnd: (end) => ends.push(end),
    ...{ onNoise: ignore, onUnanswered: ignore },
  };
  let settle: (opening: Opening) => void = ignore;
  const ready = new Promise<Opening>((resolve) => {
    settle = resolve;
  });
  const backend = new LaterBackend(ready, user, undefined);
  const open = async (opening: Opening = server.open): Promise<void> => {
    settle(opening);
    await ready;
    await null;
  };
  return { server, ends, messages, backend, open };
}

describe('a backend whose server is made ready first', () => {
  it('gets the messages that have waited, in order, and stays paused', async () => {
    const { server, backend, messages, open } = openLater();
    expect([backend.pid, backend.send(ping(1)), backend.send(ping(2))]).toEqual([undefined, 'sent', 'sent']);
    backend.pause();
    await open();
    expect(server.backend.sent.items.map(({ id }) => id)).toEqual([1, 2]);
    expect([server.backend.isPaused, backend.pid]).toEqual([true, server.backend.pid]);
    backend.resume();
    expect([server.backend.isPaused, backend.send(ping(3))]).toEqual([false, 'sent']);
    server.backend.says({ jsonrpc: '2.0', id: 1, result: {} });
    expect(messages).toHaveLength(1);
  });

  it('is never opened once it is closed', async () => {
    const { server, backend, ends, open } = openLater();
    await backend.close();
    await open();
    expect([server.opened.length, ends.map(({ reason }) => reason), backend.send(ping(1))]).toEqual([
      0,
      ['closed'],
      'ended',
    ]);
  });

  it('ends with the reason why its server cannot be made ready', async () => {
    const { backend, ends, open } = openLater();
    await open({ reason: 'failed', detail: 'why' });
    expect([ends, backend.send(ping(1))]).toEqual([[{ reason: 'failed', detail: 'why' }], 'ended']);
  });

  it('[P8] takes no more than 16 MiB before that', () => {
    const { backend } = openLater();
    const large = 'x'.repeat(3_900_000);
    const results = [1, 2, 3, 4, 5].map((id) => backend.send(ping(id, large)));
    expect(results).toEqual(['sent', 'sent', 'sent', 'sent', 'full']);
  });
});
