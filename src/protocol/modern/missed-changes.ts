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
 * The notifications for a client whose subscription was reopened at another process: everything that it subscribed to
 * may have changed in the meantime.
 * @param acknowledgement the new process's message, which lists the changes that it will report
 * @param idText the id of the subscription as its client wrote it
 */
export function missedChanges(acknowledgement: Message, idText: string): Buffer[] {
  const agreed = readFilter(acknowledgement);
  const createNotification = (method: string, furtherMembers = ''): Buffer =>
    Buffer.from(
      `{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${subscriptionIdKey}":${idText}}${furtherMembers}}}`,
    );
  return [
    ...listChanges.filter(([flag]) => agreed[flag] === true).map(([, , method]) => createNotification(method)),
    ...(agreed.resourceSubscriptions ?? []).map((uri) =>
      createNotification(resourceUpdated, `,"uri":${JSON.stringify(uri)}`),
    ),
  ];
}

/**
 * The notifications that a subscription gets for a change that another process or instance reports; none if the filter
 * does not include the change.
 * @param change undefined if anything may have changed
 * @param filter the acknowledged filter
 * @param idText the id of the subscription as its client wrote it
 */
export function changesMatching(change: Message | undefined, filter: SubscriptionFilter, idText: string): Buffer[] {
  if (change === undefined) return missedChanges(readGatewayMessage(acknowledgementOf(filter, idText)), idText);
  return matchesFilter(change, filter) ? [toSubscriptionNotification(change, idText)] : [];
}
