import { type Era, methodNotFound, type Revision, revisions } from './revisions.ts';

/**
 * Finds the facts about a revision by its name, and answers the questions about all of them. The facts are in
 * `revisions.ts`.
 */

const byName: ReadonlyMap<unknown, Revision> = new Map(revisions.map((revision) => [revision.name, revision]));

const ofEra = (era: Era): [Revision, ...Revision[]] =>
  revisions.filter((revision) => revision.era === era) as [Revision, ...Revision[]];

const [oldestLegacy, ...laterLegacy] = ofEra('legacy');
const [oldestModern, ...laterModern] = ofEra('modern');

const namesOf = (found: readonly Revision[]): readonly string[] => found.map(({ name }) => name);

/** The names of the revisions of the legacy era, the oldest first. */
export const legacyRevisions = namesOf([oldestLegacy, ...laterLegacy]);

/** The names of the revisions of the modern era, the oldest first. */
export const modernRevisions = namesOf([oldestModern, ...laterModern]);

/** The revision that the gateway asks for as a client of the legacy era, and that other clients get instead of an unknown one. */
export const newestLegacy = laterLegacy.at(-1) ?? oldestLegacy;

/** The revision that the gateway asks for as a client of the modern era, until a server has named its own. */
export const newestModern = laterModern.at(-1) ?? oldestModern;

/** The revision with this name; undefined if the gateway does not serve it. */
export const findRevision = (name: unknown): Revision | undefined => byName.get(name);

/** The revision of the modern era with this name; undefined if the gateway does not serve it. */
export function findModern(name: unknown): Revision | undefined {
  const revision = byName.get(name);
  return revision?.era === 'modern' ? revision : undefined;
}

/** True if the gateway serves a revision of the legacy era with this name. */
export const isLegacyRevision = (name: unknown): boolean => byName.get(name)?.era === 'legacy';

/**
 * The facts about the revision of a session. A server may have chosen one that the gateway does not know: it counts as
 * the newest one before it.
 */
export const sessionRevision = (name: string): Revision =>
  byName.get(name) ?? laterLegacy.findLast((revision) => revision.name <= name) ?? oldestLegacy;

/** True if a header `MCP-Protocol-Version` names a revision of the modern era, even an unknown one. */
export function namesModernRevision(name: string | undefined): boolean {
  const era = name === undefined ? 'legacy' : byName.get(name)?.era;
  return era === undefined ? dateForm.test(name as string) && (name as string) >= oldestModern.name : era === 'modern';
}

const dateForm = /^\d{4}-\d{2}-\d{2}$/;

/**
 * The revision that is assumed where neither a header nor a session names one (2025-11-25, basic/transports): the newest
 * one over Streamable HTTP whose clients send no such header.
 */
export const assumedRevision = (
  revisions.findLast(({ transport, headers }) => transport === 'Streamable HTTP' && headers.length === 0) ??
  oldestLegacy
).name;

/** The names of all headers that mirror messages, in lower case, by their names in the specification. */
export const headerKeys: ReadonlyMap<string, string> = new Map(
  revisions.flatMap(({ headers }) => headers.map(({ name }) => [name, name.toLowerCase()] as const)),
);

/** The codes of errors that only servers of the modern era send. */
export const modernErrors: ReadonlySet<unknown> = new Set(
  ofEra('modern').flatMap(({ errorStatuses }) => [...errorStatuses.keys()].filter((code) => code !== methodNotFound)),
);

/** The revisions that allow batches, for a text to a person. */
export const batchRevisions = namesOf(revisions.filter(({ allowsBatches }) => allowsBatches)).join(' and ');

/** The transport HTTP+SSE and its revision, for a text to a person. */
export const httpSse = `HTTP+SSE (${namesOf(revisions.filter(({ transport }) => transport === 'HTTP+SSE')).join(', ')})`;

/** The revisions of the modern era, for a text to a person. */
export const modernEra = laterModern.length === 0 ? oldestModern.name : `${oldestModern.name} or later`;
