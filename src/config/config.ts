// src/config: reads the configuration from the command line, the environment and a file, and checks it.

import type { ApiKey } from '../auth/api-keys.ts';
import { docsPage } from '../util/docs-page.ts';
import { checkClearKeys, keyName, readKeysFile, readKeysOfEnvironment } from './access/api-key-sources.ts';
import { checkAuthentication, hasAuthentication, isOnlyLocal } from './access/authentication-config.ts';
import { checkAuthorization } from './access/authorization-config.ts';
import { readCertificate } from './access/certificate-files.ts';
import { findDuplicatePath } from './endpoint-paths.ts';
import { type ConfigurationIssue, type FilePosition, type ReportIssue, renderIssueMessage } from './issues.ts';
import type { Option } from './options/option-kinds.ts';
import { environmentNameOf, flagOf, namesAt } from './options/option-names.ts';
import { type GlobalOptions, globalOptions, orderedPairs, serverOptions } from './options/options.ts';
import { quotaWarnings } from './options/quota-options.ts';
import { readServers, type ServerConfig } from './servers/configured-servers.ts';
import { readViews } from './servers/views.ts';
import {
  type CommandLine,
  checkCommandWord,
  forms,
  type HelpTopic,
  helpTopics,
  readCommandLine,
} from './sources/command-line.ts';
import type { FindCommand } from './sources/command-text.ts';
import { type ConfigFile, type FileContext, readConfigFile } from './sources/config-file.ts';
import {
  configFileVariable,
  type Environment,
  environmentWarnings,
  givenByEnvironment,
} from './sources/environment-variables.ts';
import { defaultsOf, firstGiven, type Given, optionLocation, resolveOptions } from './sources/given-values.ts';
import type { JsoncPositions } from './sources/read-jsonc.ts';
import { second } from './units.ts';

export type { LocalServer, RemoteServer, ServerConfig } from './servers/configured-servers.ts';

/** The configuration of a gateway, resolved and checked. */
export interface GatewayConfig extends GlobalOptions {
  /** At least one server; the names are distinct. */
  readonly servers: readonly ServerConfig[];
  /** The keys of the environment. The other keys are in `apiKeysFile`, which was read without a fault. */
  readonly apiKeys: readonly ApiKey[];
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
  readonly findCommand?: FindCommand;
}

/** The command to run with its configuration, or all faults. */
export type Configuration =
  | { readonly ok: true; readonly command: 'help'; readonly on: HelpTopic }
  | { readonly ok: true; readonly command: 'version' }
  | { readonly ok: true; readonly command: 'schema' }
  | { readonly ok: true; readonly command: 'completion'; readonly shell: string }
  | { readonly ok: true; readonly command: 'key'; readonly name: string; readonly addTo: string | undefined }
  | { readonly ok: true; readonly command: 'import'; readonly file: string }
  | {
      readonly ok: true;
      readonly command: 'serve' | 'check' | 'health' | 'print';
      readonly config: GatewayConfig;
      /** The source of each option that has no default: `--port`, `GANGWAY_PORT` or `gangway.json:3:5`. */
      readonly origins: ReadonlyMap<string, string>;
      /** The sources of each server's own options, by the name of the server. */
      readonly serverOrigins: ReadonlyMap<string, ReadonlyMap<string, string>>;
      /** The references such as `${file:/run/secrets/token}`, by the values that replaced them. */
      readonly references: ReadonlyMap<string, string>;
      /** Settings without effect that were probably meant to have one; for the log. */
      readonly warnings: readonly string[];
      /** The configuration file, if one was read. */
      readonly file: string | undefined;
      /** The files and folders that the file includes. */
      readonly included: readonly string[];
      /** True if `check` prints JSON. */
      readonly isJson: boolean;
      /** True if `check` checks only the configuration and starts nothing. */
      readonly isConfigOnly: boolean;
      /** True if `health` checks readiness (/readyz) instead of liveness (/healthz). */
      readonly isReadyCheck: boolean;
    }
  | { readonly ok: false; readonly faults: readonly ConfigurationIssue[] };

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
  const report: ReportIssue = (path, message) =>
    faults.push({
      path,
      message: renderIssueMessage(message, namesAt(path, hasFile)),
      position: positionOf(path, positions),
    });
  const notes: string[] = [];
  const references = new Map<string, string>();
  const onReplaced = (value: string, reference: string): void => {
    references.set(value, reference);
  };
  const context: FileContext = {
    env,
    readFile,
    onReplaced,
    listFolder,
    findCommand,
    report,
    note: (warning) => notes.push(warning),
    onPositions: (file, found) => positions.set(file, found),
  };

  const line = readCommandLine(argv, { env: undefined, readFile, report, onReplaced });
  const { command, word } = line;
  if (command === 'help') {
    if (line.helpOn !== undefined) return { ok: true, command, on: line.helpOn };
    const message = `has no such topic; use --help, ${helpTopics.map((topic) => `--help ${topic}`).join(', ')}`;
    return { ok: false, faults: [{ path: '--help', message }] };
  }
  if (command === 'version') return { ok: true, command };
  if (command === 'key') {
    const { word: name = '', addTo } = line;
    if (!keyName.safeParse(name).success)
      report('key', 'needs the name of a user: mcp-gangway key alice; a name has letters, digits and . _ @ + -');
    return faults.length > 0 ? { ok: false, faults } : { ok: true, command, name, addTo };
  }
  if (command === 'completion' || command === 'config' || command === 'import') checkCommandWord(command, word, report);
  if (command === 'import' && faults.length === 0) return { ok: true, command, file: line.importFrom ?? '' };
  if (command === 'completion' || command === 'import' || word === 'schema') {
    if (faults.length > 0 || command === 'import') return { ok: false, faults };
    return command === 'completion' ? { ok: true, command, shell: word ?? '' } : { ok: true, command: 'schema' };
  }

  const fileName = fileNameOf(line, env, report);
  hasFile = fileName !== undefined;
  const file = fileName === undefined ? undefined : loadFile(fileName, readFile, context);
  const sources = [
    line.given,
    givenByEnvironment(env, { env: undefined, readFile, report, onReplaced }),
    file?.given ?? new Map(),
  ];
  const globals = deriveClusterTimes(
    resolveOptions(globalOptions, sources, defaultsOf(globalOptions), report),
    sources,
  );
  checkPairs(globals, sources, report);
  checkCertificate(globals, sources, readFile, report);
  const common = resolveOptions(serverOptions, sources, defaultsOf(serverOptions), report);
  if (line.name !== undefined && line.serverCommand === undefined && line.url === undefined)
    report('--name', 'is only for a server on the command line; in the file, the keys of mcpServers are the names');
  const ownServers = readServers(line, file, globals.path, common, context);
  const servers = [...ownServers, ...readViews(file?.views, ownServers, globals.path, common, report)];
  const duplicate = faults.length === 0 ? findDuplicatePath({ ...globals, servers }) : undefined;
  if (duplicate !== undefined) {
    const { path, options } = duplicate;
    report(optionLocation(sources, ...options), (nameOf) => {
      const names = [...new Set(options)].map(nameOf).join(' or ');
      return `gives two endpoints the same path, ${path}; change ${names} so that they differ`;
    });
  }
  const keysOfEnvironment = readKeysOfEnvironment(env, report);
  const { keys: apiKeys } = keysOfEnvironment;
  checkClearKeys(keysOfEnvironment, servers, globals, report);
  const keysOfFile = checkKeysFile(globals.apiKeysFile, readFile, context);
  checkAuthentication({ ...globals, apiKeys }, servers, sources, isOnlyLocal(globals), report);
  const isAuthenticated = hasAuthentication({ ...globals, apiKeys });
  checkAuthorization({ ...globals, servers }, isAuthenticated, sources, report);
  if (globals.requireAuth && !isAuthenticated) {
    report(
      optionLocation(sources, 'requireAuth'),
      (nameOf) =>
        `requires authentication, but none is configured; set ${nameOf('apiKeysFile')}, ${nameOf('authIssuer')} or ${nameOf('trustedProxy')}, or remove this option; see ${docsPage('authentication.md')}`,
    );
  }
  if (faults.length > 0) return { ok: false, faults };
  const isGiven = (key: string): boolean => firstGiven(sources, key) !== undefined;
  const warnings = [
    ...notes,
    ...environmentWarnings(env),
    ...quotaWarnings(globals, isAuthenticated, isGiven),
    ...(keysOfFile?.length === 0 ? [emptyKeysWarning] : []),
    ...(globals.adminHost === 'off' && (file?.given.has('adminHost') ?? false) ? [adminOffWarning] : []),
    ...(isStoreUnused(globals, line, file) ? [unusedStoreWarning] : []),
    ...(globals.hstsMaxAgeS > 0 && globals.tlsCert === undefined ? [hstsWarning] : []),
  ];
  const origins = originsOf(sources, positions);
  const serverOrigins = new Map(
    (file?.servers ?? []).map(({ name, given }) => [name, originsOf([given], positions)] as const),
  );
  const adminPort = globals.adminHost === 'off' ? 0 : globals.adminPort;
  const config = { ...globals, adminPort, servers, apiKeys };
  return {
    ok: true,
    command: command === 'config' ? 'print' : command,
    config,
    origins,
    serverOrigins,
    references,
    warnings,
    file: fileName,
    included: file?.included ?? [],
    isJson: line.switches.has('--json'),
    isConfigOnly: line.switches.has('--config-only'),
    isReadyCheck: line.switches.has('--ready'),
  };
}

/** The position of a path such as `gangway.json: listen.port`, or of the nearest member above it. */
function positionOf(path: string, positions: ReadonlyMap<string, JsoncPositions>): FilePosition | undefined {
  for (const [file, found] of positions) {
    if (!path.startsWith(`${file}: `)) continue;
    for (
      let member = path.slice(file.length + 2);
      member !== '';
      member = member.replace(/(?:^|\.)[^.[\]]*$|\[[^[\]]*\]$/, '')
    ) {
      const position = found.get(member);
      if (position !== undefined) return { file, ...position };
    }
  }
  return undefined;
}

function originsOf(sources: readonly Given[], positions: ReadonlyMap<string, JsoncPositions>): Map<string, string> {
  const origins = new Map<string, string>();
  for (const [key, { path }] of sources.flatMap((source) => [...source])) {
    const position = positionOf(path, positions);
    const text = position === undefined ? path : `${position.file}:${position.line}:${position.column}`;
    if (!origins.has(key)) origins.set(key, text);
  }
  return origins;
}

/**
 * Derives the times of a cluster that are not set from its lease. A lease is renewed three times before it expires, and
 * two renewals can fail.
 */
function deriveClusterTimes(globals: GlobalOptions, sources: readonly Given[]): GlobalOptions {
  const { leaseMs } = globals;
  const derived = (key: 'leaseRenewMs' | 'leaseMarginMs' | 'redisTimeoutMs', share: number, leastMs: number): number =>
    firstGiven(sources, key) === undefined ? Math.max(leastMs, Math.floor(leaseMs / share)) : globals[key];
  return {
    ...globals,
    leaseRenewMs: derived('leaseRenewMs', 3, 10),
    leaseMarginMs: derived('leaseMarginMs', 6, 1),
    redisTimeoutMs: Math.min(
      derived('redisTimeoutMs', 6, 10),
      firstGiven(sources, 'redisTimeoutMs') ? Infinity : second,
    ),
  };
}

/** The configuration file to read. Reports a fault unless servers are named in exactly one form. */
function fileNameOf(line: CommandLine, env: Environment, report: ReportIssue) {
  const { command, configFile, serverCommand, url, hasStrayWord } = line;
  const given = [
    serverCommand !== undefined && 'a command after --',
    url !== undefined && 'a URL',
    configFile !== undefined && '--config',
  ].filter((form) => form !== false);
  if (given.length > 1)
    report('command line', `names servers in several ways: ${given.join(' and ')}; use only one of them`);
  const isEmpty = given.length === 0 && !hasStrayWord;
  const fileName = configFile ?? (isEmpty ? env[configFileVariable] || undefined : undefined);
  // `health` contacts a running gateway, and `config print` can show the defaults.
  if (isEmpty && fileName === undefined && command !== 'health' && command !== 'config') {
    report('command line', `names no server; use one of these forms:\n${forms.map((form) => `  ${form}`).join('\n')}`);
  }
  return fileName;
}

type ReadFile = ConfigurationSources['readFile'];

function loadFile(name: string, readFile: ReadFile, context: FileContext): ConfigFile | undefined {
  const text = readText(name, readFile, context.report);
  return text === undefined ? undefined : readConfigFile(text, name, context);
}

function checkKeysFile(
  name: string | undefined,
  readFile: ReadFile,
  { report, onPositions }: FileContext,
): readonly ApiKey[] | undefined {
  const text = name === undefined ? undefined : readText(name, readFile, report);
  return name === undefined || text === undefined ? undefined : readKeysFile(text, name, report, onPositions);
}

const emptyKeysWarning = `The file of ${flagOf('apiKeysFile')} contains no key, so every request is refused. Create a key with mcp-gangway key.`;

const adminOffWarning = `The operator port is disabled: ${environmentNameOf('adminHost')} is off, which is the default in the image and overrides the file. Set the address with that variable or with ${flagOf('adminHost')}.`;

/** The image sets the variable of the store, and a Redis may replace it there. */
const isStoreUnused = ({ redis, store }: GlobalOptions, line: CommandLine, file: ConfigFile | undefined): boolean =>
  redis !== undefined && store !== 'memory' && (line.given.has('store') || (file?.given.has('store') ?? false));

const unusedStoreWarning = `${flagOf('store')} has no effect with ${flagOf('redis')}: the sessions are in Redis.`;

const hstsWarning = `${flagOf('hstsMaxAgeS')} has no effect without ${flagOf('tlsCert')}. If a proxy terminates TLS, configure the header in the proxy.`;

function readText(name: string, readFile: ReadFile, report: ReportIssue): string | undefined {
  try {
    return readFile(name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown error';
    report(
      name,
      code === 'ENOENT'
        ? 'does not exist; check the path, which is relative to the current folder'
        : `cannot be read (${code}); check its permissions`,
    );
    return undefined;
  }
}

function checkPairs(globals: GlobalOptions, sources: readonly Given[], report: ReportIssue): void {
  for (const [smaller, larger, reason] of orderedPairs) {
    const given = firstGiven(sources, smaller) ?? firstGiven(sources, larger);
    const [low, high] = [globals[smaller] ?? 0, globals[larger] ?? Number.POSITIVE_INFINITY];
    if (given === undefined || low <= high) continue;
    const relation = given === firstGiven(sources, smaller) ? 'larger' : 'smaller';
    const [key, value] = relation === 'larger' ? ([larger, high] as const) : ([smaller, low] as const);
    const { format = String } = globalOptions[key] as Option<number>;
    report(
      given.path,
      (nameOf) =>
        `must not be ${relation} than ${nameOf(key)}, which is ${format(value)}: ${reason}; change one of the two`,
    );
  }
}

function checkCertificate(
  globals: GlobalOptions,
  sources: readonly Given[],
  readFile: ConfigurationSources['readFile'],
  report: ReportIssue,
): void {
  const read = readCertificate(globals, readFile);
  if (!read.ok) report(optionLocation(sources, read.option), read.message);
}
