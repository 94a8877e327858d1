import { nearestName } from '../../core/util/text/nearest-name.ts';
import type { Option } from '../options/option-kinds.ts';
import { defaultsBranch, flagsOf, options } from '../options/option-names.ts';
import { commandFlags } from './command-table.ts';

const pathByFlag = new Map([...options.keys()].flatMap((path) => flagsOf(path).map((flag) => [flag, path] as const)));

/** Flags that are not options of the tree. */
export const ownFlags = [...commandFlags.keys(), '--help', '--version'];

/** The path of a flag's option. It can be written with hyphens: `--timeouts.session-idle`. */
export const pathOfFlag = (flag: string): string | undefined =>
  pathByFlag.get(
    flag.includes('.') ? flag.replace(/(\w)-([a-z])/g, (_, before, letter) => before + letter.toUpperCase()) : flag,
  );

/** The option of a flag. */
export const optionOfFlag = (flag: string): Option | undefined => options.get(pathOfFlag(flag) ?? '');

/** True for an argument that begins with a flag of the gateway. */
export function isKnownFlag(argument: string): boolean {
  const [flag = ''] = argument.split('=', 1);
  return ownFlags.includes(flag) || pathOfFlag(flag) !== undefined;
}

/**
 * The fault of an unknown flag, with the flag that the user probably meant.
 * @param hasCommand true if a command of a server follows `--`
 */
export function explainUnknownFlag(flag: string, hasCommand = true): string {
  const ofServers = flag.replace(/^--/, `--${defaultsBranch}.`);
  if (pathOfFlag(ofServers) !== undefined)
    return `is a server option; use ${ofServers} for all servers, or set it in the entry of a server`;
  const last = nearestName(flag.replace(/^-+/, ''), lastWords);
  const nearest =
    otherNames.get(flag) ??
    nearestName(flag, knownNames) ??
    (last && [...pathByFlag.keys()].find((path) => path.split('.').at(-1) === last));
  if (nearest !== undefined) return `is not an option; did you mean ${nearest}?`;
  return isShortFlag(flag) && !hasCommand
    ? "is not an option of mcp-gangway; if it belongs to the server's command, put -- and that command before it, as in mcp-gangway -- npx -y …"
    : 'is not an option; see mcp-gangway --help all';
}

/** True for `-y`: the gateway has no such options except -h and -v. */
export const isShortFlag = (flag: string): boolean => /^-[^-]/.test(flag);

/** Flags of other gateways and proxies, which are too different from the flag with the same meaning. */
const otherNames = new Map(
  [...options].flatMap(([path, { otherFlags = [] }]) => otherFlags.map((name) => [name, flagsOf(path)[0]] as const)),
);

const knownNames = [...ownFlags, ...pathByFlag.keys()];
const lastWords = [...pathByFlag.keys()].map((path) => path.split('.').at(-1) ?? path);
