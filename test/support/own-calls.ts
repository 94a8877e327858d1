import { expect } from 'vitest';
import type { Answer, Session } from './http-client.ts';

/** Calls our own fixture with this id and this progress token; the marker shows whose each message is. */
async function callMarked(session: Session, id: number, marker: string, count: number): Promise<Answer> {
  const _meta = { progressToken: id };
  return session.request('tools/call', { name: 'progress', arguments: { count, marker }, _meta }, { id });
}

/** Expects exactly the messages of this call: its progress in order, then its result. */
export function expectOwn({ messages }: Answer, id: number, marker: string, count: number): void {
  const progress = Array.from({ length: count }, (_, index) => ({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: id, progress: index + 1, total: count, message: marker },
  }));
  const result = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: marker }] } };
  expect(messages).toEqual([...progress, result]);
}

/** A client: its session by way of one address or several, which its calls use in turn. */
export interface Caller {
  readonly name: string;
  readonly sessions: readonly Session[];
}

/** Lets clients call at the same time with the same ids, and expects that each call gets its own answer. */
export async function callTogether(
  callers: readonly Caller[],
  { callsOfEach, inFlightOfEach }: { readonly callsOfEach: number; readonly inFlightOfEach: number },
): Promise<void> {
  const work = callers.flatMap(({ name, sessions }) => {
    let next = 0;
    return Array.from({ length: inFlightOfEach }, async () => {
      while (next < callsOfEach) {
        const id = next++;
        const marker = `${name}${id}`;
        // Without progress the answer is JSON, with it a stream; both kinds are in flight at once.
        const answer = await callMarked(sessions[id % sessions.length] as Session, id, marker, id % 3);
        expectOwn(answer, id, marker, id % 3);
      }
    });
  });
  await Promise.all(work);
}
