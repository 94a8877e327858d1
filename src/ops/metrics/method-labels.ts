import type { CallOutcome } from '../../call/call-events.ts';
import type { Era } from '../../protocol/revisions.ts';

const sharedMethods = [
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'tasks/get',
  'tasks/cancel',
];

/** The methods that clients request, over all revisions of an era. */
export const methodsOf: Readonly<Record<Era, readonly string[]>> = {
  legacy: [
    'initialize',
    'ping',
    'logging/setLevel',
    ...sharedMethods,
    'resources/subscribe',
    'resources/unsubscribe',
    'tasks/result',
    'tasks/list',
  ],
  modern: ['server/discover', 'subscriptions/listen', ...sharedMethods, 'tasks/update'],
};

const knownMethods: ReadonlySet<string> = new Set([...methodsOf.legacy, ...methodsOf.modern]);

/** The possible outcomes of a method. */
export const outcomesOf = (label: string): readonly CallOutcome['kind'][] =>
  label === 'tools/call' ? [...outcomes, 'tool_error'] : outcomes;

const outcomes = ['ok', 'error', 'fault', 'left'] as const;

/**
 * The label of a method. A method that the protocol does not define is a text that a peer has chosen, so it is `other`.
 */
export const methodLabel = (method: string | undefined): string =>
  method !== undefined && knownMethods.has(method) ? method : 'other';
