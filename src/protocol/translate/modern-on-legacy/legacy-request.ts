import type { RequestId } from '../../faults.ts';
import type { ByteRange } from '../../json/byte-range.ts';
import { replaceParts } from '../../json/splice.ts';
import { removalsOf } from '../../message/edit-members.ts';
import { type Message, protocolVersionKey } from '../../message/message.ts';
import { clientCapabilitiesKey, clientInfoKey, logLevelKey } from '../../modern/envelope.ts';
import { type RenumberedRequest, renumber } from '../../modern/renumber.ts';
import { retryMemberKeys } from '../../modern/retry.ts';

/** What a modern request says of itself, which a legacy server was told at `initialize` or by `logging/setLevel`. */
const envelopeKeys = [protocolVersionKey, clientInfoKey, clientCapabilitiesKey, logLevelKey];

/** Not for a legacy server: what is of one try alone, and the tasks of 2025-11-25, which no modern client can mean. */
const paramsKeys = [...retryMemberKeys, 'task'];

/**
 * A modern client's request as a legacy server gets it, under another id in place of its id and its progress token. Whatever
 * else is in it stays as it is (P1): traces, and keys of `_meta` that the gateway does not know.
 */
export const asLegacyRequest = (request: Message, id: RequestId): RenumberedRequest =>
  renumber(request, id, removals(request));

/** A modern client's notification as a legacy server gets it. */
export const asLegacyNotification = (notification: Message): Buffer =>
  replaceParts(
    notification.text,
    (hasMoreMeta(notification)
      ? removalsOf(notification, 'meta', envelopeKeys)
      : removalsOf(notification, 'params', ['_meta'])
    ).map((place) => ({ ...place, by: '' })),
  );

function removals(request: Message): ByteRange[] {
  if (!hasMoreMeta(request)) return removalsOf(request, 'params', ['_meta', ...paramsKeys]);
  return [...removalsOf(request, 'params', paramsKeys), ...removalsOf(request, 'meta', envelopeKeys)];
}

/** False if all of `_meta` is what the modern era wants to know. */
const hasMoreMeta = ({ memberRanges: places }: Message): boolean =>
  places.meta?.keys.some((key) => !envelopeKeys.includes(key)) ?? true;
