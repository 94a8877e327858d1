import { expect, onTestFinished, test, vi } from 'vitest';
import { Canceller } from '../../../../src/features/remote/http-client/canceller.ts';
import type {
  ModernPostOutcome,
  ModernRequestPost,
  StatelessServer,
} from '../../../../src/features/remote/modern-http/modern-post.ts';

const pauses: number[] = [];
let streams: number[] = [];

vi.mock('../../../../src/core/backend/reconnect-pause.ts', async (original) => ({
  ...(await original<object>()),
  pauseBeforeReconnect: async (failures: number) => pauses.push(failures) > 0,
}));
vi.mock('../../../../src/features/remote/modern-http/modern-post.ts', () => ({
  async postModernRequest({ onNotifications, canceller }: ModernRequestPost): Promise<ModernPostOutcome> {
    onNotifications([]);
    vi.advanceTimersByTime(streams.shift() ?? 0);
    if (streams.length === 0) canceller.abort();
    return { ok: false, reason: 'server_unreachable', detail: 'cut' };
  },
}));

test.each([
  ['lives for a while, as behind a proxy that cuts idle streams', 4_000, [0, 0, 0, 0]],
  ['ends at once', 100, [0, 1, 2, 3]],
])('a subscription whose stream %s is opened again with pauses that fit', async (_, livesMs, expected) => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  pauses.length = 0;
  streams = Array.from({ length: 5 }, () => livesMs);
  const { keepSubscription } = await import('../../../../src/features/remote/modern-http/subscription-stream.ts');
  const post = { canceller: new Canceller(), onNotifications: () => undefined } as unknown as ModernRequestPost;
  await keepSubscription(post, {} as StatelessServer);
  expect(pauses).toEqual(expected);
});
