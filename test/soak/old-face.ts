import { setTimeout as delay } from 'node:timers/promises';
import { connectOld, type OldClient } from '../support/old-client.ts';
import { callOf } from './legacy-call.ts';
import { idleMs } from './stage.ts';
import { hangMs, outcomeOf, reasonOf, type Talker } from './talker.ts';

/** A session without a listener at its owner ends after so long: half its idle time. */
const lingerMs = idleMs / 2;

/** Clients of HTTP+SSE (2024-11-05), which reconnect with the last event id. */
export const oldFace: Talker = {
  name: 'HTTP+SSE clients',
  everyMs: 2_000,
  async once({ stage, deed, mark, random, pause, stopped }) {
    const baseUrl = stage.cluster.balancer.baseUrl;
    let client: OldClient | undefined;
    await deed('open', 2_000, async () => {
      client = await connectOld(baseUrl, { prefix: '/stdio' });
      return 'answered';
    });
    if (client === undefined) return;
    const own = client;
    let isOver = false;
    /** What the stream did, for whoever looks for the cause of a failure. */
    let seen: string[] = [];
    const note = (what: string): void => void seen.push(`at ${Math.round(performance.now())} ms: ${what}`);
    const keepOpen = async (): Promise<void> => {
      while (!isOver) {
        const { status, text } = await own.stream.ended;
        note(`the stream ended, ${status} ${text.slice(0, 100)}`);
        if (isOver || status === 404) return;
        await delay(100);
        if (!isOver) note(`the stream is open, ${(await own.connect()).listened.status}`);
        if (isOver) own.drop();
      }
    };
    const open = keepOpen();
    let answeredAt = performance.now();
    for (let n = 0; n < 20 && !stopped.aborted; n++) {
      const id = `old-${n}`;
      const text = mark();
      const count = random.integer(0, 10);
      const args = { count, gapMs: random.integer(0, 30), mark: text };
      const outcome = await deed('call', 1_000, async (tell) => {
        const answer = await own.post(callOf(id, count === 0 ? 'quick' : 'count', args));
        for (const what of seen) tell(what);
        seen = [];
        // Faults that follow each other may keep the instance of the client from the owner for longer than that.
        const isLong = performance.now() - answeredAt > lingerMs;
        if (answer.status === 404 && isLong && reasonOf(answer) === 'unknown_token') return 'already gone';
        if (answer.status !== 202) return reasonOf(answer);
        const message = await own.response(id, { deadlineMs: hangMs });
        const outcome = outcomeOf({ status: 200, text: '', messages: [message] }, text);
        const told = own.heard.items.filter(({ params }) => params?.progressToken === id);
        const isInOrder = told.every(({ params }, index) => params.progress === index + 1);
        if (!isInOrder || (outcome === 'answered' && told.length !== count)) return `progress: ${JSON.stringify(told)}`;
        if (outcome === 'answered') answeredAt = performance.now();
        return outcome;
      });
      if (outcome === 'unknown_token' || outcome === 'already gone') break;
      await pause(random.integer(300, 2_000));
    }
    isOver = true;
    own.drop();
    await open;
  },
};
