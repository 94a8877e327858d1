// src/config: reads the configuration from the command line, the environment and a file, and checks it.

import type { ApiKey } from '../core/auth/api-keys.ts';
import { isLoopback } from '../core/auth/origin-rules.ts';
import { readKeysFile, readKeysOfEnvironment } from './access/api-key-sources.ts';
import { hasAuthentication, strangersOf } from './access/authentication-config.ts';
import { readCertificate } from './access/certificate-files.ts';
import { type KeyRequest, readKeyRequest } from './access/key-request.ts';
import { type DerivedValues, deriveValues } from './derived-values.ts';
import { findDuplicatePath } from './endpoint-paths.ts';
import { type ConfigurationIssue, type ReportIssue, renderIssue, renderIssueMessage } from './issues.ts';
import { limitOptions } from './options/limit-options.ts';
import { defaultsBranch, environmentNameOf, flagOf, flagsOf, namesAt } from './options/option-names.ts';
import { type GatewayOptions, gatewayOptions, type ServerOptions, serverOptions } from './options/options.ts';
import { accessRules, type GatewayAccess, gatewayRules } from './rules/gateway-rules.ts';
import { checkRules } from './rules/rules.ts';
import { readServers, type ServerConfig } from './servers/configured-servers.ts';
import { readServerListRequest, type ServerListRequest } from './servers/server-list-request.ts';
import { readViews } from './servers/views.ts';
import { type CommandLine, checkCommandWord, readCommandLine } from './sources/command-line.ts';
import { forms, type HelpTopic, helpTopics } from './sources/command-table.ts';
import { type ConfigFile, type FileContext, readConfigFile } from './sources/config-file.ts';
import {
  configFileVariable,
  type Environment,
  environmentWarnings,
  givenByEnvironment,
} from './sources/environment-variables.ts';
import { type Given, placesIn, resolveOptions } from './sources/given-values.ts';
import { type NamedFile, readNamedFile } from './sources/named-file.ts';
import { type Origins, originsOf, positionOf, serverOriginsOf } from './sources/origins.ts';
import type { JsoncPositions } from './sources/read-jsonc.ts';
import { leafValue, leavesOf } from './tree/branch.ts';

export type { LocalServer, RemoteServer, ServerConfig } from './servers/configured-servers.ts';
export type { Origin } from './sources/origins.ts';

/** The configuration of a gateway, resolved and checked. */
export interface GatewayConfig extends GatewayOptions {
  readonly derived: DerivedValues;
  /** At least one server; the names are distinct. */
  readonly servers: readonly ServerConfig[];
  /** The keys of the environment. The other keys are in `apiKeysFile`, which was read without a fault. */
  readonly apiKeys: readonly ApiKey[];
  /** True if the operator has chosen the port of the operator port. */
  readonly isAdminPortChosen: boolean;
  /** The only server at the start of the gateway. This server keeps its paths when others are added. */
  readonly firstServer?: string | undefined;
}

/** Where a configuration comes from; nothing else is read. */
export interface ConfigurationSources {
  /** The arguments after the program's name. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The text of a file; throws as `readFileSync` does. */
  readonly readFile: (path: string) => string;
  /** The names of the files in a folder, or undefined if the path is not a folder. Throws if it cannot be read. */
  readonly listFolder?: (path: string) => readonly string[] | undefined;
  /** True if a file has exactly this name. A command with blanks is not split then. */
  readonly findCommand?: (name: string) => boolean;
}

/** The command to run with its configuration, or all faults. */
export type Configuration =
  | { readonly ok: true; readonly command: 'help'; readonly on: HelpTopic }
  | { readonly ok: true; readonly command: 'version' }
  | { readonly ok: true; readonly command: 'schema' }
  | { readonly ok: true; readonly command: 'completion'; readonly shell: string }
  | { readonly ok: true; readonly command: 'key'; readonly key: KeyRequest }
  | {
      readonly ok: true;
      readonly command: 'audit';
      readonly files: readonly string[];
      readonly last: string | undefined;
    }
  | { readonly ok: true; readonly command: 'add' | 'remove' | 'list'; readonly request: ServerListRequest }
  | {
      readonly ok: true;
      readonly command: 'serve' | 'check' | 'health' | 'print' | 'upgrade' | 'pin' | 'connect';
      readonly config: GatewayConfig;
      /** The word after the command. */
      readonly word: string | undefined;
      /** The options for every server that does not set its own value. */
      readonly defaults: ServerOptions;
      /** The sources of the options that are set, by the path of the option. */
      readonly origins: Origins;
      /** The sources of each server's own options, command and URL, by the name of the server. */
      readonly serverOrigins: ReadonlyMap<string, Origins>;
      /** Settings without effect that were probably meant to have one; for the log. */
      readonly warnings: readonly string[];
      /** The names of the servers that the file disables. */
      readonly disabled: readonly string[];
      /** The configuration file, if one was read. */
      readonly file: string | undefined;
      /** The files and folders that the file includes. */
      readonly included: readonly string[];
      /** The flags of the command, such as `--json`. */
      readonly flags: ReadonlySet<string>;
    }
  | {
      readonly ok: false;
      /** The command that was meant, as far as its word was recognised. */
      readonly command: CommandLine['command'];
      readonly faults: readonly ConfigurationIssue[];
    };

/**
 * Reads the whole configuration. The order of precedence is command line, environment, file, default. Never throws.
 * Returns all faults at once; no fault repeats a value.
 */
export function readConfiguration({
  argv,
  env,
  readFile,
  listFolder = () => undefined,
  findCommand = () => false,
}: ConfigurationSources): Configuration {
  const faults: ConfigurationIssue[] = [];
  const positions = new Map<string, JsoncPositions>();
  let hasFile = false;
  const report: ReportIssue = (path, given) => {
    const message = renderIssueMessage(given, namesAt(path, hasFile));
    // What is wrong for all servers is found once for each of them.
    if (faults.some((fault) => fault.path === path && fault.message === message)) return;
    faults.push({ path, message, position: positionOf(path, positions) });
  };
  const notes: ConfigurationIssue[] = [];
  const disabled: string[] = [];
  const context: FileContext = {
    env,
    readFile,
    listFolder,
    findCommand,
    report,
    note: (path, message) => notes.push({ path, message, position: positionOf(path, positions) }),
    onDisabled: (name) => disabled.push(name),
    onPositions: (file, found) => positions.set(file, found),
  };

  const line = readCommandLine(argv, { env: undefined, readFile, report });
  const { command, word } = line;
  if (command === 'help') {
    if (line.helpOn !== undefined) return { ok: true, command, on: line.helpOn };
    const message = `has no such topic; use --help, ${helpTopics.map((topic) => `--help ${topic}`).join(', ')}`;
    return { ok: false, command, faults: [{ path: '--help', message }] };
  }
  if (command === 'version') return { ok: true, command };
  if (command === 'key') {
    const key = readKeyRequest(word, line.flags, Date.now(), report);
    return key === undefined || faults.length > 0 ? { ok: false, command, faults } : { ok: true, command, key };
  }
  if (command === 'add' || command === 'remove' || command === 'list') {
    const request = readServerListRequest(command, line, env, report);
    return request === undefined || faults.length > 0 ? { ok: false, command, faults } : { ok: true, command, request };
  }
  checkCommandWord(command, word, report);
  if (command === 'audit') {
    if (line.operands.length === 0) report(command, 'needs the audit files: mcp-gangway audit verify audit.jsonl');
    const last = line.flags.get('--last')?.[0];
    if (last !== undefined && !/^[\w-]{43}$/.test(last))
      report('--last', 'must be the hash that an earlier mcp-gangway audit verify has printed');
    return faults.length > 0 ? { ok: false, command, faults } : { ok: true, command, files: line.operands, last };
  }
  if (command === 'completion' || word === 'schema') {
    if (faults.length > 0) return { ok: false, command, faults };
    return command === 'completion' ? { ok: true, command, shell: word ?? '' } : { ok: true, command: 'schema' };
  }

  const named = fileNameOf(line, env, report);
  const fileName = named?.name;
  hasFile = named !== undefined;
  const file = named === undefined ? undefined : loadFile(named, context);
  const sources = [line.given, givenByEnvironment(env, { env: undefined, readFile, report }), file?.given ?? new Map()];
  const options = resolveOptions(gatewayOptions, sources, report);
  const { listen, auth } = options;
  checkCertificate(options, sources, readFile, report);
  const common = resolveOptions(serverOptions, sources, report, { prefix: `${defaultsBranch}.` });
  if (line.name !== undefined && line.serverCommand === undefined && line.url === undefined)
    report('--name', 'is only for a server on the command line; in the file, the keys of mcpServers are the names');
  const ownServers = readServers(line, file, listen.path, common, context);
  const servers = [...ownServers, ...readViews(file?.views ?? [], ownServers, listen.path, common, report)];
  const duplicate = faults.length === 0 ? findDuplicatePath({ ...options, servers }) : undefined;
  if (duplicate !== undefined)
    report(
      placesIn(sources)(['listen.path']),
      (nameOf) => `gives two endpoints the same path, ${duplicate}; change ${nameOf('listen.path')}`,
    );
  const apiKeys = readKeysOfEnvironment(env, report, readFile);
  const { apiKeysFile } = auth;
  const atKeysFile = placesIn(sources)(['auth.apiKeysFile']);
  const keysOfFile =
    apiKeysFile === undefined ? undefined : checkKeysFile({ name: apiKeysFile, place: atKeysFile }, context);
  const isAuthenticated = hasAuthentication({ auth, apiKeys });
  const isLocal = isLoopback(listen.host) && strangersOf(options) === undefined;
  const gateway: GatewayAccess = { ...options, isAuthenticated, isLocal };
  for (const server of servers) {
    const entry = [...(file?.servers ?? []), ...(file?.views ?? [])].find(({ name }) => name === server.name);
    const placeOf = placesIn(entry ? [entry.given, ...sources] : sources, entry?.path ?? `server ${server.name}`);
    checkRules(accessRules, { server, gateway }, placeOf, report);
  }
  checkRules(gatewayRules, gateway, placesIn(sources), report);
  if (faults.length > 0) return { ok: false, command, faults: inOrder(faults) };
  const knowsUsers = isAuthenticated || servers.some((server) => server.auth === 'upstream');
  const warnings = [
    ...notes.map(renderIssue),
    ...environmentWarnings(env),
    ...limitWarnings(options, knowsUsers),
    ...(keysOfFile?.length === 0 ? [emptyKeysWarning] : []),
    ...(keysOfFile !== undefined && keysOfFile.length > 0 && keysOfFile.every(isExpired) ? [expiredKeysWarning] : []),
    ...(listen.adminHost === 'off' && (file?.given.has('listen.adminHost') ?? false) ? [adminOffWarning] : []),
    ...(isStoreUnused(options, line, file) ? [unusedStoreWarning] : []),
  ];
  const origins = originsOf(sources, positions);
  const serverOrigins = serverOriginsOf(file, positions);
  const adminPort = listen.adminHost === 'off' ? 0 : listen.adminPort;
  const isAdminPortChosen = origins.has('listen.adminPort');
  const derived = deriveValues(options);
  const config = { ...options, derived, listen: { ...listen, adminPort }, isAdminPortChosen, servers, apiKeys };
  return {
    ok: true,
    command: command === 'config' ? 'print' : command,
    config,
    word,
    defaults: common,
    origins,
    serverOrigins,
    warnings,
    disabled,
    file: fileName,
    included: file?.included ?? [],
    flags: new Set(line.flags.keys()),
  };
}

/** Groups the faults by file, in the order of its text. Those without a position are a group too, in their own order. */
function inOrder(faults: readonly ConfigurationIssue[]): ConfigurationIssue[] {
  const files = [...new Set(faults.map(({ position }) => position?.file))];
  return files.flatMap((file) =>
    faults
      .filter(({ position }) => position?.file === file)
      .toSorted(({ position: a }, { position: b }) =>
        a === undefined || b === undefined ? 0 : a.line - b.line || a.column - b.column,
      ),
  );
}

/** `health` contacts a running gateway, `config print` can show the defaults, and `upgrade` can name a package. */
const nothingToServe: ReadonlySet<string> = new Set(['health', 'config', 'upgrade']);

/** The configuration file to read. Reports a fault unless servers are named in exactly one form. */
function fileNameOf(line: CommandLine, env: Environment, report: ReportIssue): NamedFile | undefined {
  const { command, configFile, serverCommand, url, hasStrayWord } = line;
  const given = [
    serverCommand !== undefined && 'a command after --',
    url !== undefined && 'a URL',
    configFile !== undefined && '--config',
  ].filter((form) => form !== false);
  if (given.length > 1)
    report('command line', `names servers in several ways: ${given.join(' and ')}; use only one of them`);
  const isEmpty = given.length === 0 && !hasStrayWord;
  const variable = (isEmpty && env[configFileVariable]) || undefined;
  if (isEmpty && variable === undefined && !nothingToServe.has(command)) {
    report('command line', `names no server; use one of these forms:\n${forms.map((form) => `  ${form}`).join('\n')}`);
  }
  if (configFile !== undefined) return { name: configFile, place: '--config' };
  return variable === undefined ? undefined : { name: variable, place: configFileVariable };
}

function loadFile(file: NamedFile, context: FileContext): ConfigFile | undefined {
  const text = readNamedFile(file, context);
  return text === undefined ? undefined : readConfigFile(text, file.name, context);
}

function checkKeysFile(file: NamedFile, context: FileContext): readonly ApiKey[] | undefined {
  const text = readNamedFile({ ...file, maker: 'mcp-gangway key NAME --add FILE' }, context);
  return text === undefined ? undefined : readKeysFile(text, file.name, context.report, context.onPositions);
}

const expiredKeysWarning = `All keys in the file of ${flagOf('auth.apiKeysFile')} have expired. Create a key with mcp-gangway key.`;
const isExpired = ({ expiresAtMs }: ApiKey): boolean => expiresAtMs !== undefined && expiresAtMs <= Date.now();
const emptyKeysWarning = `The file of ${flagOf('auth.apiKeysFile')} contains no key, so every request is refused. Create a key with mcp-gangway key.`;

const adminOffWarning = `The operator port is disabled: ${environmentNameOf('listen.adminHost')} is off, which is the default in the image and overrides the file. Set the address with that variable or with ${flagOf('listen.adminHost')}.`;

/** The image sets the variable of the store, and a Redis may replace it there. */
const isStoreUnused = ({ cluster, replay }: GatewayOptions, line: CommandLine, file: ConfigFile | undefined): boolean =>
  cluster.redis !== undefined &&
  replay.store !== 'memory' &&
  (line.given.has('replay.store') || (file?.given.has('replay.store') ?? false));

const unusedStoreWarning = `${flagOf('replay.store')} has no effect with ${flagOf('cluster.redis')}: the sessions are in Redis.`;

/**
 * A warning about limits of users without authentication, which have no effect.
 * @param knowsUsers true if the gateway can tell users apart
 */
function limitWarnings({ limits: { user } }: GatewayOptions, knowsUsers: boolean): string[] {
  const paths = leavesOf(limitOptions.user).filter(([path, option]) => leafValue(user, path, option) !== undefined);
  const flags = paths.map(([path]) => flagsOf(`limits.user.${path}`)[0]);
  return knowsUsers || flags.length === 0
    ? []
    : [
        `Without authentication the gateway cannot tell users apart, so these options have no effect: ${flags.join(', ')}.`,
      ];
}

function checkCertificate(
  { listen }: GatewayOptions,
  sources: readonly Given[],
  readFile: ConfigurationSources['readFile'],
  report: ReportIssue,
): void {
  const read = readCertificate(listen.tls, readFile);
  if (!read.ok) report(placesIn(sources)([read.option]), read.message);
}
