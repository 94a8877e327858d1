import { setTimeout as delay } from 'node:timers/promises';
import { connectOld, type OldClient } from '../support/old-client.ts';
import { callOf } from './legacy-call.ts';
import { noticedMs } from './stage.ts';
import { hangMs, outcomeOf, reasonOf, type Talker } from './talker.ts';

/**
 * Clients of HTTP+SSE (2024-11-05). Their sessions end with their streams (docs/decisions/0195). As an EventSource does,
 * they open another stream, and go on without `initialize`.
 */
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
    /** False from the end of a stream until the next one has named its endpoint. */
    let isConnected = true;
    /** What the stream did, for whoever looks for the cause of a failure. */
    let seen: string[] = [];
    const note = (what: string): void => void seen.push(`at ${Math.round(performance.now())} ms: ${what}`);
    const keepOpen = async (): Promise<void> => {
      while (!isOver) {
        const { status, text } = await own.stream.ended;
        isConnected = false;
        note(`the stream ended, ${status} ${text.slice(0, 100)}`);
        await delay(100);
        if (isOver) return;
        isConnected = await own.connect().then(
          () => true,
          () => false, // it has ended before it named its endpoint
        );
        note(isConnected ? 'the stream is open' : 'the stream broke at once');
        if (isOver) own.drop();
      }
    };
    const open = keepOpen();
    for (let n = 0; n < 20 && !stopped.aborted; n++) {
      while (!isConnected && !stopped.aborted) await pause(100);
      const id = `old-${n}`;
      const text = mark();
      const count = random.integer(0, 10);
      const args = { count, gapMs: random.integer(0, 30), mark: text };
      const outcome = await deed('call', 1_000, async (tell) => {
        const { stream } = own;
        const ended = stream.ended.then(() => 'ended' as const);
        const answer = await own.post(callOf(id, count === 0 ? 'quick' : 'count', args));
        for (const what of seen) tell(what);
        seen = [];
        if (answer.status === 404 && (await Promise.race([ended, delay(noticedMs)])) === 'ended') return 'broken';
        if (answer.status !== 202) return reasonOf(answer);
        const message = await Promise.race([own.response(id, { deadlineMs: hangMs }), ended]);
        if (message === 'ended') return 'broken';
        const outcome = outcomeOf({ status: 200, text: '', messages: [message] }, text);
        const told = own.heard.items.filter(({ params }) => params?.progressToken === id);
        const isInOrder = told.every(({ params }, index) => params.progress === index + 1);
        if (!isInOrder || (outcome === 'answered' && told.length !== count)) return `progress: ${JSON.stringify(told)}`;
        return outcome;
      });
      if (outcome === 'unknown_token') break;
      await pause(random.integer(300, 2_000));
    }
    isOver = true;
    own.drop();
    await open;
  },
};
