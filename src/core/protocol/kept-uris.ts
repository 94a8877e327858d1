import { budgetOfTexts, emptyEntryBytes } from '../util/bounded-map.ts';
import type { Reason } from './faults.ts';

/**
 * The number of resources that one client can subscribe to (P8). Each costs a request to its server, and another one to
 * each new process.
 */
export const maxSubscriptions = 500;

/**
 * A longer URI is in no table of the gateway (P8): neither subscribed to nor routed. Browsers and servers have similar
 * limits, and a client could otherwise keep 4 MiB in memory with each subscription.
 */
export const maxUriBytes = 2_048;

/** The bytes of all URIs that one session may have in a table. */
export const keptUris = budgetOfTexts(maxSubscriptions * (maxUriBytes + emptyEntryBytes), maxUriBytes);

/** True if the URI is too long to be kept. */
export const isLongUri = (uri: string): boolean => Buffer.byteLength(uri) > maxUriBytes;

/** The fault for a subscription that a session cannot have in addition to these; undefined if it can. */
export function refusalOfSubscription(
  known: Pick<ReadonlySet<string>, 'has' | 'size'>,
  uri: string,
): Reason | undefined {
  if (isLongUri(uri)) return 'uri_too_long';
  return known.size >= maxSubscriptions && !known.has(uri) ? 'too_many_subscriptions' : undefined;
}
