import { createHash } from 'node:crypto';
import type { RequestId } from '../../../protocol/faults.ts';
import { withoutMember } from '../../../protocol/message/edit-members.ts';
import { type Message, memberRange, readGatewayMessage } from '../../../protocol/message/message.ts';
import { type EventId, formatEventId, parseEventId } from '../../../protocol/wire/event-id.ts';

/** A question of the server that a client is to answer under a key (2026-07-28, basic/patterns/mrtr). */
export interface ServerQuestion {
  readonly key: string;
  /** The id under which the server asked. */
  readonly id: RequestId;
  readonly method: string;
  /** JSON text; undefined if it has none. */
  readonly params: Buffer | undefined;
}

/** What the state of a parked call says: enough for any instance to go on with it. A value of JSON. */
export interface ParkedCall {
  /** The place of the session that runs it. */
  readonly place: string;
  /** The id of the call there. */
  readonly call: RequestId;
  /** The event behind which the oldest open question is heard again; the newest that the client was told of. */
  readonly after: string;
  readonly told: string;
  /** The open questions by key, and those that were answered since `after`, by the ids of the server. */
  readonly open: readonly (readonly [key: string, id: RequestId])[];
  readonly answered: readonly RequestId[];
}

/** The key of a question: the same however often it is read. */
export const questionKey = ({ epoch, seq }: EventId): string => `input-${epoch}-${seq}`;

/** A server's request as a question. One that is answered at a URL has no id of its own there any more (2026-07-28). */
export function toServerQuestion(request: Message, at: EventId): ServerQuestion {
  const place = memberRange(request, 'message', 'params');
  const params = place && withoutMember(request.text.subarray(place.start, place.end), ['elicitationId']);
  return { key: questionKey(at), id: request.id as RequestId, method: request.method as string, params };
}

/** The result that asks a client for input. */
export function inputRequiredResult(
  idText: string,
  questions: readonly ServerQuestion[],
  state: string,
  serverInfoText: string | undefined,
): Buffer {
  const asked = questions.map(({ key, method, params }) => {
    const text = params === undefined ? '' : `,"params":${params}`;
    return `${JSON.stringify(key)}:{"method":${JSON.stringify(method)}${text}}`;
  });
  const meta = serverInfoText === undefined ? '' : `,"_meta":{"io.modelcontextprotocol/serverInfo":${serverInfoText}}`;
  return Buffer.from(
    `{"jsonrpc":"2.0","id":${idText},"result":{"resultType":"input_required","inputRequests":{${asked.join()}},` +
      `"requestState":${JSON.stringify(state)}${meta}}}`,
  );
}

/**
 * The answers of a client to what its request had asked for: as the server of the questions gets them, and a digest of all.
 * Those that are no objects are none, and what was not asked is left out (2026-07-28, basic/patterns/mrtr).
 * @param answers results by key, as JSON text
 */
export function toLegacyAnswers(
  open: ParkedCall['open'],
  answers: ReadonlyMap<string, Buffer>,
): { readonly messages: readonly Message[]; readonly digest: string } {
  const texts = open.flatMap(([key, id]) => {
    const result = answers.get(key);
    const isObject = result?.[0] === 0x7b;
    return isObject ? [Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`)] : [];
  });
  const digest = createHash('sha256');
  for (const text of texts) digest.update(text);
  return { messages: texts.map(readGatewayMessage), digest: digest.digest('base64url') };
}

export const formatStreamPosition = (at: EventId): string => formatEventId(at.stream, at);

/** Throws for what `formatPlace` did not write. */
export function parseStreamPosition(text: string): EventId {
  const at = parseEventId(text);
  if (at === undefined) throw new Error('a state that names no event');
  return at;
}
