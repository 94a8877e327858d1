import type { RequestId } from '../faults.ts';
import type { ByteRange } from '../json/byte-range.ts';
import { findRange, type Replacement, replaceParts, sortByStart } from '../json/splice.ts';
import { type Message, memberRange, memberValue } from '../message/message.ts';

/**
 * The ids of many clients on the one connection to a server that they share: each request goes out under a number of the
 * gateway's own, and what the server says of that number is given back under what the client had written (2026-07-28,
 * basic/transports/stdio). Nothing else of a text changes (P1).
 */

/** The key of `_meta` that says to which subscription a message belongs (2026-07-28, basic/patterns/subscriptions). */
export const subscriptionIdKey = 'io.modelcontextprotocol/subscriptionId';

/** A request as the server gets it, and what was replaced, as JSON text: `1`, `1.0` and `"1"` come back as they were. */
export interface RenumberedRequest {
  readonly text: Buffer;
  readonly idText: string;
  /** Undefined if the client asked for no progress. */
  readonly tokenText: string | undefined;
}

/**
 * Puts an id in the place of the request's own, and of the progress token if there is one.
 * @param cuts what else of the text the server does not get
 */
export function renumber(request: Message, renamed: RequestId, cuts: readonly ByteRange[] = []): RenumberedRequest {
  const by = JSON.stringify(renamed);
  const id = memberRange(request, 'message', 'id');
  // What is no token is the server's to refuse.
  const token = request.progressToken === undefined ? undefined : memberRange(request, 'meta', 'progressToken');
  if (id === undefined) throw new Error('the message has no id');
  const { text } = request;
  const [first, second] = token !== undefined && token.start < id.start ? [token, id] : [id, token];
  const replacements: Replacement[] = [{ start: first.start, end: first.end, by }];
  if (second !== undefined) replacements.push({ start: second.start, end: second.end, by });
  if (cuts.length > 0) {
    for (const { start, end } of cuts) replacements.push({ start, end, by: '' });
    sortByStart(replacements);
  }
  return {
    text: replaceParts(text, replacements),
    idText: text.toString('utf8', id.start, id.end),
    tokenText: token && text.toString('utf8', token.start, token.end),
  };
}

/** A response under the id that the client had written. */
export function restoreId(response: Message, idText: string): Buffer {
  return replaceParts(response.text, replacement(response, 'message', 'id', idText));
}

/** The response to a listen request: its result names the subscription, which is the id. */
export function restoreListenResponse(response: Message, idText: string): Buffer {
  const text = restoreId(response, idText);
  const place = findRange(text, ['result', '_meta', subscriptionIdKey]);
  return typeof place === 'object' ? replaceParts(text, [{ ...place, by: idText }]) : text;
}

/** A progress notification under the token that the client had written. */
export const restoreToken = (notification: Message, tokenText: string): Buffer =>
  replaceParts(notification.text, replacement(notification, 'params', 'progressToken', tokenText));

/** The subscription that a notification belongs to, if it names one. */
export function subscriptionOf(notification: Message): RequestId | undefined {
  const value = memberValue(notification, 'meta', subscriptionIdKey);
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

/** A notification of a subscription under the id that the client had written. */
export const restoreSubscription = (notification: Message, idText: string): Buffer =>
  replaceParts(notification.text, replacement(notification, 'meta', subscriptionIdKey, idText));

/** The response that ends a subscription in order (2026-07-28, basic/patterns/subscriptions, "Graceful Closure"). */
export const listenResult = (idText: string): Buffer =>
  Buffer.from(
    `{"jsonrpc":"2.0","id":${idText},"result":{"resultType":"complete","_meta":{"${subscriptionIdKey}":${idText}}}}`,
  );

function replacement(
  message: Message,
  level: 'message' | 'params' | 'meta',
  key: string,
  by: string,
): readonly Replacement[] {
  const place = memberRange(message, level, key);
  return place === undefined ? [] : [{ start: place.start, end: place.end, by }];
}
