import { type Message, memberValue } from '../message.ts';
import { subscriptionIdKey } from './renumber.ts';
import { listChanges, resourceUpdated } from './subscription-filter.ts';

/**
 * What a client must be told whose subscription was opened again at another process: everything that it subscribed to may
 * have changed meanwhile.
 * @param acknowledgement of the new process, which says what it will tell
 * @param idText the id of the subscription as its client wrote it
 */
export function missedChanges(acknowledgement: Message, idText: string): Buffer[] {
  const filter = memberValue(acknowledgement, 'params', 'notifications');
  if (typeof filter !== 'object' || filter === null) return [];
  const agreed = new Map<string, unknown>(Object.entries(filter));
  const uris = agreed.get('resourceSubscriptions');
  const notify = (method: string, more = ''): Buffer =>
    Buffer.from(`{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${subscriptionIdKey}":${idText}}${more}}}`);
  return [
    ...listChanges.filter(([flag]) => agreed.get(flag) === true).map(([, , method]) => notify(method)),
    ...(Array.isArray(uris) ? uris : [])
      .filter((uri) => typeof uri === 'string')
      .map((uri) => notify(resourceUpdated, `,"uri":${JSON.stringify(uri)}`)),
  ];
}
