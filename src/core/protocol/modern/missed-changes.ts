import { type Message, readGatewayMessage } from '../message/message.ts';
import { subscriptionIdKey } from './renumber.ts';
import {
  listChanges,
  matchesFilter,
  resourceUpdated,
  type SubscriptionFilter,
  toSubscriptionNotification,
} from './subscription-filter.ts';

/**
 * The notifications for a client whose subscription was reopened at another process: everything that it subscribed to
 * may have changed in the meantime.
 * @param agreed the acknowledged filter, which lists the changes that the new process will report
 * @param idText the id of the subscription as its client wrote it
 */
export function missedChanges(agreed: SubscriptionFilter, idText: string): Message[] {
  const createNotification = (method: string, furtherMembers = ''): Message =>
    readGatewayMessage(
      Buffer.from(
        `{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${subscriptionIdKey}":${idText}}${furtherMembers}}}`,
      ),
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
export function changesMatching(change: Message | undefined, filter: SubscriptionFilter, idText: string): Message[] {
  if (change === undefined) return missedChanges(filter, idText);
  return matchesFilter(change, filter) ? [toSubscriptionNotification(change, idText)] : [];
}
