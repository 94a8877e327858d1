import type { RequestId } from '../../../../core/protocol/faults.ts';
import type { ByteRange } from '../../../../core/protocol/json.ts';
import { replaceParts } from '../../../../core/protocol/json.ts';
import { changedMessage } from '../../../../core/protocol/message/changed-message.ts';
import { findRemovals } from '../../../../core/protocol/message/edit-members.ts';
import { type Message, protocolVersionKey } from '../../../../core/protocol/message/message.ts';
import { clientCapabilitiesKey, clientInfoKey, logLevelKey } from '../../../../core/protocol/modern/envelope.ts';
import { type RenumberedRequest, renumber } from '../../../../core/protocol/modern/renumber.ts';
import { retryMemberKeys } from '../../../../core/protocol/modern/retry.ts';

/**
 * The members that describe a modern request. A legacy server gets their content in `initialize` or `logging/setLevel`.
 */
const envelopeKeys = [protocolVersionKey, clientInfoKey, clientCapabilitiesKey, logLevelKey];

/**
 * Members of `params` that a legacy server does not get: those of one attempt, and the tasks of 2025-11-25, which no
 * modern client can mean.
 */
const paramsKeys = [...retryMemberKeys, 'task'];

/**
 * Converts a modern client's request for a legacy server, with another id in place of its id and its progress token.
 * Everything else stays unchanged (P1): traces, and keys of `_meta` that the gateway does not know.
 */
export function asLegacyRequest(request: Message, id: RequestId): RenumberedRequest {
  const renumbered = renumber(request, id, findLegacyRemovals(request));
  const { text } = renumbered.request;
  return { ...renumbered, request: changedMessage(renumbered.request, text, { isModern: false, asksForTask: false }) };
}

/** Converts a modern client's notification for a legacy server. */
export function asLegacyNotification(notification: Message): Message {
  const removals = hasMoreMeta(notification)
    ? findRemovals(notification, 'meta', envelopeKeys)
    : findRemovals(notification, 'params', ['_meta']);
  const replacements = removals.map((range) => ({ ...range, by: '' }));
  return changedMessage(notification, replaceParts(notification.text, replacements), { isModern: false });
}

function findLegacyRemovals(request: Message): ByteRange[] {
  if (!hasMoreMeta(request)) return findRemovals(request, 'params', ['_meta', ...paramsKeys]);
  return [...findRemovals(request, 'params', paramsKeys), ...findRemovals(request, 'meta', envelopeKeys)];
}

/** False if `_meta` contains only members of the envelope. */
const hasMoreMeta = ({ memberRanges }: Message): boolean =>
  memberRanges.meta?.keys.some((key) => !envelopeKeys.includes(key)) ?? true;
