import { setTimeout as delay } from 'node:timers/promises';
import { renewLeasesMs } from '../../src/features/eras/modern-on-legacy/session/subscription-leases.ts';
import { callModern, openModern } from '../support/modern-client.ts';
import { loadMs, noticedMs } from './stage.ts';
import { outcomeOf, type Talker } from './talker.ts';

/** So long after a fault a subscription may need until it is renewed, or its stream has ended. */
const renewedMs = 2 * noticedMs + loadMs;

/**
 * A modern client with a subscription, whose resource others update at any instance. Each update reaches it, or its stream
 * ends: a notification is never lost without a word.
 */
export const watcher: Talker = {
  name: 'subscriptions of modern clients',
  everyMs: 2_000,
  async once({ stage, ledger, mark, deed, random, pause, stopped }) {
    const url = stage.urlOf('asks');
    const uri = `test://${mark()}`;
    const openedAt = performance.now();
    let updates = 0;
    let isOver = false;
    let stream: Awaited<ReturnType<typeof openModern>> | undefined;
    await deed('open', 2_000, async () => {
      stream = await openModern(url, 'subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } });
      if (stream.status !== 200) return outcomeOf(await stream.answer(), '');
      await stream.nextMessage(({ method }) => method === 'notifications/subscriptions/acknowledged');
      return 'answered';
    });
    if (stream === undefined || stream.status !== 200) return;
    const own = stream;
    own.events.ended
      .catch(() => undefined)
      .then(() => {
        isOver = true;
      });
    const hear = async (): Promise<void> => {
      for (;;) {
        await own.nextMessage(({ method }) => method === 'notifications/resources/updated', { deadlineMs: 600_000 });
        updates += 1;
      }
    };
    hear().catch(() => undefined); // the stream has ended
    for (let n = 0; n < 8 && !isOver && !stopped.aborted; n++) {
      await pause(random.integer(500, 3_000));
      const before = updates;
      let isUpdated = false;
      const outcome = await deed('update', 1_000, async () => {
        const answer = await callModern(url, 'update_resource', { uri });
        isUpdated = JSON.stringify(answer.messages.at(-1) ?? {}).includes('told');
        return outcomeOf(answer, '');
      });
      if (outcome !== 'answered') continue;
      // Without a subscriber at the server there is nothing to hear, but a subscription that stays so is lost.
      // A session that is lost with its record is missed when it is looked for the next time.
      const heardMs = renewedMs + (ledger.mayHaveLostBoth(openedAt) ? renewLeasesMs : 0);
      await deed('notification', heardMs, async (tell) => {
        const until = performance.now() + heardMs;
        while (updates === before && !isOver && !stopped.aborted && performance.now() < until) {
          await delay(100);
          if (isUpdated) continue;
          const answer = await callModern(url, 'update_resource', { uri }).catch(() => undefined);
          isUpdated = JSON.stringify(answer?.messages.at(-1) ?? {}).includes('told');
        }
        tell(isUpdated ? 'the server has told it' : 'the server knows of no subscription');
        return updates > before || isOver || stopped.aborted ? 'answered' : 'lost';
      });
    }
    own.drop();
  },
};
