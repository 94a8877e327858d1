import type { CallOutcome } from '../../call/call-events.ts';
import { methodOf, methods } from '../../protocol/methods/methods.ts';
import type { Era } from '../../protocol/revisions.ts';

const requests = methods.filter(({ kind, from }) => kind === 'request' && from !== 'server');
const namesIn = (era: Era): readonly string[] =>
  requests
    .filter(({ eras, extension }) => extension === undefined && (eras === era || eras === 'both'))
    .map(({ name }) => name);

/** The methods of the core that clients request, over all revisions of an era. Few servers use those of extensions. */
export const methodsOf: Readonly<Record<Era, readonly string[]>> = {
  legacy: namesIn('legacy'),
  modern: namesIn('modern'),
};

const knownMethods: ReadonlySet<string> = new Set(requests.map(({ name }) => name));

/** The possible outcomes of a method. */
export const outcomesOf = (label: string): readonly CallOutcome['kind'][] =>
  methodOf(label).names === 'tool' ? [...outcomes, 'tool_error'] : outcomes;

const outcomes = ['ok', 'error', 'fault', 'left'] as const;

/**
 * The label of a method. A method without a row is a text that a peer has chosen, so it is `other`.
 */
export const methodLabel = (method: string | undefined): string =>
  method !== undefined && knownMethods.has(method) ? method : 'other';
