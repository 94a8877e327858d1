import type { ByteRange } from '../json.ts';
import { readScalar, scalarAt, scanList, scanMember, valueAt } from '../json.ts';
import { maxSubscriptions, maxUriBytes } from '../kept-uris.ts';
import { changedMessage } from '../message/changed-message.ts';
import { putMembers } from '../message/edit-members.ts';
import { type Message, memberRange, memberValue, readGatewayMessage } from '../message/message.ts';
import { methodOf, methods } from '../methods/methods.ts';
import { subscriptionIdKey } from './renumber.ts';

/** The member of a filter that requests changes of lists, such as `toolsListChanged`. */
type ListFlag = `${string}ListChanged`;

/** The changes that a client subscribes to (2026-07-28, basic/patterns/subscriptions, "Notification Filter"). */
export interface SubscriptionFilter {
  readonly [flag: ListFlag]: true | undefined;
  readonly resourceSubscriptions?: readonly string[];
}

/** The changes that a flag requests: the flag, the capability of the changed list, and the notification. */
export const listChanges: readonly (readonly [flag: ListFlag, list: string, change: string])[] = methods.flatMap(
  ({ name, changedLists: list }) => (list === undefined ? [] : [[`${list}ListChanged`, list, name] as const]),
);

export const resourceUpdated = 'notifications/resources/updated';

/** True if a notification reports a change that clients can subscribe to. */
export const isChange = ({ method }: Message): boolean => methodOf(method).isChange;

/** True if `subscriptions/listen` has a filter: `notifications` is required, and an object. */
export function hasFilter(request: Message): boolean {
  const range = memberRange(request, 'params', 'notifications');
  return range !== undefined && request.text[range.start] === openBrace;
}

const openBrace = 0x7b;

/** The limit for the bytes of their URIs, which are kept and sent to other instances. */
const maxListBytes = 256 * 1024;

/** The lists of a filter that the gateway reads and checks: resources by their number, tasks by their owner. */
const readLists = ['resourceSubscriptions', 'taskIds'];

/** True if readers could find different lists in a filter: it has a list's key twice, or in another case. */
export function isFilterAmbiguous(request: Message): boolean {
  const filter = filterText(request);
  return filter !== undefined && readLists.some((key) => scanMember(filter, key, true) === 'duplicate_key');
}

/** True if a filter requests more than one client can have; `readFilter` then reads none of its URIs. */
export function exceedsFilterLimits(request: Message): boolean {
  const list = listedUris(request);
  return list !== undefined && findUriRanges(list) === undefined;
}

/**
 * Reads the filter of `subscriptions/listen`, or of its acknowledgement. Invalid parts request nothing. Each URI
 * appears once.
 */
export function readFilter(message: Message): SubscriptionFilter {
  const filter = filterText(message);
  if (filter === undefined) return {};
  const list = listedUris(message);
  const ranges = (list && findUriRanges(list)) ?? [];
  const uris = ranges.map((range) => readScalar(list as Buffer, range)).filter((uri) => typeof uri === 'string');
  return {
    ...Object.fromEntries(
      listChanges.filter(([flag]) => scalarAt(filter, [flag]) === true).map(([flag]) => [flag, true]),
    ),
    ...(uris.length > 0 && { resourceSubscriptions: [...new Set(uris)] }),
  };
}

function filterText(message: Message): Buffer | undefined {
  const range = memberRange(message, 'params', 'notifications');
  return range && message.text.subarray(range.start, range.end);
}

/** The text of the list of URIs; undefined if there is no list. */
function listedUris(message: Message): Buffer | undefined {
  const filter = filterText(message);
  const list = filter && valueAt(filter, ['resourceSubscriptions']);
  return list?.[0] === openBracket ? list : undefined;
}

/** The ranges of the URIs; undefined for a list that is too long, or that has a URI that is too long. */
function findUriRanges(list: Buffer): readonly ByteRange[] | undefined {
  const ranges = list.length > maxListBytes ? undefined : scanList(list, maxSubscriptions);
  return ranges?.some(({ start, end }) => end - start > maxUriBytes + 2) === true ? undefined : ranges;
}

const openBracket = 0x5b;

/**
 * The part of a filter whose changes a legacy server with these capabilities can report.
 * @param capabilitiesText JSON text
 */
export function agreedFilter(filter: SubscriptionFilter, capabilitiesText: string): SubscriptionFilter {
  const capabilities = Buffer.from(capabilitiesText);
  const hasCapability = (list: string, capability: string): boolean =>
    scalarAt(capabilities, [list, capability]) === true;
  const lists = listChanges.filter(([flag, list]) => filter[flag] === true && hasCapability(list, 'listChanged'));
  const { resourceSubscriptions: uris } = filter;
  return {
    ...Object.fromEntries(lists.map(([flag]) => [flag, true])),
    ...(uris !== undefined && hasCapability('resources', 'subscribe') && { resourceSubscriptions: uris }),
  };
}

const uriPrefix = 'uri ';

/** What a filter asks for, as keys: one for each list, and one for each resource. */
export const keysOfFilter = (filter: SubscriptionFilter): string[] => [
  ...listChanges.map(([flag]) => flag).filter((flag) => filter[flag] === true),
  ...(filter.resourceSubscriptions ?? []).map((uri) => uriPrefix + uri),
];

/** The filter that asks for these keys. */
export function filterOfKeys(keys: Iterable<string>): SubscriptionFilter {
  const wanted = new Set(keys);
  const flags = listChanges.map(([flag]) => flag).filter((flag) => wanted.has(flag));
  const uris = [...wanted].filter((key) => key.startsWith(uriPrefix)).map((key) => key.slice(uriPrefix.length));
  return {
    ...Object.fromEntries(flags.map((flag) => [flag, true])),
    ...(uris.length > 0 && { resourceSubscriptions: uris }),
  };
}

/** The key that a filter has if it includes this change; URIs are compared literally. Undefined for no change. */
export function keyOfChange(change: Message): string | undefined {
  if (change.method !== resourceUpdated) return listChanges.find(([, , method]) => method === change.method)?.[0];
  const uri = memberValue(change, 'params', 'uri');
  return typeof uri === 'string' ? uriPrefix + uri : undefined;
}

/** True if a filter includes a change; URIs are compared literally. */
export function matchesFilter(change: Message, filter: SubscriptionFilter): boolean {
  if (change.method !== resourceUpdated) {
    return listChanges.some(([flag, , method]) => method === change.method && filter[flag] === true);
  }
  const uri = memberValue(change, 'params', 'uri');
  const uris = filter.resourceSubscriptions;
  return uris !== undefined && typeof uri === 'string' && toSet(uris).has(uri);
}

/** The URIs of each subscription as a set: every change is looked up in all subscriptions. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

function toSet(uris: readonly string[]): ReadonlySet<string> {
  const known = sets.get(uris);
  if (known !== undefined) return known;
  const created = new Set(uris);
  sets.set(uris, created);
  return created;
}

/** The first message of a subscription. */
export const acknowledgementOf = (filter: SubscriptionFilter, idText: string): Message =>
  readGatewayMessage(
    Buffer.from(
      `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"${subscriptionIdKey}":${idText}},"notifications":${JSON.stringify(filter)}}}`,
    ),
  );

/** Converts a legacy server's notification to one of a subscription. */
export const toSubscriptionNotification = (change: Message, idText: string): Message =>
  changedMessage(change, putMembers(change, 'meta', [[subscriptionIdKey, idText]]), {});
