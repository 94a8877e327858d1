import { setTimeout as delay } from 'node:timers/promises';
import { initialize, post } from '../support/http-client.ts';
import { listen } from '../support/resuming-client.ts';
import { callAndFollow, callOf, headersOf } from './legacy-call.ts';
import { deleteOf, outcomeOf, reasonOf, type Talker } from './talker.ts';

/** Sessions that are opened, used, deleted, and then unknown. */
export const churn: Talker = {
  name: 'short sessions',
  everyMs: 4_000,
  async once({ stage, random, mark, deed, open }) {
    const url = stage.urlOf(random.chance(0.5) ? 'stdio' : 'remote');
    const session = await open(url);
    if (session === undefined) return;
    const { id, request } = session;
    const listening = random.chance(0.5) ? listen(url, { headers: headersOf(session) }) : undefined;
    const text = mark();
    await deed('call', 0, async () =>
      outcomeOf(await request('tools/call', { name: 'quick', arguments: { mark: text } }), text),
    );
    const deleted = await deed('delete', 0, () => deleteOf(session));
    if (deleted === 'answered') {
      await deed('request after the end', 0, async () => {
        const answer = await post(url, { jsonrpc: '2.0', id: 'p', method: 'ping' }, { 'Mcp-Session-Id': id });
        const outcome = outcomeOf(answer, '');
        return outcome === 'unknown_session' ? 'answered' : outcome;
      });
      const ended = listening?.ended ?? Promise.resolve();
      await deed('end of the GET stream', 0, () => ended.then(() => 'answered'));
    }
    listening?.drop();
  },
};

/** Calls that are cancelled: they end, with an error, within the grace of a cancelled call. */
export const canceller: Talker = {
  name: 'cancelled calls',
  everyMs: 10_000,
  async once({ stage, deed, stopped, pause, open }) {
    const url = stage.urlOf('stdio');
    const session = await open(url);
    if (session === undefined) return;
    for (let n = 0; n < 4 && !stopped.aborted; n++) {
      await deed('call', 1_000 + 200, async (tell) => {
        const id = `cancelled-${n}`;
        // Before the call has come in there is nothing to cancel, and another instance may be faster.
        let tellBegun: () => void = () => undefined;
        const begun = new Promise<void>((resolve) => {
          tellBegun = resolve;
        });
        const hold = { id, name: 'hold', args: {}, expected: 'never' };
        const called = callAndFollow(url, session, hold, { onEvent: () => tellBegun(), tell });
        await Promise.race([begun, called]);
        called.catch(() => undefined); // where the notification breaks nobody waits for it
        const told = await session.notify('notifications/cancelled', { requestId: id });
        const outcome = told.status === 202 ? await called : reasonOf(told);
        return outcome === 'cancelled' ? 'answered' : outcome;
      });
      await pause(500);
    }
    await deed('delete', 0, () => deleteOf(session));
  },
};

/** Clients that vanish in the middle of a call and never come back: their sessions end when they have been idle. */
export const vanisher: Talker = {
  name: 'clients that disconnect',
  everyMs: 15_000,
  async once({ stage, deed, random }) {
    const url = stage.urlOf(random.chance(0.7) ? 'stdio' : 'remote');
    await deed('', 1_000, async () => {
      const session = await initialize(url);
      const body = callOf('v', 'count', { count: random.integer(5, 50), gapMs: 20, mark: 'mark=gone/v.' });
      const listening = listen(url, { headers: headersOf(session), body });
      const getting = listen(url, { headers: headersOf(session) });
      await delay(random.integer(0, 400));
      listening.drop();
      getting.drop();
      return 'answered';
    });
  },
};
