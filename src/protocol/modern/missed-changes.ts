import { type Message, readGatewayMessage } from '../message/message.ts';
import { subscriptionIdKey } from './renumber.ts';
import {
  acknowledgementOf,
  listChanges,
  matchesFilter,
  readFilter,
  resourceUpdated,
  type SubscriptionFilter,
  toSubscriptionNotification,
} from './subscription-filter.ts';

/**
 * What a client must be told whose subscription was opened again at another process: everything that it subscribed to may
 * have changed meanwhile.
 * @param acknowledgement of the new process, which says what it will tell
 * @param idText the id of the subscription as its client wrote it
 */
export function missedChanges(acknowledgement: Message, idText: string): Buffer[] {
  const agreed = readFilter(acknowledgement);
  const notify = (method: string, more = ''): Buffer =>
    Buffer.from(`{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${subscriptionIdKey}":${idText}}${more}}}`);
  return [
    ...listChanges.filter(([flag]) => agreed[flag] === true).map(([, , method]) => notify(method)),
    ...(agreed.resourceSubscriptions ?? []).map((uri) => notify(resourceUpdated, `,"uri":${JSON.stringify(uri)}`)),
  ];
}

/**
 * What a subscription is told of a change that another process or instance reports: nothing if it does not ask for it.
 * @param change undefined if anything may have changed
 * @param filter what was acknowledged
 * @param idText the id of the subscription as its client wrote it
 */
export function changesMatching(change: Message | undefined, filter: SubscriptionFilter, idText: string): Buffer[] {
  if (change === undefined) return missedChanges(readGatewayMessage(acknowledgementOf(filter, idText)), idText);
  return matchesFilter(change, filter) ? [toSubscriptionNotification(change, idText)] : [];
}
