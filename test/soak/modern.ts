import type { Message } from '../support/http-client.ts';
import { retryWith } from '../support/input-required.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { outcomeOf, type Talker } from './talker.ts';

const meta = { [metaKeys.clientCapabilities]: { sampling: {}, elicitation: {}, roots: {} } };

/** Clients of the modern era on servers of both, also with a question in the middle, whose retry is at another instance. */
export const modern = (server: 'stdio' | 'asks' | 'modern', tool: string): Talker => ({
  name: `modern clients on ${server}`,
  everyMs: 1_000,
  async once({ stage, mark, deed, random }) {
    const url = stage.urlOf(server);
    const text = mark();
    if (server !== 'stdio' && random.chance(0.3)) {
      await deed('input request', 1_000, async (tell) => {
        const name = 'test_input_required_result_elicitation';
        const asked = await callModern(url, name, {}, { meta });
        tell(`${asked.status} ${asked.json?.result?.resultType ?? outcomeOf(asked, text)}`);
        if (asked.json?.result?.resultType !== 'input_required') return outcomeOf(asked, 'input_required');
        const params = retryWith(asked, () => ({ action: 'accept', content: { name: text } }));
        return outcomeOf(await callModern(url, name, {}, { meta, params }), text);
      });
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
