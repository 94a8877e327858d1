import { describe, expect, it, vi } from 'vitest';
import type { Call } from '../../../../../src/core/call/session-calls.ts';
import { createMessage } from '../../../../../src/core/protocol/message/message.ts';
import { EarlyRoots } from '../../../../../src/features/eras/modern-on-legacy/session/early-roots.ts';

const rootsRequest = createMessage({ id: 'r', method: 'roots/list' });

function create() {
  const pings: (() => void)[] = [];
  const gone = new Set<unknown>();
  const sent: string[] = [];
  const asked: unknown[] = [];
  const early = new EarlyRoots(
    { holds: ({ id }) => !gone.has(id) },
    {
      call: (ping, answer) => pings.push(() => answer.response(ping)),
      ask: (_, { id }) => asked.push(id),
    },
  );
  const call = (id: string, bytes = 1) => early.holds({ id } as Call, bytes, () => sent.push(id));
  const pong = () => pings.shift()?.();
  return { early, gone, sent, asked, call, pong };
}

describe('a request for roots right after the start', () => {
  it('goes to the first call, and calls are sent once the server has the roots', async () => {
    const { early, sent, asked, call, pong } = create();
    expect(early.keeps(rootsRequest)).toBe(true);
    expect(call('a')).toBe(true);
    expect(call('b')).toBe(true);
    expect(asked).toEqual([]);
    pong();
    expect([asked, sent]).toEqual([['a'], []]);
    early.noteAnswered(rootsRequest);
    pong();
    await vi.waitFor(() => expect(sent).toEqual(['a', 'b']));
    expect(call('c')).toBe(false);
    expect(early.keeps(rootsRequest)).toBe(false);
  });

  it('[P8] holds at most 16 MiB of calls', () => {
    const { sent, call, pong } = create();
    const mebibyte = 1024 * 1024;
    expect([call('a', 8 * mebibyte), call('b', 8 * mebibyte), call('c')]).toEqual([true, true, 'full']);
    pong();
    expect(sent).toEqual(['a', 'b']);
    expect(call('d')).toBe(false);
  });

  it('goes to the next call if the client of the first one has left, whose call is never sent', async () => {
    const { early, gone, sent, asked, call, pong } = create();
    call('a');
    early.keeps(rootsRequest);
    pong();
    gone.add('a');
    call('b');
    expect(asked).toEqual(['a', 'b']);
    early.noteAnswered(rootsRequest);
    pong();
    await vi.waitFor(() => expect(sent).toEqual(['b']));
  });

  it('delays no call of a server that asks nothing, and only for 2 s if it answers no ping', async () => {
    const quick = create();
    quick.call('a');
    quick.pong();
    expect(quick.sent).toEqual(['a']);
    const silent = create();
    silent.call('a');
    await vi.waitFor(() => expect(silent.sent).toEqual(['a']), { timeout: 10_000 });
  });

  it('may come again from a new process', () => {
    const { early, call, pong } = create();
    call('a');
    pong();
    early.reset();
    expect(early.keeps(rootsRequest)).toBe(true);
    expect(call('b')).toBe(true);
    early.close();
  });

  it('[P3] keeps no call back that came while the new process started', () => {
    const { early, sent, call, pong } = create();
    call('a');
    early.reset();
    pong(); // of before
    expect(sent).toEqual([]);
    pong();
    expect(sent).toEqual(['a']);
  });

  it('[P6] sends no call that waited for a lost process', () => {
    const { early, sent, call, pong } = create();
    call('a');
    early.noteLost();
    early.reset();
    call('b');
    pong();
    pong();
    expect(sent).toEqual(['b']);
  });
});
