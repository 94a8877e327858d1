import type { ConfigurationIssue, NameOf } from '../issues.ts';
import { serverPathOf, shortFlagOf, treePathOf, variableOf } from '../tree/places.ts';

/** The shortest flag of an option: `--port`, `--timeouts.drain`. */
export const flagOf = (key: string): string => shortFlagOf(key) ?? `--${treePathOf(key)}`;

/** The shortest variable of an option: `GANGWAY_PORT`, `GANGWAY_TIMEOUTS_DRAIN`. */
export const environmentNameOf = (key: string): string => variableOf(shortFlagOf(key) ?? treePathOf(key));

/** All flags of an option: the short one, and its path in the tree. */
export const flagsOf = (key: string): readonly string[] => [...new Set([flagOf(key), `--${treePathOf(key)}`])];

/** All variables of an option. */
export const environmentNamesOf = (key: string): readonly string[] => [
  ...new Set([environmentNameOf(key), variableOf(treePathOf(key))]),
];

/**
 * The option names of the source with a fault, so that a message about the command line names flags.
 * @param hasFile true if there is a configuration file. A path of neither the environment nor a flag is in the file
 * then.
 */
export function namesAt(path: ConfigurationIssue['path'], hasFile: boolean): NameOf {
  if (path.startsWith('GANGWAY_')) return environmentNameOf;
  if (path.startsWith('--') || !hasFile) return flagOf;
  return /: (?:mcpServers|servers)[.[]/.test(path) ? (key) => serverPathOf(key) ?? treePathOf(key) : treePathOf;
}
