import { basename, dirname, join, resolve } from 'node:path';
import { isObject } from '../../core/util/is-object.ts';
import { errorCodeOf } from '../../core/util/text/error-code.ts';
import { memberPath } from '../issues.ts';
import { defaultsBranch, options } from '../options/option-names.ts';
import { viewLeaves } from '../options/options.ts';
import { ignoredRootKeys } from './client-keys.ts';
import { expandWhole } from './expand-variables.ts';
import type { Given, GivenValue } from './given-values.ts';
import { whyUnreadable } from './named-file.ts';
import { type KnownMembers, readBranch } from './read-branch.ts';
import { type JsoncPositions, readJsonc } from './read-jsonc.ts';
import { type EntryContext, isDisabled, readServerEntry, type ServerEntry } from './server-entry.ts';

/** The content of the configuration file and of the files that it includes. */
export interface ConfigFile {
  /** The gateway options and the defaults for all servers, by path. */
  readonly given: Given;
  readonly servers: readonly ServerEntry[];
  readonly views: readonly ViewEntry[];
  /** The included files and folders. */
  readonly included: readonly string[];
}

/** One view of the file, whose name and options are not yet checked. */
export type ViewEntry = Pick<ServerEntry, 'name' | 'path' | 'given'>;

/** What reading a file needs in addition to the reading of its entries. */
export interface FileContext extends EntryContext {
  /** The names of the files in a folder, or undefined if the path is not a folder. Throws if it cannot be read. */
  readonly listFolder: (path: string) => readonly string[] | undefined;
  /** Receives the positions of a file's members, for faults. */
  readonly onPositions: (file: string, positions: JsoncPositions) => void;
}

const sections = ['mcpServers', 'servers'];

const known: KnownMembers = {
  options,
  others: [...sections, '$schema', 'include', 'views'],
  foreign: ignoredRootKeys,
};
const knownOfView: KnownMembers = { options: viewLeaves, others: [], foreign: [] };

/**
 * Reads the text of a configuration file, which may have comments and trailing commas, and the files that it includes.
 * Reports all faults.
 * @param file the name of the file, for the paths of faults
 */
export function readConfigFile(text: string, file: string, context: FileContext): ConfigFile {
  const { report } = context;
  const given = new Map<string, GivenValue>();
  const root = readRoot(text, file, context);
  if (root === undefined) return { given, servers: [], views: [], included: [] };
  readBranch(root, '', `${file}: `, { given, known, references: context, report });
  placePin(given, file, `${defaultsBranch}.pin`);
  for (const key of Object.keys(root).filter((each) => ignoredRootKeys.includes(each))) {
    const why =
      key === 'inputs'
        ? 'is ignored, because the gateway asks nobody; for a secret, write ${file:/path} or ${VAR}'
        : 'is ignored, because it concerns only MCP clients';
    context.note(memberPath(`${file}: `, key), why);
  }
  const { servers: included, files } = readIncluded(root, file, context);
  const isComplete = Object.hasOwn(root, 'include') || included.length > 0;
  const own = readServers(root, file, isComplete, context);
  const names = new Set<string>();
  const servers = [...own, ...included].filter(({ name, path }) => {
    if (names.has(name)) report(path, 'has the name of another server; rename one of them');
    return !names.has(name) && names.add(name);
  });
  if (servers.length === 0 && isComplete)
    report(memberPath(`${file}: `, 'include'), 'includes no enabled server; add one, or correct the path');
  return { given, servers, views: readViews(root, file, context), included: files };
}

/** A relative path of a pin file begins at the folder of the file that names it, as those of `include` do. */
function placePin(given: Map<string, GivenValue>, file: string, key = 'pin'): Map<string, GivenValue> {
  const pin = given.get(key);
  if (typeof pin?.value === 'string' && pin.value !== '')
    given.set(key, { ...pin, value: resolve(dirname(file), pin.value) });
  return given;
}

function readViews(root: Readonly<Record<string, unknown>>, file: string, context: FileContext): ViewEntry[] {
  const { report } = context;
  const path = memberPath(`${file}: `, 'views');
  const views = root['views'] ?? {};
  if (!isObject(views)) {
    report(path, 'must be an object with a member for each view');
    return [];
  }
  return Object.entries(views).flatMap(([name, view]) => {
    const at = memberPath(path, name);
    const given = new Map<string, GivenValue>();
    if (Array.isArray(view)) {
      const servers = expandWhole(view, at, context);
      if (servers !== undefined) given.set('servers', { path: at, ...servers });
    } else if (isObject(view)) readBranch(view, '', at, { given, known: knownOfView, references: context, report });
    else {
      report(at, 'must be a list of server names, or an object such as { "servers": ["a", "b"], "separator": "_" }');
      return [];
    }
    placePin(given, file);
    return [{ name, path: at, given }];
  });
}

function readRoot(text: string, file: string, context: FileContext): Readonly<Record<string, unknown>> | undefined {
  const read = readJsonc(text.replace(/^\uFEFF/, ''));
  if (!read.ok) {
    const { line, column, message } = read.error;
    const other = /\.(?:(ya?ml)|toml)$/i.exec(file);
    if (other !== null) {
      const format = other[1] === undefined ? 'TOML' : 'YAML';
      context.report(
        file,
        `is ${format}, but the gateway reads only JSON, also with comments; convert the file to JSON`,
      );
      return undefined;
    }
    context.report(`${file}:${line}:${column}`, `is not valid JSON: ${message}`);
    return undefined;
  }
  context.onPositions(file, read.positions);
  if (isObject(read.value)) return read.value;
  context.report(file, 'must be a JSON object, such as { "mcpServers": { "NAME": { "command": "…" } } }');
  return undefined;
}

/** The folder beside the configuration file whose servers belong to it, without `include`. */
export const serversFolder = 'servers.d';

/**
 * Reads the files of `include`, and those of the folder `servers.d`: files of servers, or folders of such files. Paths are
 * relative to the including file.
 */
function readIncluded(
  root: Readonly<Record<string, unknown>>,
  file: string,
  context: FileContext,
): { readonly servers: readonly ServerEntry[]; readonly files: readonly string[] } {
  const { report, listFolder } = context;
  const at = memberPath(`${file}: `, 'include');
  const whole = expandWhole(root['include'] ?? [], at, context);
  if (whole === undefined) return { servers: [], files: [] };
  const given = whole.value;
  const names: readonly unknown[] = typeof given === 'string' ? [given] : Array.isArray(given) ? given : [undefined];
  if (!names.every((name) => typeof name === 'string' && name !== '')) {
    report(at, 'must be the path of a file or a folder, such as "servers.d", or a list of them');
    return { servers: [], files: [] };
  }
  const named = names.map((name) => join(dirname(file), String(name)));
  const own = join(dirname(file), serversFolder);
  // The folder may be made later, so it is watched in any case.
  const paths = [...new Set([...named, own])];
  // Included files are named without their folder, so that the fault says where they are looked for.
  const reportUnreadable = (path: string, error: unknown): void =>
    report(at, `includes ${basename(path)}, which ${whyUnreadable(error, '', 'the folder of this file')}`);
  const found = paths.flatMap((path) => {
    try {
      const inside = listFolder(path);
      if (inside === undefined && !named.includes(path)) return [];
      return (
        inside
          ?.filter((name) => /\.jsonc?$/.test(name))
          .toSorted()
          .map((name) => join(path, name)) ?? [path]
      );
    } catch (error) {
      const isAbsent = errorCodeOf(error) === 'ENOENT' && !named.includes(path);
      if (!isAbsent) reportUnreadable(path, error);
      return [];
    }
  });
  const servers = found.flatMap((path) => readIncludedFile(path, reportUnreadable, context));
  return { servers, files: [...new Set([...paths, ...found])] };
}

function readIncludedFile(
  file: string,
  reportUnreadable: (path: string, error: unknown) => void,
  context: FileContext,
): readonly ServerEntry[] {
  let text: string;
  try {
    text = context.readFile(file);
  } catch (error) {
    reportUnreadable(file, error);
    return [];
  }
  const root = readRoot(text, file, context);
  if (root === undefined) return [];
  for (const key of Object.keys(root)) {
    if ([...sections, '$schema'].includes(key)) continue;
    const path = memberPath(`${file}: `, key);
    const isOption = [...options.keys()].some((each) => each === key || each.startsWith(`${key}.`));
    if (isOption) context.report(path, 'belongs in the main file: an included file contains only servers');
    else context.note(path, 'is ignored, because it is not a setting of the gateway');
  }
  return readServers(root, file, false, context);
}

/** @param isOptional true if the servers may all be in included files */
function readServers(
  root: Readonly<Record<string, unknown>>,
  file: string,
  isOptional: boolean,
  context: EntryContext,
): ServerEntry[] {
  const { report } = context;
  const [section, another] = sections.filter((key) => Object.hasOwn(root, key));
  if (section === undefined && isOptional) return [];
  if (section === undefined || another !== undefined) {
    report(
      file,
      section === undefined
        ? 'has no mcpServers; add "mcpServers": { "NAME": { "command": "…" } }'
        : 'has both mcpServers and servers; put all servers into one of them',
    );
    return [];
  }
  const path = memberPath(`${file}: `, section);
  const servers = root[section];
  if (!isObject(servers)) {
    report(path, 'must be an object with a member for each server, such as { "NAME": { "command": "…" } }');
    return [];
  }
  const entries = Object.entries(servers);
  for (const [name, entry] of entries) if (isDisabled(entry)) context.onDisabled?.(name);
  const enabled = entries.filter(([, entry]) => !isDisabled(entry));
  if (enabled.length === 0 && !isOptional) report(path, 'has no enabled server; add one, or remove "disabled": true');
  return enabled.map(([name, entry]) => {
    const read = readServerEntry(name, entry, memberPath(path, name), context);
    return { ...read, given: placePin(new Map(read.given), file) };
  });
}
