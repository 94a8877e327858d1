import { withoutMember } from '../members.ts';
import { type Message, placeOf } from '../message.ts';
import { valueAt } from '../splice.ts';
import { serverInfoKey } from './opening.ts';

/** What a legacy server asks its client in the middle of a request, for a client of the modern era (2026-07-28, basic/patterns/mrtr). */
export interface AskedInput {
  /** The server's requests under keys of the gateway's. */
  readonly questions: ReadonlyMap<string, Message>;
  /** What the client is to bring back with the answers. */
  readonly requestState: string;
  /** Who the server said it is, as JSON text. */
  readonly serverInfoText?: string | undefined;
}

/**
 * The result that asks a modern client for input: method and params of each request as the server wrote them (P1), without
 * its JSON-RPC id.
 * @param idText the id of the client's request, as JSON text
 */
export function inputRequiredResult(idText: string, { questions, requestState, serverInfoText }: AskedInput): Buffer {
  const asked = [...questions].map(([key, question]) => `${JSON.stringify(key)}:${questionOf(question)}`);
  const members = [
    '"resultType":"input_required"',
    `"inputRequests":{${asked.join()}}`,
    `"requestState":${JSON.stringify(requestState)}`,
    ...(serverInfoText === undefined ? [] : [`"_meta":{"${serverInfoKey}":${serverInfoText}}`]),
  ];
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"result":{${members.join()}}}`);
}

/** The modern era has no id of its own for what is to be answered at a URL (2026-07-28, changelog), and no tasks for questions. */
function questionOf(question: Message): string {
  const method = JSON.stringify(question.method);
  const place = placeOf(question, 'message', 'params');
  if (place === undefined) return `{"method":${method}}`;
  const params = withoutMember(question.text.subarray(place.start, place.end), ['task']);
  const isAtUrl = valueAt(params, ['mode'])?.toString() === '"url"';
  return `{"method":${method},"params":${isAtUrl ? withoutMember(params, ['elicitationId']) : params}}`;
}
