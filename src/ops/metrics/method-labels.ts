import type { CallOutcome } from '../../call/call-report.ts';
import type { Era } from '../../protocol/revisions.ts';

const ofBothEras = [
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

/** The methods of the protocol that clients request, of all revisions of an era. */
export const methodsOf: Readonly<Record<Era, readonly string[]>> = {
  legacy: [
    'initialize',
    'ping',
    'logging/setLevel',
    ...ofBothEras,
    'resources/subscribe',
    'resources/unsubscribe',
    'tasks/result',
    'tasks/list',
  ],
  modern: ['server/discover', 'subscriptions/listen', ...ofBothEras, 'tasks/update'],
};

const all: ReadonlySet<string> = new Set([...methodsOf.legacy, ...methodsOf.modern]);

/** How requests of a method end. */
export const outcomesOf = (label: string): readonly CallOutcome['kind'][] =>
  label === 'tools/call' ? [...outcomes, 'tool_error'] : outcomes;

const outcomes = ['ok', 'error', 'fault', 'left'] as const;

/** What a method is counted as: one that the protocol has not is a word that a peer has chosen. */
export const methodLabel = (method: string | undefined): string =>
  method !== undefined && all.has(method) ? method : 'other';
