import type { Configuration, GatewayConfig, ServerConfig } from '../../config/config.ts';
import type { Option } from '../../config/options/option-kinds.ts';
import { globalOptions, type OptionTable, serverOptions } from '../../config/options/options.ts';
import { serverPathOf, treePathOf } from '../../config/tree/places.ts';

/** A configuration that was read without a fault. */
type ReadConfiguration = Extract<Configuration, { readonly config: GatewayConfig }>;

/** One value of the tree, and a remark about its source. */
interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly remark: string;
}

const masked = '***';

/** Options whose values are secrets or can contain them. */
const secretKeys: ReadonlySet<string> = new Set(['stateKey', 'env', 'headers']);

/** Words before or in an argument whose value is probably a secret. */
const secretWord = /token|key|secret|passw|credential|auth/i;

/**
 * Renders the effective configuration as a file with comments: every option of the gateway, and the options of each
 * server that are not defaults, each with its source. Values that came from a variable or a file are shown as the
 * reference to it, and other secrets are masked.
 */
export function renderConfiguration(read: ReadConfiguration): string {
  const { config, origins, serverOrigins, references } = read;
  const mask = maskOf(references);
  const leaves: Leaf[] = Object.entries<Option>(globalOptions).flatMap(([key, option]) =>
    leafOf(
      treePathOf(key).split('.'),
      key,
      option,
      config,
      origins.get(key) ?? defaultRemark(key, option, config),
      mask,
    ),
  );
  const servers = config.servers.flatMap((server) => {
    const own = serverOrigins.get(server.name);
    return serverLeaves(server, (key) => own?.get(key) ?? origins.get(key), mask);
  });
  return `${renderTree([...leaves, ...servers])}\n`;
}

/** Some times are derived from others, so that a value without a source is not always the default of its option. */
const defaultRemark = (key: string, { default: value }: Option, config: object): string =>
  new Map(Object.entries(config)).get(key) === value ? 'default' : 'derived';

function serverLeaves(
  server: ServerConfig,
  originOf: (key: string) => string | undefined,
  mask: (text: string) => string,
): Leaf[] {
  const at = ['mcpServers', server.name];
  const target =
    server.address === undefined
      ? { command: mask(server.command), args: maskArguments(server.args).map(mask) }
      : { url: mask('url' in server.address ? urlWithoutQuery(server.address.url) : JSON.stringify(server.address)) };
  const options: OptionTable = serverOptions;
  return [
    ...Object.entries(target).map(([name, value]): Leaf => ({ path: [...at, name], value, remark: '' })),
    ...Object.entries(options).flatMap(([key, option]) => {
      const origin = originOf(key);
      return origin === undefined
        ? []
        : leafOf([...at, ...(serverPathOf(key) ?? key).split('.')], key, option, server, origin, mask);
    }),
  ];
}

function leafOf(
  path: readonly string[],
  key: string,
  option: Option,
  values: object,
  remark: string,
  mask: (text: string) => string,
): Leaf[] {
  const value = new Map<string, unknown>(Object.entries(values)).get(key);
  if (value === undefined) return [];
  const shown = typeof value === 'number' ? (option.format?.(value) ?? value) : maskDeeply(value, mask);
  const hidden = secretKeys.has(key)
    ? hideValues(shown)
    : key === 'redis'
      ? redisWithoutSecrets(shown)
      : hideSecretMembers(shown);
  return [{ path, value: hidden, remark }];
}

/** Replaces each value that came from a variable or a file by its reference, the longest values first. */
function maskOf(references: ReadonlyMap<string, string>): (text: string) => string {
  const known = [...references].filter(([value]) => value !== '').toSorted(([a], [b]) => b.length - a.length);
  return (text) => known.reduce((shown, [value, reference]) => shown.replaceAll(value, () => reference), text);
}

function maskDeeply(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === 'string') return mask(value);
  if (Array.isArray(value)) return value.map((item) => maskDeeply(item, mask));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, maskDeeply(item, mask)]));
}

/** Hides texts that are not only a reference. */
function hideValues(value: unknown): unknown {
  if (typeof value === 'string') return /^\$\{[^{}]*\}$/.test(value) ? value : masked;
  if (Array.isArray(value)) return value.map(hideValues);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hideValues(item)]));
}

/** Hides the members of an object whose names say that they are secrets, such as `clientSecret`. */
const hideSecretMembers = (value: unknown): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, /secret$|^privateKey$/i.test(key) ? hideValues(item) : item]),
      );

const redisWithoutSecrets = (url: unknown): unknown =>
  typeof url === 'string' ? url.replace(/\/\/[^@/]*@/, `//${masked}@`).replace(/\?.*$/s, `?${masked}`) : url;

const urlWithoutQuery = (url: URL): string =>
  `${url.origin === 'null' ? `${url.protocol}//${url.host}` : url.origin}${url.pathname}${url.search && `?${masked}`}`;

/** Hides the value of arguments such as `--token=…`, and an argument after `--token`. */
const maskArguments = (args: readonly string[]): string[] =>
  args.map((argument, index) => {
    const [name, value] = argument.split(/=(.*)/s, 2);
    if (value !== undefined && secretWord.test(name ?? '')) return `${name}=${masked}`;
    const before = args[index - 1] ?? '';
    const follows = before.startsWith('-') && !before.includes('=') && secretWord.test(before);
    return follows && !argument.startsWith('-') ? masked : argument;
  });

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
