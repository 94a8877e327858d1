import { extensions } from './extensions.ts';
import { completeRow, type List, type Method, type MethodRow, unknownMethod } from './method.ts';

const toolsChanged = 'notifications/tools/list_changed';
const promptsChanged = 'notifications/prompts/list_changed';
const resourcesChanged = 'notifications/resources/list_changed';

/** The methods of the specification, of all revisions from 2024-11-05 on. Extensions bring their own. */
const coreRows: readonly MethodRow[] = [
  // Requests of clients.
  { name: 'initialize', from: 'client', eras: 'legacy', isStateless: true },
  { name: 'ping', from: 'both', eras: 'legacy', effect: 'reads', isStateless: true, inViews: 'answer' },
  { name: 'server/discover', from: 'client', eras: 'modern', effect: 'reads', isStateless: true, isCacheable: true },
  { name: 'subscriptions/listen', from: 'client', eras: 'modern', isLongLived: true },
  {
    name: 'tools/list',
    from: 'client',
    eras: 'both',
    capability: 'tools',
    effect: 'reads',
    isStateless: true,
    isCacheable: true,
    list: { key: 'tools', identity: 'name', changed: toolsChanged },
  },
  {
    name: 'tools/call',
    from: 'client',
    eras: 'both',
    capability: 'tools',
    mayAsk: true,
    names: 'tool',
    target: 'name',
    nameHeader: 'required',
  },
  {
    name: 'prompts/list',
    from: 'client',
    eras: 'both',
    capability: 'prompts',
    effect: 'reads',
    isStateless: true,
    isCacheable: true,
    list: { key: 'prompts', identity: 'name', changed: promptsChanged },
  },
  {
    name: 'prompts/get',
    from: 'client',
    eras: 'both',
    capability: 'prompts',
    effect: 'reads',
    mayAsk: true,
    names: 'prompt',
    target: 'name',
    nameHeader: 'required',
  },
  {
    name: 'completion/complete',
    from: 'client',
    eras: 'both',
    capability: 'completions',
    effect: 'reads',
    isStateless: true,
    target: 'ref',
  },
  {
    name: 'resources/list',
    from: 'client',
    eras: 'both',
    capability: 'resources',
    effect: 'reads',
    isStateless: true,
    isCacheable: true,
    list: { key: 'resources', identity: 'uri', changed: resourcesChanged },
  },
  {
    name: 'resources/templates/list',
    from: 'client',
    eras: 'both',
    capability: 'resources',
    effect: 'reads',
    isStateless: true,
    isCacheable: true,
    list: { key: 'resourceTemplates', identity: 'uriTemplate', changed: resourcesChanged },
  },
  {
    name: 'resources/read',
    from: 'client',
    eras: 'both',
    capability: 'resources',
    effect: 'reads',
    mayAsk: true,
    isCacheable: true,
    target: 'uri',
    nameHeader: 'required',
  },
  {
    name: 'resources/subscribe',
    from: 'client',
    eras: 'legacy',
    capability: 'resources',
    effect: 'sets',
    needsSession: true,
    target: 'uri',
  },
  {
    name: 'resources/unsubscribe',
    from: 'client',
    eras: 'legacy',
    capability: 'resources',
    effect: 'sets',
    needsSession: true,
    isOrdered: true,
    target: 'uri',
  },
  {
    name: 'logging/setLevel',
    from: 'client',
    eras: 'legacy',
    capability: 'logging',
    effect: 'sets',
    isStateless: true,
    needsSession: true,
    isOrdered: true,
    inViews: 'all',
  },
  // Requests of servers. In the modern era they are parts of a result (basic/patterns/mrtr).
  { name: 'elicitation/create', from: 'server', eras: 'both', capability: 'elicitation' },
  { name: 'sampling/createMessage', from: 'server', eras: 'both', capability: 'sampling' },
  { name: 'roots/list', from: 'server', eras: 'both', capability: 'roots' },
  // Notifications.
  { name: 'notifications/initialized', from: 'client', eras: 'legacy' },
  { name: 'notifications/roots/list_changed', from: 'client', eras: 'legacy', capability: 'roots' },
  { name: 'notifications/cancelled', from: 'both', eras: 'both' },
  { name: 'notifications/progress', from: 'both', eras: 'both', isOfRequest: true },
  { name: 'notifications/message', from: 'server', eras: 'both', isOfRequest: true },
  { name: toolsChanged, from: 'server', eras: 'both', changedLists: 'tools' },
  { name: promptsChanged, from: 'server', eras: 'both', changedLists: 'prompts' },
  { name: resourcesChanged, from: 'server', eras: 'both', changedLists: 'resources' },
  { name: 'notifications/resources/updated', from: 'server', eras: 'both', isChange: true },
  { name: 'notifications/subscriptions/acknowledged', from: 'server', eras: 'modern' },
  { name: 'notifications/elicitation/complete', from: 'server', eras: 'legacy' },
];

/** All methods that the gateway knows: those of the core, then those of the extensions. */
export const methods: readonly Method[] = [
  ...coreRows.map((row) => completeRow(row)),
  ...extensions.flatMap((extension) => extension.methods.map((row) => completeRow(row, extension))),
];

const byName: ReadonlyMap<string | undefined, Method> = new Map(methods.map((method) => [method.name, method]));

/** What is known about a method. Nothing is known about a method without a row (`unknownMethod`). */
export const methodOf = (name: string | undefined): Method => byName.get(name) ?? unknownMethod;

/** True for a method of a specification, or of an extension, that the gateway knows. */
export const isKnownMethod = (name: string | undefined): boolean => byName.has(name);

/** A method that answers with a list. */
export type ListMethod = Method & { readonly list: List; readonly capability: string };

/** Every method that answers with a list. */
export const listMethods: readonly ListMethod[] = methods.filter(
  (method): method is ListMethod => method.list !== undefined && method.capability !== undefined,
);

/** What is known about a method that answers with a list. Throws for any other method. */
export function listOf(name: string): ListMethod {
  const method = listMethods.find((each) => each.name === name);
  if (method === undefined) throw new Error(`${name} answers with no list`);
  return method;
}

/** True for a request that reads something by its URI: the server can say that there is no such resource. */
export function readsByUri(name: string | undefined): boolean {
  const { effect, target } = methodOf(name);
  return effect === 'reads' && target === 'uri';
}

/** The requests of clients that run or read one thing of a server. A policy can decide about them. */
export const contentMethods: readonly string[] = methods
  .filter(({ target, effect }) => target === 'name' || (target === 'uri' && effect === 'reads'))
  .map(({ name }) => name);

/** True for a request that a server can ask its client. In the modern era it is a part of a result (basic/patterns/mrtr). */
export function isQuestion(name: string | undefined): boolean {
  const { kind, from } = methodOf(name);
  return kind === 'request' && from === 'server';
}

/** True for a request that the modern era has removed. A server of both eras could still answer it. */
export const isRemoved = (name: string | undefined): boolean => methodOf(name).eras === 'legacy';

/** True for a request of a modern client that a legacy server would understand differently, or not at all. */
export const isUnknownToLegacy = (name: string | undefined): boolean => !methodOf(name).isTranslated;

/** True for a request that a legacy client cannot mean, or that a modern server would understand differently. */
export function isUnknownToModern(name: string | undefined): boolean {
  const { eras, isTranslated } = methodOf(name);
  return eras === 'modern' || !isTranslated;
}

/**
 * True for a notification of a legacy client that clients of the modern era do not send. Nothing is lost: a server asks
 * for roots again with each request, and waits for no progress of its own requests.
 */
export function isDroppedForModern(name: string | undefined): boolean {
  const { eras, from } = methodOf(name);
  return isKnownMethod(name) && (eras !== 'both' || from !== 'client');
}
