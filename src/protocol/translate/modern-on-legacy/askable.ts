import { valueAt } from '../../json/splice.ts';
import type { Message } from '../../message/message.ts';

/**
 * What a server may ask of its client, by the capabilities that the client declares (2025-11-25 and 2026-07-28, client
 * features): the flags that a legacy server can make use of, and nothing else.
 */
export type ClientFeature =
  | 'elicitation'
  | 'elicitation.url'
  | 'sampling'
  | 'sampling.tools'
  | 'sampling.context'
  | 'roots';

/** What each method of a server asks for; others are none that a client has. */
const neededBy: ReadonlyMap<string | undefined, ClientFeature> = new Map([
  ['elicitation/create', 'elicitation'],
  ['sampling/createMessage', 'sampling'],
  ['roots/list', 'roots'],
]);

const nothing: ReadonlySet<ClientFeature> = new Set();
const emptyObjectBytes = 2;

/**
 * Reads a client's capabilities. An elicitation without modes is one by form (2025-11-25, client/elicitation,
 * "Capabilities").
 * @param capabilities JSON text of an object
 */
export function readClientFeatures(capabilities: Buffer): ReadonlySet<ClientFeature> {
  if (capabilities.length === emptyObjectBytes) return nothing;
  const has = (...path: string[]): boolean => valueAt(capabilities, path)?.[0] === openBrace;
  const found = new Set<ClientFeature>();
  const url = has('elicitation', 'url');
  if (has('elicitation') && (has('elicitation', 'form') || !url)) found.add('elicitation');
  if (url) found.add('elicitation.url');
  if (has('sampling')) found.add('sampling');
  if (has('sampling', 'tools')) found.add('sampling.tools');
  if (has('sampling', 'context')) found.add('sampling.context');
  if (has('roots')) found.add('roots');
  return found;
}

/** The capabilities of a legacy client that declares these, as JSON text: the same text for the same flags. */
export function capabilitiesOf(askable: ReadonlySet<ClientFeature>): string {
  if (askable.size === 0) return '{}';
  const flags = (of: readonly (readonly [ClientFeature, string])[]): object =>
    Object.fromEntries(of.filter(([flag]) => askable.has(flag)).map(([, name]) => [name, {}]));
  const elicitation = flags([
    ['elicitation', 'form'],
    ['elicitation.url', 'url'],
  ]);
  const sampling = flags([
    ['sampling.tools', 'tools'],
    ['sampling.context', 'context'],
  ]);
  return JSON.stringify({
    ...(Object.keys(elicitation).length > 0 && { elicitation }),
    ...(askable.has('sampling') && { sampling }),
    ...(askable.has('roots') && { roots: {} }),
  });
}

/** What a client must have declared for a request of the server to reach it; undefined for a method that no client has. */
export function requiredFeature({ method, text }: Message): RequiredFeature | undefined {
  const flag = neededBy.get(method);
  if (flag === undefined) return undefined;
  const isAtUrl = flag === 'elicitation' && valueAt(text, ['params', 'mode'])?.toString() === '"url"';
  if (isAtUrl) return { flag: 'elicitation.url', required: { elicitation: { url: {} } } };
  return { flag, required: { [flag]: {} } };
}

/** What the request of a server needs its client to have declared. */
export interface RequiredFeature {
  readonly flag: ClientFeature;
  /** As the modern era names it (2026-07-28, basic, `requiredCapabilities`). */
  readonly required: Readonly<Record<string, object>>;
}

const openBrace = 0x7b;
