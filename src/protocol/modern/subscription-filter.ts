import { putMembers } from '../members.ts';
import { type Message, memberValue, placeOf } from '../message.ts';
import { subscriptionIdKey } from './renumber.ts';

/** What a client listens to (2026-07-28, basic/patterns/subscriptions, "Notification Filter"). */
export interface Filter {
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
  const place = placeOf(request, 'params', 'notifications');
  return place !== undefined && request.text[place.start] === openBrace;
}

const openBrace = 0x7b;

/** Reads the filter of `subscriptions/listen`; what is no filter asks for nothing. Each URI is in it once. */
export function readFilter(request: Message): Filter {
  const asked = memberValue(request, 'params', 'notifications');
  const filter = new Map(typeof asked === 'object' && asked !== null ? Object.entries(asked) : []);
  const listed: unknown = filter.get('resourceSubscriptions');
  const uris = Array.isArray(listed) ? listed.filter((uri) => typeof uri === 'string') : [];
  return {
    ...Object.fromEntries(listChanges.filter(([flag]) => filter.get(flag) === true).map(([flag]) => [flag, true])),
    ...(uris.length > 0 && { resourceSubscriptions: [...new Set(uris)] }),
  };
}

/** The part of a filter that a legacy server with these capabilities, as JSON text, can tell of. */
export function agreedFilter(filter: Filter, capabilitiesText: string): Filter {
  const capabilities = new Map(Object.entries(JSON.parse(capabilitiesText) as object));
  const can = (list: string, what: string): boolean => {
    const of: unknown = capabilities.get(list);
    return typeof of === 'object' && of !== null && new Map(Object.entries(of)).get(what) === true;
  };
  const lists = listChanges.filter(([flag, list]) => filter[flag] === true && can(list, 'listChanged'));
  const { resourceSubscriptions: uris } = filter;
  return {
    ...Object.fromEntries(lists.map(([flag]) => [flag, true])),
    ...(uris !== undefined && can('resources', 'subscribe') && { resourceSubscriptions: uris }),
  };
}

/** True if a change is one that the filter asks for; URIs are compared as they are. */
export function isAskedFor(change: Message, filter: Filter): boolean {
  if (change.method !== resourceUpdated) {
    return listChanges.some(([flag, , method]) => method === change.method && filter[flag] === true);
  }
  const uri = memberValue(change, 'params', 'uri');
  return filter.resourceSubscriptions?.some((asked) => asked === uri) ?? false;
}

/** The first message of a subscription. */
export const acknowledgementOf = (filter: Filter, idText: string): Buffer =>
  Buffer.from(
    `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"${subscriptionIdKey}":${idText}},"notifications":${JSON.stringify(filter)}}}`,
  );

/** A legacy server's notification as one of a subscription. */
export const ofSubscription = (change: Message, idText: string): Buffer =>
  putMembers(change, 'meta', [[subscriptionIdKey, idText]]);
