// src/app/commands/print: `mcp-gangway config print`, the configuration in use with the source of each value.

import type { Configuration, GatewayConfig, Origin, ServerConfig } from '../../../config/config.ts';
import type { Option } from '../../../config/options/option-kinds.ts';
import { defaultsBranch } from '../../../config/options/option-names.ts';
import { gatewayLeaves, gatewayOptions, serverLeaves, viewLeaves } from '../../../config/options/options.ts';
import type { ServerAddress } from '../../../config/server-url.ts';
import { leafValue } from '../../../config/tree/branch.ts';
import { showArguments, showCommandText, showOption, showUrl } from './shown-value.ts';

/** One value of the tree, and a remark about its source. */
interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly remark: string;
}

/** The source of an option, if it is set. */
type OriginOf = (path: string) => Origin | undefined;

/**
 * Renders the effective configuration as a file with comments: every option of the gateway, the values for all servers
 * below `defaults`, and what each server sets itself, each with its source. Secrets and texts of files are shown as the
 * references to them, or masked (docs/decisions/0107).
 */
export function renderConfiguration(read: Extract<Configuration, { readonly config: GatewayConfig }>): string {
  const { config, defaults, origins, serverOrigins } = read;
  const originOf: OriginOf = (path) => origins.get(path);
  const leaves = [
    ...shownLeaves(gatewayLeaves, config, originOf, ''),
    ...shownLeaves(serverLeaves, defaults, originOf, `${defaultsBranch}.`),
    ...config.servers.flatMap((server) => {
      const own = serverOrigins.get(server.name);
      const ownOf: OriginOf = (path) => own?.get(path);
      return server.address?.transport === 'view'
        ? ownLeavesOfView(server, server.address, ownOf)
        : ownLeaves(server, defaults, ownOf);
    }),
  ];
  return `${renderTree(leaves.toSorted((a, b) => rankOf(a) - rankOf(b)))}\n`;
}

/** The branches in the order of the reference. */
const branches = [...Object.keys(gatewayOptions), defaultsBranch, 'mcpServers', 'views'];

const rankOf = ({ path: [first = ''] }: Leaf): number => branches.indexOf(first);

function shownLeaves(options: ReadonlyMap<string, Option>, values: object, originOf: OriginOf, prefix: string): Leaf[] {
  return [...options].flatMap(([path, option]) =>
    leafOf((prefix + path).split('.'), option, leafValue(values, path, option), originOf(prefix + path), 'default'),
  );
}

function leafOf(
  path: readonly string[],
  option: Option,
  value: unknown,
  origin: Origin | undefined,
  remarkWithout: string,
): Leaf[] {
  if (value === undefined) return [];
  const shown = showOption(option, value, origin?.written);
  const from = shown.from === undefined ? '' : `, ${JSON.stringify(shown.from)}`;
  return [{ path, value: shown.value, remark: `${origin?.place ?? remarkWithout}${from}` }];
}

/** What a server sets itself, and the values for all servers that do not apply to it. */
function ownLeaves(server: ServerConfig, defaults: object, ownOf: OriginOf): Leaf[] {
  const at = ['mcpServers', server.name];
  return [
    ...targetLeaves(at, server, ownOf),
    ...[...serverLeaves].flatMap(([path, option]) => {
      const place = [...at, ...path.split('.')];
      const value = leafValue(server, path, option);
      const own = ownOf(path);
      // `env` is merged with that below `defaults`, which is printed there.
      if (own !== undefined) return leafOf(place, option, path === 'env' ? own.value : value, own, '');
      const isCommon = JSON.stringify(value) === JSON.stringify(leafValue(defaults, path, option));
      return isCommon ? [] : leafOf(place, option, value, undefined, `${defaultsBranch}.${path} does not apply`);
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

/** The settings of a view. */
function ownLeavesOfView(
  server: ServerConfig,
  { members, timeoutMs }: Extract<ServerAddress, { readonly transport: 'view' }>,
  ownOf: OriginOf,
): Leaf[] {
  const prefixed = members.find(({ prefix }) => prefix !== '');
  const separator = prefixed?.prefix.slice(prefixed.name.length);
  const unprefixed = members.find(({ prefix }) => prefix === '')?.name;
  const values = { ...server, servers: members.map(({ name }) => name), separator, unprefixed, timeoutMs };
  return [...viewLeaves].flatMap(([path, option]) =>
    leafOf(['views', server.name, path], option, leafValue(values, path, option), ownOf(path), 'default'),
  );
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
