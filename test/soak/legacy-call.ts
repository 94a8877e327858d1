import { setTimeout as delay } from 'node:timers/promises';
import type { Message, Session } from '../support/http-client.ts';
import { follow, type Listened } from '../support/resuming-client.ts';
import type { SseEvent } from '../support/sse-reader.ts';
import { hangMs, outcomeOf } from './talker.ts';

/** A call of a tool. */
export const callOf = (id: string, name: string, args: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
});

/** What each request of a session has. */
export const headersOf = ({ id, version }: Session) => ({ 'Mcp-Session-Id': id, 'MCP-Protocol-Version': version });

/** Answers a server's question, again while it could not be taken; what it comes to is seen by the answer to the call. */
async function respond(
  session: Session,
  id: string,
  result: object,
  tell: (seen: string) => void = () => undefined,
): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const status = await session.respond(id, result).then(
      (answer) => answer.status,
      () => 0, // its connection broke
    );
    tell(`${status} for the answer`);
    if (status !== 0 && status !== 502 && status !== 503) return;
    await delay(300);
  }
}

/** Runs a call of a session as a good client does, which comes again with the last event id, and answers what it is asked. */
export async function callAndFollow(
  url: string,
  session: Session,
  { id, name, args, expected }: { id: string; name: string; args: object; expected: string },
  {
    answer,
    onEvent,
    tell,
  }: { answer?(request: Message): object; onEvent?(event: SseEvent): void; tell?(seen: string): void } = {},
): Promise<string> {
  let response: Message;
  const responses: Promise<unknown>[] = [];
  const followed = await follow(url, {
    headers: headersOf(session),
    body: callOf(id, name, args),
    deadlineMs: hangMs,
    stayAway: () => delay(50),
    isLast(event) {
      const { data } = event;
      onEvent?.(event);
      tell?.(`${event.id} ${data?.slice(0, 80)}`);
      if (data === undefined || data === '') return false;
      const message: Message = JSON.parse(data);
      if (message.method !== undefined && message.id !== undefined && answer !== undefined) {
        responses.push(respond(session, message.id, answer(message), tell));
      }
      if (message.method !== undefined || (message.result === undefined && message.error === undefined)) return false;
      response = message;
      return true;
    },
  });
  await Promise.all(responses);
  const last = followed.transcript.at(-1) as Listened;
  if (followed.outcome === 'lost') return 'broken';
  if (followed.outcome !== 'done') {
    if (last.method === 'GET') return `a resume got ${last.status}: ${last.text.slice(0, 200)}`;
    response = last.text.startsWith('{') ? JSON.parse(last.text) : undefined;
  }
  return outcomeOf({ status: last.status, text: last.text, messages: response ? [response] : [] }, expected);
}
