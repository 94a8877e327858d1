import { memberPath } from '../issues.ts';
import { globalOptions, serverOptions } from '../options/options.ts';
import type { Given, GivenValue } from './given-values.ts';
import { readJsonc } from './read-jsonc.ts';
import {
  type EntryContext,
  isDisabled,
  isObject,
  readServerEntry,
  type ServerEntry,
  unknownKey,
} from './server-entry.ts';

/** The content of the configuration file. */
export interface ConfigFile {
  /** The global options and the defaults for all servers, by key. */
  readonly given: Given;
  readonly servers: readonly ServerEntry[];
}

const sections = ['mcpServers', 'servers'];
/** `inputs` is a section of VS Code's files. A server that uses an input gets a fault of its own. */
const withoutMeaning = ['$schema', 'inputs'];
const optionKeys = [...Object.keys(globalOptions), ...Object.keys(serverOptions)];

/**
 * Reads the text of a configuration file, which may have comments and trailing commas, and reports all faults.
 * @param file the name of the file, for the paths of faults
 */
export function readConfigFile(text: string, file: string, context: EntryContext): ConfigFile {
  const { report } = context;
  const given = new Map<string, GivenValue>();
  const nothing = { given, servers: [] };

  const read = readJsonc(text.replace(/^\uFEFF/, ''));
  if (!read.ok) {
    const { line, column, message } = read.error;
    report(`${file}:${line}:${column}`, `is not valid JSON: ${message}`);
    return nothing;
  }
  const root = read.value;
  if (!isObject(root)) {
    report(file, 'must be a JSON object with mcpServers');
    return nothing;
  }
  for (const [key, value] of Object.entries(root)) {
    const path = memberPath(`${file}: `, key);
    if (optionKeys.includes(key)) given.set(key, { path, value });
    else if (![...sections, ...withoutMeaning].includes(key))
      report(path, unknownKey(key, [...sections, ...optionKeys]));
  }
  return { given, servers: readServers(root, file, context) };
}

function readServers(root: Readonly<Record<string, unknown>>, file: string, context: EntryContext): ServerEntry[] {
  const { report } = context;
  const [section, another] = sections.filter((key) => Object.hasOwn(root, key));
  if (section === undefined || another !== undefined) {
    report(
      file,
      section === undefined
        ? 'has no mcpServers; add an object with a member for each server'
        : 'has both mcpServers and servers; put all servers into one of them',
    );
    return [];
  }
  const path = memberPath(`${file}: `, section);
  const servers = root[section];
  if (!isObject(servers)) {
    report(path, 'must be an object with a member for each server');
    return [];
  }
  const enabled = Object.entries(servers).filter(([, entry]) => !isDisabled(entry));
  if (enabled.length === 0) report(path, 'has no enabled server');
  return enabled.map(([name, entry]) => readServerEntry(name, entry, memberPath(path, name), context));
}
