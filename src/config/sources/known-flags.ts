import { nearestName } from '../../util/text/nearest-name.ts';
import type { Option } from '../options/option-kinds.ts';
import { flagOf, flagsOf } from '../options/option-names.ts';
import { globalOptions, serverOptions } from '../options/options.ts';
import { defaultsBranch } from '../tree/places.ts';

const options = Object.entries<Option>({ ...globalOptions, ...serverOptions });
const keyByFlag = new Map(options.flatMap(([key]) => flagsOf(key).map((flag) => [flag, key] as const)));
const optionByKey = new Map(options);

/** Flags that are not options of the tree. */
const ownFlags = [
  '--config',
  '--name',
  '--config-only',
  '--add',
  '--scope',
  '--expires',
  '--json',
  '--ready',
  '--help',
  '--version',
];

/** The option of a flag. A path is also accepted with hyphens: `--timeouts.session-idle`. */
export function keyOfFlag(flag: string): string | undefined {
  const path = flag.includes('.')
    ? flag.replace(/(\w)-([a-z])/g, (_, before, letter) => before + letter.toUpperCase())
    : flag;
  return keyByFlag.get(path);
}

/** The kind of a flag's option. */
export const kindOfFlag = (flag: string): Option['kind'] | undefined => optionByKey.get(keyOfFlag(flag) ?? '')?.kind;

/** The default of a flag's option as the user would write it; undefined without one. */
export function exampleValueOf(flag: string): string | undefined {
  const option = optionByKey.get(keyOfFlag(flag) ?? '');
  const value = option?.default;
  if (typeof value === 'number') return option?.format?.(value) ?? String(value);
  return typeof value === 'string' ? value : undefined;
}

/** True for an argument that begins with a flag of the gateway. */
export function isKnownFlag(argument: string): boolean {
  const [flag = ''] = argument.split('=', 1);
  return ownFlags.includes(flag) || keyOfFlag(flag) !== undefined;
}

/**
 * The fault of an unknown flag, with the flag that the user probably meant.
 * @param hasCommand true if a command of a server follows `--`
 */
export function explainUnknownFlag(flag: string, hasCommand = true): string {
  const ofServers = flag.replace(/^--/, `--${defaultsBranch}.`);
  if (keyOfFlag(ofServers) !== undefined)
    return `is a server option; use ${ofServers} for all servers, or set it in the entry of a server`;
  const last = nearestName(flag.replace(/^-+/, ''), lastWords);
  const nearest =
    otherNames.get(flag) ??
    nearestName(flag, knownNames) ??
    (last && [...keyByFlag.keys()].find((path) => path.split('.').at(-1) === last));
  if (nearest !== undefined) return `is not an option; did you mean ${nearest}?`;
  return isShortFlag(flag) && !hasCommand
    ? "is not an option of mcp-gangway; if it belongs to the server's command, put -- and that command before it, as in mcp-gangway -- npx -y …"
    : 'is not an option; see mcp-gangway --help all';
}

/** True for `-y`: the gateway has no such options except -h and -v. */
export const isShortFlag = (flag: string): boolean => /^-[^-]/.test(flag);

/** Names in other gateways and proxies that are too different from the flag with the same meaning. */
const otherNames = new Map(
  Object.entries({
    sessionIdleMs: ['--session-timeout', '--session-ttl', '--idle-timeout', '--session-idle-timeout'],
    requestMaxMs: ['--request-timeout', '--timeout', '--call-timeout'],
    publicUrl: ['--base-url', '--external-url'],
    allowOrigin: ['--cors', '--cors-origin', '--cors-origins'],
    host: ['--bind', '--address', '--listen', '--hostname'],
    logLevel: ['--verbose', '--debug', '--quiet', '--log'],
    redis: ['--redis-url'],
    drainMs: ['--shutdown-timeout', '--grace-period'],
    headers: ['--headers'],
    path: ['--endpoint', '--mcp-path'],
  }).flatMap(([key, names]) => names.map((name) => [name, flagOf(key)] as const)),
);

const knownNames = [...ownFlags, ...keyByFlag.keys()];
const lastWords = [...keyByFlag.keys()].map((path) => path.split('.').at(-1) ?? path);
