import type { ConfigurationIssue, NameOf } from '../issues.ts';
import type { Option } from './option-kinds.ts';
import { gatewayLeaves, type OptionPath, serverLeaves } from './options.ts';

/** The branch of the options for all servers. */
export const defaultsBranch = 'defaults';

/** All options by their paths from the root of the file, where those of servers are below `defaults`. */
export const options: ReadonlyMap<string, Option> = new Map([
  ...gatewayLeaves,
  ...[...serverLeaves].map(([path, option]) => [`${defaultsBranch}.${path}`, option] as const),
]);

/** The path from the root of the file, for a path in the entry of a server too. */
export const rootPathOf = (path: OptionPath | string): string =>
  serverLeaves.has(path) ? `${defaultsBranch}.${path}` : path;

/** All flags of an option: the short one, and its path in the tree. */
export const flagsOf = (path: OptionPath | string): readonly [string, ...string[]] => {
  const root = rootPathOf(path);
  const short = options.get(root)?.short;
  return short === undefined ? [`--${root}`] : [short, `--${root}`];
};

/** The shortest flag of an option: `--port`, `--timeouts.drain`. */
export const flagOf = (path: OptionPath): string => flagsOf(path)[0];

/** All variables of an option, the shortest first. */
export const variablesOf = (path: OptionPath | string): readonly string[] => flagsOf(path).map(variableOf);

/** The shortest variable of an option: `GANGWAY_PORT`, `GANGWAY_TIMEOUTS_DRAIN`. */
export const environmentNameOf = (path: OptionPath): string => variableOf(flagOf(path));

/** `timeouts.sessionIdle` → `GANGWAY_TIMEOUTS_SESSION_IDLE`, `--session-idle` → `GANGWAY_SESSION_IDLE`. */
export const variableOf = (name: string): string =>
  `GANGWAY_${name
    .replace(/^--/, '')
    .replace(/[A-Z]/g, (letter) => `_${letter}`)
    .replace(/[.-]/g, '_')
    .toUpperCase()}`;

/**
 * The option names of the source with a fault, so that a message about the command line names flags.
 * @param hasFile true if there is a configuration file. A path of neither the environment nor a flag is in the file
 * then.
 */
export function namesAt(path: ConfigurationIssue['path'], hasFile: boolean): NameOf {
  if (path.startsWith('GANGWAY_')) return (each) => variableOf(flagsOf(each)[0]);
  if (path.startsWith('--') || !hasFile) return (each) => flagsOf(each)[0];
  return /: (?:mcpServers|servers)[.[]/.test(path) ? (each) => each : rootPathOf;
}
