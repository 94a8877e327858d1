import type { Message } from '../support/http-client.ts';
import { retryWith } from '../support/input-required.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { GivenUp } from './given-up.ts';
import { outcomeOf, outcomeOfError, type Talker } from './talker.ts';

/** How often a client sends its answers again, as it may until its call has ended, and with which pause. */
const maxRepeats = 4;
const repeatPauseMs = 1_000;

const meta = { [metaKeys.clientCapabilities]: { sampling: {}, elicitation: {}, roots: {} } };

/**
 * Clients of the modern era on servers of both, also with a question in the middle, whose retry is at another instance. A
 * client that learns nothing of its answers sends them again: they are taken once, and the call runs once.
 */
export const modern = (server: 'stdio' | 'asks' | 'modern', tool: string, givenUp = new GivenUp()): Talker => ({
  name: `modern clients on ${server}`,
  everyMs: 1_000,
  async once({ stage, mark, deed, random, pause }) {
    const url = stage.urlOf(server);
    const text = mark();
    if (server !== 'stdio' && random.chance(0.3)) {
      const ownMs = 1_000 + maxRepeats * repeatPauseMs + givenUp.waitMs; // other calls do not wait: they cannot be asked
      const outcome = await deed('input request', ownMs, async (tell) => {
        const name = 'test_input_required_result_elicitation';
        const asked = await callModern(url, name, {}, { meta });
        const json = asked.messages.at(-1); // of a stream, where the call has waited for long
        tell(`${asked.status} ${json?.result?.resultType ?? outcomeOf(asked, text)}`);
        if (json?.result?.resultType !== 'input_required') return outcomeOf(asked, 'input_required');
        const params = retryWith({ ...asked, json }, () => ({ action: 'accept', content: { name: text } }));
        for (let repeats = 0; ; repeats++) {
          const answering = callModern(url, name, {}, { meta, params });
          const told = await answering.then((answer) => outcomeOf(answer, text), outcomeOfError);
          tell(told);
          if (repeats === maxRepeats || told === 'answered' || told.startsWith('wrong answer')) return told;
          await pause(repeatPauseMs);
        }
      });
      if (server === 'asks') givenUp.note(outcome);
      return;
    }
    if (random.chance(0.3) && server !== 'stdio') {
      await deed('progress', 1_000, async () => {
        const count = random.integer(2, 10);
        const args = { count, gapMs: random.integer(0, 50), marker: text };
        const answer = await callModern(url, 'progress', args, { meta: { progressToken: text } });
        const told = answer.messages.filter(({ method }: Message) => method === 'notifications/progress');
        const isOwn = told.every(({ params }: Message) => params.message === text);
        const isInOrder = told.every(({ params }: Message, n) => params.progress === count - told.length + n + 1);
        const outcome = outcomeOf(answer, text);
        if (outcome !== 'answered' || (isOwn && isInOrder && told.length === count)) return outcome;
        // What was reported while the way to its client was lost has no place to go to, in an era without resuming.
        return isOwn && isInOrder ? 'without its first progress' : `progress: ${JSON.stringify(told)}`;
      });
      return;
    }
    await deed('call', 1_000, async () => outcomeOf(await callModern(url, tool, { text, mark: text }), text));
  },
});
