import { describe, expect, it, vi } from 'vitest';
import { waitFor } from '../../support/wait-for.ts';
import {
  alice,
  bob,
  call,
  createFixture,
  notification,
  openTwo,
  progress,
  result,
  withToken,
} from './reuse-fixture.ts';

const capabilities = { sampling: {}, elicitation: {} };
const log = (data: string) => notification('notifications/message', { level: 'info', data });
const isCall = ({ method }: { method?: string }) => method === 'tools/call';

describe('a session that leaves a call behind in a process that one other session uses', () => {
  it('[P2] [P11] what the server writes for that call reaches nobody, until the call is answered', async () => {
    const fixture = createFixture({ sharedBy: 'all', reuse: () => 'all', cancelGraceMs: 5_000, capabilities });
    const [first, second] = [fixture.open({ principal: alice }), fixture.open({ principal: bob })];
    expect(await first.shake()).toBe(await second.shake());
    const server = fixture.fake.backend;
    first.send(call(1));
    await first.backend.close({ isForGood: true });
    expect(server.sent.items.at(-1)).toMatchObject({ method: 'notifications/cancelled' });
    server.says(log('of alice'), call('s', 'sampling/createMessage', { prompt: 'of alice' }), progress(1));
    expect(server.sent.items.at(-1)).toMatchObject({ id: 's', error: {} });
    server.says(result(1), log('of alice, late'), call('t', 'sampling/createMessage', { prompt: 'of alice' }));
    expect(server.sent.items.at(-1)).toMatchObject({ id: 't', error: {} });
    second.send(call(1));
    server.says(log('of alice, late'), call('u', 'sampling/createMessage', { prompt: 'of bob' }));
    expect(second.received.items.slice(1)).toMatchObject([{ id: 'u' }]);
  });

  it('[P11] a question during a call of any method reaches nobody', async () => {
    const { first, second, server, newest } = await openTwo({ capabilities });
    first.send(call(1, 'completion/complete'));
    await first.backend.close({ isForGood: true });
    server.says(call('s', 'sampling/createMessage'));
    expect(newest()).toMatchObject({ id: 's', error: {} });
    expect(second.received.items).toHaveLength(1);
  });

  it('[P2] a call of the other session waits while the server may ask the first one, and is sent after the answer', async () => {
    const { first, second, server, methods, newest } = await openTwo({ capabilities });
    first.send(call(1));
    await first.backend.close({ isForGood: true });
    second.send(call(2));
    expect(methods().at(-1)).toBe('notifications/cancelled');
    server.says(result(1));
    await waitFor(() => isCall(newest()), { what: 'the call of the other session' });
    server.says(call('s', 'sampling/createMessage'));
    expect(second.received.items.at(-1)).toMatchObject({ id: 's' });
  });

  it('[P2] the call of the other session goes on after a while, if the server never answers', async () => {
    const { first, second, newest } = await openTwo({ capabilities, cancelGraceMs: 1 });
    first.send(call(1));
    await first.backend.close({ isForGood: true });
    second.send(call(2));
    await waitFor(() => isCall(newest()), { what: 'the call of the other session' });
  });

  it('[P11] late progress and a late answer reach nobody', async () => {
    const onDropped = vi.fn();
    const { first, second, server, newest } = await openTwo({ onDropped });
    second.send(call(1, 'tools/call', withToken(1)));
    const { id } = newest();
    vi.useFakeTimers();
    void second.backend.close({ isForGood: true });
    vi.advanceTimersByTime(5_000);
    vi.useRealTimers();
    server.says(progress(id), result(id), log('of the first'));
    expect(first.received.items.slice(1)).toEqual([log('of the first')]);
    expect(onDropped).toHaveBeenCalledTimes(2);
  });
});
