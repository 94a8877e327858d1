import { docsPage } from '../../util/docs-page.ts';
import { nearestName } from '../../util/text/nearest-name.ts';
import { memberPath, type ReportIssue } from '../issues.ts';
import type { Option } from '../options/option-kinds.ts';
import { globalOptions, serverOptions } from '../options/options.ts';
import { defaultsBranch, treePathOf } from '../tree/places.ts';
import { second } from '../units.ts';
import { expandWhole, hasReference, type ReferenceSources } from './expand-variables.ts';
import { fromText, type GivenValue } from './given-values.ts';

/** The options that an object of the file can hold. */
export interface KnownPlaces {
  /** The keys of the options by their paths from that object: `timeouts.start` → `startTimeoutMs`. */
  readonly keyByPath: ReadonlyMap<string, string>;
  /** Other keys of the object, which its caller reads. */
  readonly others: readonly string[];
  /** Keys of MCP clients, which its caller reads too. No hint suggests them. */
  readonly foreign: readonly string[];
}

/** The values found so far, by option key, and the means to read them. */
export interface BranchReading {
  readonly given: Map<string, GivenValue>;
  readonly places: KnownPlaces;
  readonly references: ReferenceSources;
  readonly report: ReportIssue;
}

/** True for a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const optionByKey = new Map<string, Option>(Object.entries<Option>({ ...globalOptions, ...serverOptions }));

/**
 * Reads the options of an object and of its branches. Reports keys that are neither an option nor a branch.
 * @param branch the path of this branch from the outermost object, such as `limits.user`; empty for that object
 * @param location the path of this branch for faults
 */
export function readBranch(
  object: Readonly<Record<string, unknown>>,
  branch: string,
  location: string,
  reading: BranchReading,
): void {
  const { places, report } = reading;
  for (const [name, value] of Object.entries(object)) {
    if (branch === '' && [...places.others, ...places.foreign].includes(name)) continue;
    const path = branch === '' ? name : `${branch}.${name}`;
    const at = memberPath(location, name);
    const key = places.keyByPath.get(path);
    if (key !== undefined) setExpanded(key, value, at, reading);
    else if (!isBranch(path, places)) report(at, explainUnknownKey(name, branch, places));
    else if (isObject(value)) readBranch(value, path, at, reading);
    else report(at, explainNoObject(name, value, path, places));
  }
}

/** The fault of a plain value in the place of a branch. An option can have the same last word: `sse` and `defaults.sse`. */
function explainNoObject(name: string, value: unknown, path: string, places: KnownPlaces): string {
  const option = [...places.keyByPath.keys()].find(
    (known) => known.endsWith(`.${name}`) && !known.startsWith('advanced.'),
  );
  const meant = typeof value === 'boolean' ? String(value) : '…';
  const hint = option === undefined ? '' : `; for the option ${option}, write ${nested(option, meant)}`;
  const members = memberNames(path, places)
    .slice(0, 2)
    .map((each) => `"${each}": ${exampleOf(places.keyByPath.get(`${path}.${each}`))}`);
  return `must be an object such as { ${members.join(', ')} }${hint}`;
}

/** An example of an option's value as JSON. */
function exampleOf(key: string | undefined): string {
  const { kind, default: value, format = String } = optionByKey.get(key ?? '') ?? {};
  if (kind === 'boolean') return 'true';
  if (kind === 'duration') return JSON.stringify(format(Number(value) || 30 * second));
  if (typeof value === 'number') return kind === 'integer' ? String(value) : JSON.stringify(format(value));
  return kind === undefined ? '{ … }' : kind === 'list' ? '[…]' : '"…"';
}

/** A path as the JSON of the file: `"timeouts": { "drain": "5s" }`. */
function nested(path: string, value: string): string {
  const [name, ...rest] = path.split('.');
  return `"${name}": ${rest.length === 0 ? value : `{ ${nested(rest.join('.'), value)} }`}`;
}

/** Sets an option, unless a reference in its value is a fault. A text with a reference can also stand for a number. */
function setExpanded(key: string, value: unknown, path: string, { given, references }: BranchReading): void {
  const whole = expandWhole(value, path, references);
  if (whole === undefined) return;
  const kind = optionByKey.get(key)?.kind;
  const isWord = (kind === 'integer' || kind === 'boolean') && hasReference(value) && typeof whole.value === 'string';
  const { written } = whole;
  given.set(key, { path, value: isWord ? fromText(kind, [String(whole.value)]) : whole.value, written });
}

const isBranch = (path: string, { keyByPath }: KnownPlaces): boolean =>
  [...keyByPath.keys()].some((known) => known.startsWith(`${path}.`));

/** The keys that a branch can have. */
function memberNames(branch: string, { keyByPath, others }: KnownPlaces): string[] {
  const prefix = branch === '' ? '' : `${branch}.`;
  const below = [...keyByPath.keys()].filter((path) => path.startsWith(prefix));
  const names = below.map((path) => path.slice(prefix.length).split('.', 1)[0] ?? '');
  return [...new Set([...names, ...(branch === '' ? others : [])])];
}

/** The fault of an unknown key, with a similar key of the same object or of another branch. */
function explainUnknownKey(name: string, branch: string, places: KnownPlaces): string {
  const paths = [...places.keyByPath.keys()];
  const gatewayPath = Object.keys(globalOptions).find(
    (key) => key === name || treePathOf(key).split('.').at(-1) === name,
  );
  if (branch === '' && gatewayPath !== undefined && !paths.includes(treePathOf(gatewayPath)))
    return `is an option of the gateway, not of a server; set ${treePathOf(gatewayPath)} at the top level`;
  const ofServers = `${defaultsBranch}.${branch === '' ? '' : `${branch}.`}${name}`;
  if (isBranch(ofServers, places) || paths.includes(ofServers))
    return `is a server option; for all servers, write ${nested(ofServers, '…')}`;
  const sibling = nearestName(name, memberNames(branch, places));
  const elsewhere = paths.find((path) => path.split('.').at(-1) === name);
  const last = elsewhere ?? sibling ?? nearestName(name, lastWords(paths));
  const suggestion = elsewhere ?? sibling ?? paths.find((path) => path.split('.').at(-1) === last);
  const hint =
    suggestion === undefined ? `see ${docsPage('reference/configuration.md')}` : `did you mean ${suggestion}?`;
  return `is not a known key; ${hint}`;
}

const lastWords = (paths: readonly string[]): string[] => paths.map((path) => path.split('.').at(-1) ?? path);
