import type { RequestId } from '../faults.ts';
import type { ByteRange } from '../json.ts';
import { findRange, type Replacement, replaceParts, sortByStart } from '../json.ts';
import { changedMessage } from '../message/changed-message.ts';
import { type Message, memberRange, memberValue, readGatewayMessage } from '../message/message.ts';

/**
 * Replaces the ids of many clients that share one connection to a server. Each request goes out under a number of the
 * gateway's own. The server's messages about that number return under the client's id (2026-07-28,
 * basic/transports/stdio). Nothing else of a text changes (P1).
 */

/** The key of `_meta` that names the subscription of a message (2026-07-28, basic/patterns/subscriptions). */
export const subscriptionIdKey = 'io.modelcontextprotocol/subscriptionId';

/** The id of a client's request, and its JSON text: `1`, `1.0` and `"1"` come back as they were. */
export interface ClientId {
  readonly clientId: RequestId;
  readonly idText: string;
}

/** The replaced parts of a request. */
export interface RenumberedIds extends ClientId {
  /** The progress token, and its JSON text; undefined if the client requested no progress. */
  readonly clientToken: RequestId | undefined;
  readonly tokenText: string | undefined;
}

/** A request as the server gets it, and the replaced parts. */
export interface RenumberedRequest extends RenumberedIds {
  readonly request: Message;
}

/** The replaced parts alone: the request itself is not kept. */
export const idsOf = ({ clientId, idText, clientToken, tokenText }: RenumberedRequest): RenumberedIds => ({
  clientId,
  idText,
  clientToken,
  tokenText,
});

/**
 * Replaces the id of a request, and its progress token if there is one.
 * @param removals further ranges of the text that the server does not get
 */
export function renumber(original: Message, newId: RequestId, removals: readonly ByteRange[] = []): RenumberedRequest {
  const by = JSON.stringify(newId);
  const id = memberRange(original, 'message', 'id');
  // An invalid token stays, and the server refuses it.
  const token = original.progressToken === undefined ? undefined : memberRange(original, 'meta', 'progressToken');
  if (id === undefined) throw new Error('the message has no id');
  const { text } = original;
  const [first, second] = token !== undefined && token.start < id.start ? [token, id] : [id, token];
  const replacements: Replacement[] = [{ start: first.start, end: first.end, by }];
  if (second !== undefined) replacements.push({ start: second.start, end: second.end, by });
  if (removals.length > 0) {
    for (const { start, end } of removals) replacements.push({ start, end, by: '' });
    sortByStart(replacements);
  }
  return {
    request: changedMessage(original, replaceParts(text, replacements), {
      id: newId,
      ...(token !== undefined && { progressToken: newId }),
    }),
    clientId: original.id as RequestId,
    idText: text.toString('utf8', id.start, id.end),
    clientToken: token && original.progressToken,
    tokenText: token && text.toString('utf8', token.start, token.end),
  };
}

/** Returns a response under the id that the client wrote. */
export const restoreId = (response: Message, { clientId, idText }: ClientId): Message =>
  changedMessage(response, replaceParts(response.text, findReplacement(response, 'message', 'id', idText)), {
    id: clientId,
  });

/**
 * Returns the response to a listen request under the client's id. Its result names the subscription, which has the same
 * id.
 */
export function restoreListenResponse(response: Message, client: ClientId): Message {
  const restored = restoreId(response, client);
  const range = findRange(restored.text, ['result', '_meta', subscriptionIdKey]);
  if (typeof range !== 'object') return restored;
  return changedMessage(restored, replaceParts(restored.text, [{ ...range, by: client.idText }]), {});
}

/** Returns a progress notification under the token that the client wrote. */
export function restoreToken(notification: Message, clientToken: RequestId | undefined, tokenText: string): Message {
  const text = replaceParts(notification.text, findReplacement(notification, 'params', 'progressToken', tokenText));
  return changedMessage(notification, text, { progressToken: clientToken });
}

/** The subscription that a notification names, if any. */
export function subscriptionOf(notification: Message): RequestId | undefined {
  const value = memberValue(notification, 'meta', subscriptionIdKey);
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

/** Returns a notification of a subscription under the id that the client wrote. */
export function restoreSubscription(notification: Message, idText: string): Message {
  const text = replaceParts(notification.text, findReplacement(notification, 'meta', subscriptionIdKey, idText));
  return changedMessage(notification, text, {});
}

/** The response that ends a subscription in order (2026-07-28, basic/patterns/subscriptions, "Graceful Closure"). */
export const listenResult = (idText: string): Message =>
  readGatewayMessage(
    Buffer.from(
      `{"jsonrpc":"2.0","id":${idText},"result":{"resultType":"complete","_meta":{"${subscriptionIdKey}":${idText}}}}`,
    ),
  );

function findReplacement(
  message: Message,
  level: 'message' | 'params' | 'meta',
  key: string,
  by: string,
): readonly Replacement[] {
  const range = memberRange(message, level, key);
  return range === undefined ? [] : [{ start: range.start, end: range.end, by }];
}
