import type { ApiKey } from '../../http/auth/api-keys.ts';
import { keyName, readKeysFile, readKeysOfEnvironment } from './api-keys.ts';
import { checkAuthentication, hasAuthentication } from './authentication.ts';
import { checkAuthorization } from './authorization.ts';
import { readCertificate } from './certificate.ts';
import { type CommandLine, forms, readCommandLine } from './command-line.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { checkCredentials } from './credentials.ts';
import { hasDoublePath } from './endpoint-paths.ts';
import { configFileVariable, type Environment, environmentWarnings, givenByEnvironment } from './environment.ts';
import type { Fault, Report } from './fault.ts';
import { checkForwarding } from './forwarding.ts';
import { defaultsOf, firstGiven, type Given, resolveOptions } from './given-values.ts';
import { checkHibernation } from './hibernation.ts';
import { type GlobalOptions, globalOptions, orderedPairs, type ServerOptions, serverOptions } from './options.ts';
import { quotaWarnings } from './quota-options.ts';
import { checkUser } from './resource-options.ts';
import type { EntryContext } from './server-entry.ts';
import { deriveServerName, nameOfAddress, serverNameFault } from './server-name.ts';
import { readServerUrl, type ServerAddress } from './server-url.ts';
import { type FindCommand, splitWhole } from './split-whole.ts';

interface NamedServer extends ServerOptions {
  /** Stands in its endpoint's path and in the logs. */
  readonly name: string;
}

/** A STDIO server: how to start it, and its options. */
export interface LocalServer extends NamedServer {
  readonly command: string;
  readonly args: readonly string[];
  readonly address?: undefined;
}

/** A server that runs by itself: where it is, and its options. */
export interface RemoteServer extends NamedServer {
  readonly address: ServerAddress;
}

/** One MCP server. */
export type ServerConfig = LocalServer | RemoteServer;

/** Everything that is configured, resolved and checked. */
export interface GatewayConfig extends GlobalOptions {
  /** At least one; the names are distinct. */
  readonly servers: readonly ServerConfig[];
  /** Those of the environment; the others are in `apiKeysFile`, which has been read without a fault. */
  readonly apiKeys: readonly ApiKey[];
}

/** Where a configuration comes from; nothing else is read. */
export interface ConfigurationSources {
  /** The arguments after the program's name. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The text of a file; throws as `readFileSync` does. */
  readonly readFile: (path: string) => string;
  /** True if there is a file of exactly this name: then a command with blanks is not split. */
  readonly findCommand?: FindCommand;
}

/** What is to be done, or everything that is wrong. */
export type Configuration =
  | { readonly ok: true; readonly command: 'help' }
  | { readonly ok: true; readonly command: 'version' }
  | { readonly ok: true; readonly command: 'key'; readonly name: string }
  | {
      readonly ok: true;
      readonly command: 'serve' | 'check';
      readonly config: GatewayConfig;
      /** What has no effect and was probably meant to have one; for the log. */
      readonly warnings: readonly string[];
    }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/**
 * Reads the whole configuration: for each option the command line, else the environment, else the file, else the
 * default. Never throws; all faults are returned at once, and none repeats a value.
 */
export function readConfiguration({
  argv,
  env,
  readFile,
  findCommand = () => false,
}: ConfigurationSources): Configuration {
  const faults: Fault[] = [];
  const report: Report = (path, message) => faults.push({ path, message });
  const context: EntryContext = { env, findCommand, report };

  const line = readCommandLine(argv, report);
  const { command } = line;
  if (command === 'help' || command === 'version') return { ok: true, command };
  if (command === 'key') {
    const { keyFor: name = '' } = line;
    if (!keyName.safeParse(name).success)
      report('key', 'must be followed by who is to have the key, such as alice: letters, digits and . _ @ + -');
    return faults.length > 0 ? { ok: false, faults } : { ok: true, command, name };
  }

  const fileName = fileNameOf(line, env, report);
  const file = fileName === undefined ? undefined : loadFile(fileName, readFile, context);
  const sources = [line.given, givenByEnvironment(env), file?.given ?? new Map()];
  const globals = resolveOptions(globalOptions, sources, defaultsOf(globalOptions), report);
  checkPairs(globals, sources, report);
  checkCertificate(globals, sources, readFile, report);
  const common = resolveOptions(serverOptions, sources, defaultsOf(serverOptions), report);
  const servers = [
    ...readSingleServer(line, globals.path, common, context),
    ...readRemoteServer(line.url, globals.path, common, report),
    ...resolveFileServers(file, globals.path, common, report),
  ];
  if (faults.length === 0 && hasDoublePath({ ...globals, servers })) {
    const given = ['wsPath', 'ssePath', 'messagesPath', 'path'].flatMap((key) => firstGiven(sources, key) ?? []);
    report(
      given[0]?.path ?? 'path',
      'gives two endpoints one path; path, ssePath, messagesPath and wsPath must differ',
    );
  }
  const apiKeys = readKeysOfEnvironment(env, report);
  checkKeysFile(globals.apiKeysFile, readFile, report);
  checkAuthentication({ ...globals, apiKeys }, servers, report);
  const isAuthenticated = hasAuthentication({ ...globals, apiKeys });
  checkAuthorization({ ...globals, servers }, isAuthenticated, sources, report);
  if (globals.requireAuth && !isAuthenticated) {
    const path = firstGiven(sources, 'requireAuth')?.path ?? 'requireAuth';
    report(path, 'wants authentication, and none is configured; docs/authentication.md and docs/oauth.md say how');
  }
  if (faults.length > 0) return { ok: false, faults };
  const warnings = [...environmentWarnings(env), ...quotaWarnings(globals, isAuthenticated)];
  return { ok: true, command, config: { ...globals, servers, apiKeys }, warnings };
}

/** The file to read; also reports when not exactly one form is given. */
function fileNameOf({ configFile, serverCommand, url, hasStrayWord }: CommandLine, env: Environment, report: Report) {
  const given = [
    serverCommand !== undefined && '--',
    url !== undefined && 'a URL',
    configFile !== undefined && '--config',
  ].filter((form) => form !== false);
  if (given.length > 1) report('command line', `has ${given.join(' and ')}; give one of them`);
  const isEmpty = given.length === 0 && !hasStrayWord;
  const fileName = configFile ?? (isEmpty ? env[configFileVariable] || undefined : undefined);
  if (isEmpty && fileName === undefined) {
    report(
      'command line',
      `names no server; give one in one of these forms:\n${forms.map((form) => `  ${form}`).join('\n')}`,
    );
  }
  return fileName;
}

type ReadFile = ConfigurationSources['readFile'];

function loadFile(name: string, readFile: ReadFile, context: EntryContext): ConfigFile | undefined {
  const text = textOf(name, readFile, context.report);
  return text === undefined ? undefined : readConfigFile(text, name, context);
}

function checkKeysFile(name: string | undefined, readFile: ReadFile, report: Report): void {
  const text = name === undefined ? undefined : textOf(name, readFile, report);
  if (name !== undefined && text !== undefined) readKeysFile(text, name, report);
}

function textOf(name: string, readFile: ReadFile, report: Report): string | undefined {
  try {
    return readFile(name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown error';
    report(name, code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`);
    return undefined;
  }
}

function checkPairs(globals: GlobalOptions, sources: readonly Given[], report: Report): void {
  for (const [smaller, larger, reason] of orderedPairs) {
    const given = firstGiven(sources, smaller) ?? firstGiven(sources, larger);
    if (given !== undefined && (globals[smaller] ?? 0) > (globals[larger] ?? Number.POSITIVE_INFINITY)) {
      report(given.path, `${smaller} must not be larger than ${larger}: ${reason}`);
    }
  }
}

function checkCertificate(
  globals: GlobalOptions,
  sources: readonly Given[],
  readFile: ConfigurationSources['readFile'],
  report: Report,
): void {
  const read = readCertificate(globals, readFile);
  if (!read.ok) report(firstGiven(sources, read.option)?.path ?? read.option, read.message);
}

/** Options that a server without a URL has no use for. */
const remoteOnly = ['transport', 'headers', 'forwardHeaders'];

function readSingleServer(
  { serverCommand, given }: CommandLine,
  path: string,
  common: ServerOptions,
  context: EntryContext,
): ServerConfig[] {
  if (serverCommand === undefined) return [];
  for (const key of remoteOnly) {
    const own = given.get(key);
    if (own !== undefined) context.report(own.path, 'is only for a server at a URL');
  }
  const [command = '', ...args] = serverCommand;
  if (command.trim() === '' || command.includes('\0')) {
    context.report('--', 'must be followed by the command of a server');
    return [];
  }
  const words = args.length > 0 ? serverCommand : splitWhole(command, '--', context);
  if (words === undefined) return [];
  const [first = '', ...rest] = words;
  checkUser(common, '--', context.report);
  const server: LocalServer = { ...common, name: deriveServerName(words, path), command: first, args: rest };
  return [checkForClients(server, new Set(['credentials']), '--', context.report)];
}

function readRemoteServer(
  url: CommandLine['url'],
  path: string,
  common: ServerOptions,
  report: Report,
): RemoteServer[] {
  if (url === undefined) return [];
  const address = readAddress(url, common, report);
  if (address === undefined) return [];
  const server: RemoteServer = { ...common, name: nameOfAddress(address, path), address };
  return [checkForClients(server, new Set(['forwardHeaders', 'credentials']), url.path, report)];
}

/**
 * Checks what of a client goes on to its server.
 * @param own the options that are given for this server
 */
const checkForClients = <T extends ServerConfig>(
  server: T,
  own: Pick<ReadonlySet<string>, 'has'>,
  path: string,
  report: Report,
): T => {
  const forwarding = checkForwarding(server, own.has('forwardHeaders'), path, report);
  const withCredentials = checkCredentials(forwarding, own.has('credentials'), path, report);
  return checkHibernation(withCredentials, own.has('hibernateAfterMs'), path, report);
};

function readAddress(
  { path, text }: { readonly path: string; readonly text: string },
  { transport, era, upstreamCert, upstreamKey }: ServerOptions,
  report: Report,
): ServerAddress | undefined {
  if ((upstreamCert === undefined) !== (upstreamKey === undefined)) {
    report(path, 'needs upstreamCert and upstreamKey together, or neither');
  }
  const read = readServerUrl(text, transport);
  if (!read.ok) {
    report(path, read.message);
    return undefined;
  }
  const { address } = read;
  const hasSessionsOnly = address.transport === 'sse' || address.transport === 'ws';
  if (era === 'modern' && hasSessionsOnly) {
    report(path, 'cannot have era modern: HTTP+SSE and WebSocket are transports of the legacy era');
  }
  return address;
}

function resolveFileServers(
  file: ConfigFile | undefined,
  gatewayPath: string,
  common: ServerOptions,
  report: Report,
): ServerConfig[] {
  return (file?.servers ?? []).flatMap(({ name, path, words, url, given }) => {
    const fault = serverNameFault(name, gatewayPath);
    if (fault !== undefined) report(path, fault);
    const own = resolveOptions(serverOptions, [given], common, report);
    if (url !== undefined) {
      const address = readAddress(url, own, report);
      if (address === undefined) return [];
      return checkForClients<RemoteServer>({ ...own, name, address }, given, path, report);
    }
    if (words === undefined) return [];
    const [command, ...args] = words;
    checkUser(own, path, report);
    // Merged, so that a proxy set for all servers is not lost in one that has a token of its own.
    const env = { ...common.env, ...own.env };
    return checkForClients<LocalServer>({ ...own, forwardHeaders: [], env, name, command, args }, given, path, report);
  });
}
