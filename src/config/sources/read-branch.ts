import { docsPage } from '../../core/util/docs-page.ts';
import { isObject } from '../../core/util/is-object.ts';
import { nearestName } from '../../core/util/text/nearest-name.ts';
import { memberPath, type ReportIssue } from '../issues.ts';
import type { Option } from '../options/option-kinds.ts';
import { defaultsBranch } from '../options/option-names.ts';
import { gatewayLeaves } from '../options/options.ts';
import { second } from '../units.ts';
import { expandWhole, hasReference, type ReferenceSources } from './expand-variables.ts';
import { fromText, type GivenValue } from './given-values.ts';

/** What an object of the file can hold. */
export interface KnownMembers {
  /** The options by their paths from that object. */
  readonly options: ReadonlyMap<string, Option>;
  /** Other keys of the object, which its caller reads. */
  readonly others: readonly string[];
  /** Keys of MCP clients, which its caller reads too. No hint suggests them. */
  readonly foreign: readonly string[];
}

/** The values found so far, by their paths, and the means to read them. */
export interface BranchReading {
  readonly given: Map<string, GivenValue>;
  readonly known: KnownMembers;
  readonly references: ReferenceSources;
  readonly report: ReportIssue;
}

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
  const { known, report } = reading;
  for (const [name, value] of Object.entries(object)) {
    if (branch === '' && [...known.others, ...known.foreign].includes(name)) continue;
    const path = branch === '' ? name : `${branch}.${name}`;
    const at = memberPath(location, name);
    const option = known.options.get(path);
    if (option !== undefined) setExpanded(path, option, value, at, reading);
    else if (!isBranch(path, known)) report(at, explainUnknownKey(name, branch, known));
    else if (isObject(value)) readBranch(value, path, at, reading);
    else report(at, explainNoObject(name, value, path, known));
  }
}

/** The fault of a plain value in the place of a branch. An option can have the same last word: `sse` and `defaults.sse`. */
function explainNoObject(name: string, value: unknown, path: string, known: KnownMembers): string {
  const option = [...known.options.keys()].find((each) => each.endsWith(`.${name}`));
  const meant = typeof value === 'boolean' ? String(value) : '…';
  const hint = option === undefined ? '' : `; for the option ${option}, write ${nested(option, meant)}`;
  const members = memberNames(path, known)
    .slice(0, 2)
    .map((each) => `"${each}": ${exampleOf(known.options.get(`${path}.${each}`))}`);
  return `must be an object such as { ${members.join(', ')} }${hint}`;
}

/** An example of an option's value as JSON. */
function exampleOf({ kind, default: value, format = String }: Partial<Option> = {}): string {
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
function setExpanded(
  path: string,
  { kind }: Option,
  value: unknown,
  at: string,
  { given, references }: BranchReading,
): void {
  const whole = expandWhole(value, at, references);
  if (whole === undefined) return;
  const isWord = (kind === 'integer' || kind === 'boolean') && hasReference(value) && typeof whole.value === 'string';
  const { written } = whole;
  given.set(path, { path: at, value: isWord ? fromText(kind, [String(whole.value)]) : whole.value, written });
}

const isBranch = (path: string, { options }: KnownMembers): boolean =>
  [...options.keys()].some((each) => each.startsWith(`${path}.`));

/** The keys that a branch can have. */
function memberNames(branch: string, { options, others }: KnownMembers): string[] {
  const prefix = branch === '' ? '' : `${branch}.`;
  const below = [...options.keys()].filter((path) => path.startsWith(prefix));
  const names = below.map((path) => path.slice(prefix.length).split('.', 1)[0] ?? '');
  return [...new Set([...names, ...(branch === '' ? others : [])])];
}

/** The fault of an unknown key, with a similar key of the same object or of another branch. */
function explainUnknownKey(name: string, branch: string, known: KnownMembers): string {
  const paths = [...known.options.keys()];
  const ofGateway = [...gatewayLeaves.keys()].find((path) => path.split('.').at(-1) === name);
  if (branch === '' && ofGateway !== undefined && !paths.includes(ofGateway))
    return `is an option of the gateway, not of a server; set ${ofGateway} at the top level`;
  const ofServers = `${defaultsBranch}.${branch === '' ? '' : `${branch}.`}${name}`;
  if (isBranch(ofServers, known) || paths.includes(ofServers))
    return `is a server option; for all servers, write ${nested(ofServers, '…')}`;
  const sibling = nearestName(name, memberNames(branch, known));
  const elsewhere = paths.find((path) => path.split('.').at(-1) === name);
  const last = elsewhere ?? sibling ?? nearestName(name, lastWords(paths));
  const suggestion = elsewhere ?? sibling ?? paths.find((path) => path.split('.').at(-1) === last);
  const hint =
    suggestion === undefined ? `see ${docsPage('reference/configuration.md')}` : `did you mean ${suggestion}?`;
  return `is not a known key; ${hint}`;
}

const lastWords = (paths: readonly string[]): string[] => paths.map((path) => path.split('.').at(-1) ?? path);
