import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '../support/http-client.ts';
import { listen } from '../support/resuming-client.ts';
import type { Ledger } from './ledger.ts';
import { callAndFollow, headersOf } from './legacy-call.ts';
import { idleMs } from './stage.ts';
import { deleteOf, type Talker } from './talker.ts';

/** Sessions that nobody uses for longer than their processes live, and that wake when they are used again. */
export const sleeper: Talker = {
  name: 'hibernating sessions',
  everyMs: 1_000,
  atOnce: 3,
  async once({ stage, deed, mark, random, pause, stopped, ledger, open }) {
    const url = stage.urlOf('sleepy');
    const openedAt = performance.now();
    const session = await open(url);
    if (session === undefined) return;
    const listening = { isOpen: random.chance(0.7) };
    let usedAt = openedAt;
    const following = listening.isOpen ? stayOpen(url, session, stopped, ledger) : undefined;
    while (!stopped.aborted) {
      await pause(random.integer(8_000, 30_000));
      if (stopped.aborted) break;
      const text = mark();
      let isOver = false;
      await deed('wake', 1_000, async (tell) => {
        const call = { id: `wake-${text}`, name: 'quick', args: { mark: text }, expected: text };
        const outcome = await callAndFollow(url, session, call, { tell });
        if (outcome === 'answered') usedAt = performance.now();
        if (outcome !== 'unknown_session') return outcome;
        isOver = true;
        // The call before it has not reached the session, which nobody has used for long enough then.
        if (!listening.isOpen && performance.now() - usedAt > idleMs) return 'answered';
        // Many takeovers without progress end a session.
        const from = Math.max(openedAt, performance.now() - 600_000);
        return ledger.mayHaveEnded(from) ? 'answered' : outcome;
      });
      if (isOver) return following?.stop();
    }
    following?.stop();
    await deed('delete', 0, () => deleteOf(session));
  },
};

/** Keeps the GET stream open, with the last event id after each break; tells of a status that must not be. */
function stayOpen(url: string, session: Session, stopped: AbortSignal, ledger: Ledger) {
  const left = new AbortController();
  const signal = AbortSignal.any([left.signal, stopped]);
  const run = async (): Promise<void> => {
    let after: string | undefined;
    while (!signal.aborted) {
      const listening = listen(url, {
        headers: headersOf(session),
        after,
        onEvent: ({ id }) => {
          after = id ?? after;
        },
      });
      const drop = (): void => listening.drop();
      signal.addEventListener('abort', drop);
      const { status, text } = await listening.ended;
      signal.removeEventListener('abort', drop);
      if (![0, 200, 404, 502].includes(status)) ledger.fail(`a GET of a session that sleeps got ${status}: ${text}`);
      if (status === 404) return;
      await delay(status === 200 ? 100 : 500);
    }
  };
  const running = run();
  return {
    async stop(): Promise<void> {
      left.abort();
      await running;
    },
  };
}
