import { createHash } from 'node:crypto';
import type { RequestId } from '../../../../core/protocol/faults.ts';
import { parseOwn } from '../../../../core/protocol/json.ts';
import { withoutMember } from '../../../../core/protocol/message/edit-members.ts';
import { type Message, memberRange, readGatewayMessage } from '../../../../core/protocol/message/message.ts';
import { serverInfoKey } from '../../../../core/protocol/modern/envelope.ts';
import { type EventId, formatEventId, parseEventId } from '../../../../core/protocol/wire/event-id.ts';

/** A server's question, which the client answers under a key (2026-07-28, basic/patterns/mrtr). */
export interface ServerQuestion {
  readonly key: string;
  /** The id of the server's request. */
  readonly id: RequestId;
  readonly method: string;
  /** JSON text; undefined if it has none. */
  readonly params: Buffer | undefined;
}

/** The content of a parked call's state: enough for any instance to resume the call. A JSON value. */
export interface ParkedCall {
  /** The key of the session that runs the call. */
  readonly place: string;
  /** The name of the call, which no other call of any instance has. */
  readonly call: string;
  /** The id of the call in that session. */
  readonly id: number;
  /**
   * `after`: a replay after this event delivers the oldest open question again. `told`: the newest event that the
   * client got.
   */
  readonly after: string;
  readonly told: string;
  /**
   * `open`: the open questions by key. `answered`: the questions that were answered since `after`, by the server's ids.
   */
  readonly open: readonly (readonly [key: string, id: RequestId])[];
  readonly answered: readonly RequestId[];
}

/** Where another instance reads on with a call that waits for nothing. A JSON value. */
export type FollowedCall = Pick<ParkedCall, 'place' | 'call' | 'id' | 'answered'> & {
  /** The newest event that was read, or the event before the oldest question that its client has not got. */
  readonly after: string;
};

/** Reads the point of a call, which an instance has stored. */
export const parseFollowedCall = (point: string): FollowedCall => parseOwn(point) as FollowedCall;

/** Returns the key of a question, which is the same each time the question is read. */
export const questionKey = ({ epoch, seq }: EventId): string => `input-${epoch}-${seq}`;

/**
 * Converts a server's request to a question. In 2026-07-28 a question that is answered at a URL has no id of its own.
 */
export function toServerQuestion(request: Message, at: EventId): ServerQuestion {
  const place = memberRange(request, 'message', 'params');
  const params = place && withoutMember(request.text.subarray(place.start, place.end), ['elicitationId']);
  return { key: questionKey(at), id: request.id as RequestId, method: request.method as string, params };
}

/** Returns the result that asks a client for input. */
export function inputRequiredResult(
  idText: string,
  questions: readonly ServerQuestion[],
  state: string,
  serverInfoText: string | undefined,
): Message {
  const inputRequests = questions.map(({ key, method, params }) => {
    const text = params === undefined ? '' : `,"params":${params}`;
    return `${JSON.stringify(key)}:{"method":${JSON.stringify(method)}${text}}`;
  });
  const meta = serverInfoText === undefined ? '' : `,"_meta":{"${serverInfoKey}":${serverInfoText}}`;
  return readGatewayMessage(
    Buffer.from(
      `{"jsonrpc":"2.0","id":${idText},"result":{"resultType":"input_required","inputRequests":{${inputRequests.join()}},` +
        `"requestState":${JSON.stringify(state)}${meta}}}`,
    ),
  );
}

/**
 * Converts a client's answers to the form that the server gets, and returns a digest of them. Answers that are no
 * objects, or that nobody asked for, are left out (2026-07-28, basic/patterns/mrtr).
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

/** Parses a text of `formatStreamPosition`; throws for any other. */
export function parseStreamPosition(text: string): EventId {
  const at = parseEventId(text);
  if (at === undefined) throw new Error('a state that names no event');
  return at;
}
