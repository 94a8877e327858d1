import type { ByteRange } from '../json/byte-range.ts';
import { readScalar } from '../json/scalar.ts';
import { scanList, scanMember } from '../json/scan.ts';
import { scalarAt, valueAt } from '../json/splice.ts';
import { putMembers } from '../message/edit-members.ts';
import { type Message, memberRange, memberValue } from '../message/message.ts';
import { subscriptionIdKey } from './renumber.ts';

/** What a client listens to (2026-07-28, basic/patterns/subscriptions, "Notification Filter"). */
export interface SubscriptionFilter {
  readonly toolsListChanged?: true;
  readonly promptsListChanged?: true;
  readonly resourcesListChanged?: true;
  readonly resourceSubscriptions?: readonly string[];
}

/** What can be asked for by a flag: the list, and the notification that tells of it. */
export const listChanges = [
  ['toolsListChanged', 'tools', 'notifications/tools/list_changed'],
  ['promptsListChanged', 'prompts', 'notifications/prompts/list_changed'],
  ['resourcesListChanged', 'resources', 'notifications/resources/list_changed'],
] as const;

export const resourceUpdated = 'notifications/resources/updated';

/** True if a notification tells of a change that one can listen to. */
export const isChange = ({ method }: Message): boolean =>
  method === resourceUpdated || listChanges.some(([, , change]) => change === method);

/** True if `subscriptions/listen` says what to listen to: `notifications` is required, and an object. */
export function hasFilter(request: Message): boolean {
  const place = memberRange(request, 'params', 'notifications');
  return place !== undefined && request.text[place.start] === openBrace;
}

const openBrace = 0x7b;

/** So many resources one client can subscribe to (P8): each is a request to its server, and is told to a new process of it. */
export const maxSubscriptions = 500;

/** The same for the bytes of their URIs: they are kept, and told to other instances. */
const maxListBytes = 256 * 1024;

/** The lists of a filter that the gateway reads, and judges: resources by their number, tasks by whose they are. */
const readLists = ['resourceSubscriptions', 'taskIds'];

/** True if readers could take different lists out of a filter: one stands there twice, or in another case. */
export function isFilterAmbiguous(request: Message): boolean {
  const filter = filterText(request);
  return filter !== undefined && readLists.some((key) => scanMember(filter, key, true) === 'duplicate_key');
}

/** True if a filter asks for more than one client can have; `readFilter` then reads none of its URIs. */
export function exceedsFilterLimits(request: Message): boolean {
  const list = listedUris(request);
  return list !== undefined && placesOfUris(list) === undefined;
}

/**
 * Reads the filter of `subscriptions/listen`, or that of its acknowledgement; what is no filter asks for nothing. Each URI is in it
 * once.
 */
export function readFilter(message: Message): SubscriptionFilter {
  const filter = filterText(message);
  if (filter === undefined) return {};
  const list = listedUris(message);
  const places = (list && placesOfUris(list)) ?? [];
  const uris = places.map((place) => readScalar(list as Buffer, place)).filter((uri) => typeof uri === 'string');
  return {
    ...Object.fromEntries(
      listChanges.filter(([flag]) => scalarAt(filter, [flag]) === true).map(([flag]) => [flag, true]),
    ),
    ...(uris.length > 0 && { resourceSubscriptions: [...new Set(uris)] }),
  };
}

function filterText(message: Message): Buffer | undefined {
  const place = memberRange(message, 'params', 'notifications');
  return place && message.text.subarray(place.start, place.end);
}

/** The text of the list of URIs; undefined if there is no list. */
function listedUris(message: Message): Buffer | undefined {
  const filter = filterText(message);
  const list = filter && valueAt(filter, ['resourceSubscriptions']);
  return list?.[0] === openBracket ? list : undefined;
}

/** Undefined for a list that is too long. */
const placesOfUris = (list: Buffer): readonly ByteRange[] | undefined =>
  list.length > maxListBytes ? undefined : scanList(list, maxSubscriptions);

const openBracket = 0x5b;

/** The part of a filter that a legacy server with these capabilities, as JSON text, can tell of. */
export function agreedFilter(filter: SubscriptionFilter, capabilitiesText: string): SubscriptionFilter {
  const capabilities = Buffer.from(capabilitiesText);
  const can = (list: string, what: string): boolean => scalarAt(capabilities, [list, what]) === true;
  const lists = listChanges.filter(([flag, list]) => filter[flag] === true && can(list, 'listChanged'));
  const { resourceSubscriptions: uris } = filter;
  return {
    ...Object.fromEntries(lists.map(([flag]) => [flag, true])),
    ...(uris !== undefined && can('resources', 'subscribe') && { resourceSubscriptions: uris }),
  };
}

/** True if a change is one that the filter asks for; URIs are compared as they are. */
export function matchesFilter(change: Message, filter: SubscriptionFilter): boolean {
  if (change.method !== resourceUpdated) {
    return listChanges.some(([flag, , method]) => method === change.method && filter[flag] === true);
  }
  const uri = memberValue(change, 'params', 'uri');
  const uris = filter.resourceSubscriptions;
  return uris !== undefined && typeof uri === 'string' && setOf(uris).has(uri);
}

/** Each change is looked for among all URIs of each subscription. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

function setOf(uris: readonly string[]): ReadonlySet<string> {
  const known = sets.get(uris);
  if (known !== undefined) return known;
  const made = new Set(uris);
  sets.set(uris, made);
  return made;
}

/** The first message of a subscription. */
export const acknowledgementOf = (filter: SubscriptionFilter, idText: string): Buffer =>
  Buffer.from(
    `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"${subscriptionIdKey}":${idText}},"notifications":${JSON.stringify(filter)}}}`,
  );

/** A legacy server's notification as one of a subscription. */
export const toSubscriptionNotification = (change: Message, idText: string): Buffer =>
  putMembers(change, 'meta', [[subscriptionIdKey, idText]]);
