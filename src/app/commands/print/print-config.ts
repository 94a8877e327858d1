// src/app/commands/print: `mcp-gangway config print`, the configuration in use with the source of each value.

import type { Configuration, GatewayConfig, Origin, ServerConfig } from '../../../config/config.ts';
import { isDefault, type Option } from '../../../config/options/option-kinds.ts';
import { globalOptions, type OptionTable, serverOptions } from '../../../config/options/options.ts';
import type { ServerAddress } from '../../../config/server-url.ts';
import { filterOptions } from '../../../config/servers/filter-options.ts';
import { defaultsBranch, gatewayPlaces, serverPathOf, serverPlaces, treePathOf } from '../../../config/tree/places.ts';
import { formatDuration } from '../../../config/units.ts';
import { showArguments, showCommandText, showOption, showUrl } from './shown-value.ts';

/** A configuration that was read without a fault. */
type ReadConfiguration = Extract<Configuration, { readonly config: GatewayConfig }>;

/** One value of the tree, and a remark about its source. */
interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly remark: string;
}

/** The source of an option, if it is set. */
type OriginOf = (key: string) => Origin | undefined;

/**
 * Renders the effective configuration as a file with comments: every option of the gateway, the values for all servers
 * below `defaults`, and what each server sets itself, each with its source. Secrets and texts of files are shown as the
 * references to them, or masked (docs/decisions/0107).
 */
export function renderConfiguration(read: ReadConfiguration): string {
  const { config, defaults, origins, serverOrigins } = read;
  const originOf: OriginOf = (key) => origins.get(key);
  const leaves = [
    ...leavesOf(globalOptions, config, originOf, treePathOf),
    ...leavesOf(serverOptions, defaults, originOf, treePathOf),
    ...config.servers.flatMap((server) => {
      const own = serverOrigins.get(server.name);
      return server.address?.transport === 'view'
        ? viewLeaves(server, server.address, own?.get('views')?.place ?? '')
        : serverLeaves(server, defaults, (key) => own?.get(key));
    }),
  ];
  return `${renderTree(leaves.toSorted((a, b) => rankOf(a) - rankOf(b)))}\n`;
}

/** The branches in the order of the reference. The advanced options are last. */
const branches = [
  ...new Set(Object.values(gatewayPlaces).map((place) => place.split('.', 1)[0] ?? '')),
  defaultsBranch,
  'mcpServers',
  'views',
].toSorted((a, b) => Number(a === 'advanced') - Number(b === 'advanced'));

const rankOf = ({ path: [first = ''] }: Leaf): number => branches.indexOf(first);

function leavesOf(table: OptionTable, values: object, originOf: OriginOf, placeOf: (key: string) => string): Leaf[] {
  return inOrder(table).flatMap(([key, option]) => {
    const value = valueIn(values, key);
    // Some times are derived from others, so that a value without a source is not always the default of its option.
    const remark = isDefault(option, value) ? 'default' : 'derived';
    return leafOf(placeOf(key).split('.'), key, option, value, originOf(key), remark);
  });
}

const places = [...Object.keys(gatewayPlaces), ...Object.keys(serverPlaces)];

/** The options in the order of the tree. */
const inOrder = (table: OptionTable): (readonly [string, Option])[] =>
  Object.entries(table).toSorted(([a], [b]) => places.indexOf(a) - places.indexOf(b));

const valueIn = (values: object, key: string): unknown => new Map<string, unknown>(Object.entries(values)).get(key);

function leafOf(
  path: readonly string[],
  key: string,
  option: Option,
  value: unknown,
  origin: Origin | undefined,
  remarkWithout: string,
): Leaf[] {
  if (value === undefined) return [];
  const shown = showOption(key, option, value, origin?.written);
  const from = shown.from === undefined ? '' : `, ${JSON.stringify(shown.from)}`;
  return [{ path, value: shown.value, remark: `${origin?.place ?? remarkWithout}${from}` }];
}

/** What a server sets itself, and the values for all servers that do not apply to it. */
function serverLeaves(server: ServerConfig, defaults: object, ownOf: OriginOf): Leaf[] {
  const at = ['mcpServers', server.name];
  const options: OptionTable = serverOptions;
  return [
    ...targetLeaves(at, server, ownOf),
    ...inOrder(options).flatMap(([key, option]) => {
      const path = [...at, ...(serverPathOf(key) ?? key).split('.')];
      const value = valueIn(server, key);
      const own = ownOf(key);
      // `env` is merged with that below `defaults`, which is printed there.
      if (own !== undefined) return leafOf(path, key, option, key === 'env' ? own.value : value, own, '');
      const isCommon = JSON.stringify(value) === JSON.stringify(valueIn(defaults, key));
      return isCommon
        ? []
        : leafOf(path, key, option, value, undefined, `${defaultsBranch}.${serverPathOf(key)} does not apply`);
    }),
  ];
}

/** The command or the URL of a server. */
function targetLeaves(at: readonly string[], server: ServerConfig, ownOf: OriginOf): Leaf[] {
  const leaf = (name: string, value: unknown, origin: Origin | undefined): Leaf => ({
    path: [...at, name],
    value,
    remark: origin?.place ?? 'command line',
  });
  if (server.address !== undefined) {
    const url = ownOf('url');
    return [leaf('url', showUrl(textOf(url?.written) ?? urlOf(server.address)), url)];
  }
  const [command, args] = [ownOf('command'), ownOf('args')];
  const text = textOf(command?.written);
  // One text with a reference was split after its replacement.
  if (text !== undefined && args === undefined) return [leaf('command', showCommandText(text), command)];
  const written = Array.isArray(args?.written) ? args.written.map(String) : undefined;
  return [
    leaf('command', text ?? server.command, command),
    leaf('args', showArguments(written ?? server.args), args ?? command),
  ];
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

function urlOf(address: ServerAddress): string {
  switch (address.transport) {
    case 'tcp':
      return `tcp://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
    case 'unix':
      return `unix://${address.path}`;
    case 'view':
      return '';
    default:
      return address.url.href;
  }
}

/** The settings of a view, which its schema completes. */
function viewLeaves(
  server: ServerConfig,
  { members, timeoutMs }: Extract<ServerAddress, { readonly transport: 'view' }>,
  remark: string,
): Leaf[] {
  const prefixed = members.find(({ prefix }) => prefix !== '');
  const unprefixed = members.find(({ prefix }) => prefix === '');
  const filters: OptionTable = filterOptions;
  const values = {
    servers: members.map(({ name }) => name),
    ...(prefixed && { separator: prefixed.prefix.slice(prefixed.name.length) }),
    ...(unprefixed && { unprefixed: unprefixed.name }),
    timeout: formatDuration(timeoutMs),
    ...Object.fromEntries(
      Object.entries(filters).flatMap(([key, option]) => {
        const value = valueIn(server, key);
        return isDefault(option, value) ? [] : [[key, showOption(key, option, value, undefined).value]];
      }),
    ),
  };
  return Object.entries(values).map(([name, value]) => ({ path: ['views', server.name, name], value, remark }));
}

/** Renders leaves as a JSON object with a comment behind each value. */
function renderTree(leaves: readonly Leaf[], depth = 0): string {
  const indent = '  '.repeat(depth + 1);
  const names = [...new Set(leaves.map(({ path }) => path[depth] ?? ''))];
  const lines = names.map((name, index) => {
    const below = leaves.filter(({ path }) => path[depth] === name);
    const [leaf] = below;
    const isLeaf = leaf !== undefined && leaf.path.length === depth + 1;
    const value = isLeaf ? JSON.stringify(leaf.value) : renderTree(below, depth + 1);
    const comma = index < names.length - 1 ? ',' : '';
    return `${indent}${JSON.stringify(name)}: ${value}${comma}${isLeaf && leaf.remark !== '' ? ` // ${leaf.remark}` : ''}`;
  });
  return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`;
}
