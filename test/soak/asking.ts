import type { Message } from '../support/http-client.ts';
import { callAndFollow } from './legacy-call.ts';
import { deleteOf, type Talker } from './talker.ts';

const capabilities = { sampling: {}, elicitation: {}, roots: {} };

/** Round trips of a legacy client: the server asks in the middle of a call, and the answer comes by any instance. */
export const asker = (server: 'asks' | 'modern', tools: readonly string[]): Talker => ({
  name: `input requests to legacy clients on ${server}`,
  everyMs: 2_000,
  async once({ stage, mark, deed, random, pause, stopped, open }) {
    const url = stage.urlOf(server);
    const session = await open(url, { capabilities });
    if (session === undefined) return;
    for (let n = 0; n < 12 && !stopped.aborted; n++) {
      const text = mark();
      const name = tools[random.integer(0, tools.length - 1)] as string;
      const args = { message: 'who', prompt: 'what', text };
      const call = { id: `q${n}`, name, args, expected: text };
      const outcome = await deed('call', 500, (tell) =>
        callAndFollow(url, session, call, { answer: (request) => answerWith(text, request), tell }),
      );
      if (outcome === 'unknown_session') return;
      await pause(random.integer(500, 3_000));
    }
    await deed('delete', 0, () => deleteOf(session));
  },
});

function answerWith(text: string, { method }: Message): object {
  if (method === 'roots/list') return { roots: [{ uri: `file:///${text}`, name: text }] };
  if (method !== 'elicitation/create') {
    return { role: 'assistant', content: { type: 'text', text }, model: 'm' };
  }
  return { action: 'accept', content: { username: text, email: 'a@b.c', name: text } };
}
