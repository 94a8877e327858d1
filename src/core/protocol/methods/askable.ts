import { objectAt, valueAt } from '../json.ts';
import type { Message } from '../message/message.ts';
import { isQuestion, methodOf, methods } from './methods.ts';

/**
 * The features that a client declares for requests of its server (2025-11-25 and 2026-07-28, client features). Only
 * flags that a legacy server can use are listed.
 */
export type ClientFeature =
  | 'elicitation'
  | 'elicitation.url'
  | 'sampling'
  | 'sampling.tools'
  | 'sampling.context'
  | 'roots';

const noFeatures: ReadonlySet<ClientFeature> = new Set();
const emptyObjectBytes = 2;

/**
 * Reads a client's capabilities. An elicitation without modes means forms (2025-11-25, client/elicitation,
 * "Capabilities").
 * @param capabilities JSON text of an object
 */
export function readClientFeatures(capabilities: Buffer): ReadonlySet<ClientFeature> {
  if (capabilities.length === emptyObjectBytes) return noFeatures;
  const has = (...path: string[]): boolean => objectAt(capabilities, path) !== undefined;
  const found = new Set<ClientFeature>();
  const hasUrl = has('elicitation', 'url');
  if (has('elicitation') && (has('elicitation', 'form') || !hasUrl)) found.add('elicitation');
  if (hasUrl) found.add('elicitation.url');
  if (has('sampling')) found.add('sampling');
  if (has('sampling', 'tools')) found.add('sampling.tools');
  if (has('sampling', 'context')) found.add('sampling.context');
  if (has('roots')) found.add('roots');
  return found;
}

/** The capabilities with which a client accepts requests of its server. */
const askedCapabilities = methods.flatMap(({ name, capability }) =>
  capability && isQuestion(name) ? [capability] : [],
);

/** True if a client declares in its `initialize` that its server may send it requests. */
export const acceptsQuestions = ({ text }: Message): boolean =>
  askedCapabilities.some((name) => valueAt(text, ['params', 'capabilities', name]) !== undefined);

/** Writes the capabilities of a legacy client with these features, as JSON text: equal features give equal text. */
export function capabilitiesOf(features: ReadonlySet<ClientFeature>): string {
  if (features.size === 0) return '{}';
  const flags = (names: readonly (readonly [ClientFeature, string])[]): object =>
    Object.fromEntries(names.filter(([flag]) => features.has(flag)).map(([, name]) => [name, {}]));
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
    ...(features.has('sampling') && { sampling }),
    ...(features.has('roots') && { roots: {} }),
  });
}

/** The feature that a server's request needs its client to have; undefined for a method that no client has. */
export function requiredFeature({ method, text }: Message): RequiredFeature | undefined {
  if (!isQuestion(method)) return undefined;
  const flag = methodOf(method).capability as ClientFeature;
  const isAtUrl = flag === 'elicitation' && valueAt(text, ['params', 'mode'])?.toString() === '"url"';
  if (isAtUrl) return { flag: 'elicitation.url', required: { elicitation: { url: {} } } };
  const usesTools = flag === 'sampling' && valueAt(text, ['params', 'tools']) !== undefined;
  if (usesTools) return { flag: 'sampling.tools', required: { sampling: { tools: {} } } };
  return { flag, required: { [flag]: flag === 'elicitation' ? { form: {} } : {} } };
}

/** The feature that a server's request needs. */
export interface RequiredFeature {
  readonly flag: ClientFeature;
  /** The feature as the modern era names it (2026-07-28, basic, `requiredCapabilities`). */
  readonly required: Readonly<Record<string, object>>;
}
