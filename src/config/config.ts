// src/config: reads the configuration from the command line, the environment and a file, and checks it.

import type { ApiKey } from '../auth/api-keys.ts';
import { docsPage } from '../util/docs-page.ts';
import { clearKeysWarning, keyName, readKeysFile, readKeysOfEnvironment } from './access/api-key-sources.ts';
import { checkAuthentication, hasAuthentication, isOnlyLocal } from './access/authentication-config.ts';
import { checkAuthorization } from './access/authorization-config.ts';
import { readCertificate } from './access/certificate-files.ts';
import { hasDuplicatePath } from './endpoint-paths.ts';
import { type ConfigurationIssue, type ReportIssue, renderIssueMessage } from './issues.ts';
import { environmentNameOf, flagOf, namesAt } from './options/option-names.ts';
import { type GlobalOptions, globalOptions, orderedPairs, serverOptions } from './options/options.ts';
import { quotaWarnings } from './options/quota-options.ts';
import { readServers, type ServerConfig } from './servers/configured-servers.ts';
import { type CommandLine, forms, type HelpTopic, helpTopics, readCommandLine } from './sources/command-line.ts';
import type { FindCommand } from './sources/command-text.ts';
import { type ConfigFile, readConfigFile } from './sources/config-file.ts';
import {
  configFileVariable,
  type Environment,
  environmentWarnings,
  givenByEnvironment,
} from './sources/environment-variables.ts';
import { defaultsOf, firstGiven, type Given, optionLocation, resolveOptions } from './sources/given-values.ts';
import type { EntryContext } from './sources/server-entry.ts';

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
  /** True if a file has exactly this name. A command with blanks is not split then. */
  readonly findCommand?: FindCommand;
}

/** The command to run with its configuration, or all faults. */
export type Configuration =
  | { readonly ok: true; readonly command: 'help'; readonly on: HelpTopic }
  | { readonly ok: true; readonly command: 'version' }
  | { readonly ok: true; readonly command: 'key'; readonly name: string }
  | {
      readonly ok: true;
      readonly command: 'serve' | 'check' | 'health';
      readonly config: GatewayConfig;
      /** Settings without effect that were probably meant to have one; for the log. */
      readonly warnings: readonly string[];
      /** The configuration file, if one was read. */
      readonly file: string | undefined;
      /** True if `check` prints JSON. */
      readonly isJson: boolean;
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
  findCommand = () => false,
}: ConfigurationSources): Configuration {
  const faults: ConfigurationIssue[] = [];
  let hasFile = false;
  const report: ReportIssue = (path, message) =>
    faults.push({ path, message: renderIssueMessage(message, namesAt(path, hasFile)) });
  const context: EntryContext = { env, findCommand, report };

  const line = readCommandLine(argv, report);
  const { command } = line;
  if (command === 'help') {
    if (line.helpOn !== undefined) return { ok: true, command, on: line.helpOn };
    const message = `has no such topic; use --help, ${helpTopics.map((topic) => `--help ${topic}`).join(', ')}`;
    return { ok: false, faults: [{ path: '--help', message }] };
  }
  if (command === 'version') return { ok: true, command };
  if (command === 'key') {
    const { keyFor: name = '' } = line;
    if (!keyName.safeParse(name).success)
      report('key', 'must be followed by a user name, such as alice: letters, digits and . _ @ + -');
    return faults.length > 0 ? { ok: false, faults } : { ok: true, command, name };
  }

  const fileName = fileNameOf(line, env, report);
  hasFile = fileName !== undefined;
  const file = fileName === undefined ? undefined : loadFile(fileName, readFile, context);
  const sources = [line.given, givenByEnvironment(env), file?.given ?? new Map()];
  const globals = resolveOptions(globalOptions, sources, defaultsOf(globalOptions), report);
  checkPairs(globals, sources, report);
  checkCertificate(globals, sources, readFile, report);
  const common = resolveOptions(serverOptions, sources, defaultsOf(serverOptions), report);
  const servers = readServers(line, file, globals.path, common, context);
  if (faults.length === 0 && hasDuplicatePath({ ...globals, servers })) {
    report(
      optionLocation(sources, ...pathOptions),
      (nameOf) => `gives two endpoints the same path; ${pathOptions.map(nameOf).join(', ')} must differ`,
    );
  }
  const keysOfEnvironment = readKeysOfEnvironment(env, report);
  const { keys: apiKeys } = keysOfEnvironment;
  const keysOfFile = checkKeysFile(globals.apiKeysFile, readFile, report);
  checkAuthentication({ ...globals, apiKeys }, servers, sources, isOnlyLocal(globals), report);
  const isAuthenticated = hasAuthentication({ ...globals, apiKeys });
  checkAuthorization({ ...globals, servers }, isAuthenticated, sources, report);
  if (globals.requireAuth && !isAuthenticated) {
    report(
      optionLocation(sources, 'requireAuth'),
      `requires authentication, but none is configured; see ${docsPage('authentication.md')}`,
    );
  }
  if (faults.length > 0) return { ok: false, faults };
  const isGiven = (key: string): boolean => firstGiven(sources, key) !== undefined;
  const clearKeys = clearKeysWarning(
    keysOfEnvironment,
    servers.filter(({ address }) => address === undefined),
  );
  const warnings = [
    ...environmentWarnings(env),
    ...quotaWarnings(globals, isAuthenticated, isGiven),
    ...(keysOfFile?.length === 0 ? [emptyKeysWarning] : []),
    ...(globals.adminHost === 'off' && (file?.given.has('adminHost') ?? false) ? [adminOffWarning] : []),
    ...(clearKeys === undefined ? [] : [clearKeys]),
    ...(globals.hstsMaxAgeS > 0 && globals.tlsCert === undefined ? [hstsWarning] : []),
  ];
  const { isJson, isReadyCheck } = line;
  const adminPort = globals.adminHost === 'off' ? 0 : globals.adminPort;
  const config = { ...globals, adminPort, servers, apiKeys };
  return { ok: true, command, config, warnings, file: fileName, isJson, isReadyCheck };
}

/** A duplicate path is reported at the first of these options that is set. */
const pathOptions = ['wsPath', 'ssePath', 'messagesPath', 'path'] as const;

/** The configuration file to read. Reports a fault unless servers are named in exactly one form. */
function fileNameOf(line: CommandLine, env: Environment, report: ReportIssue) {
  const { command, configFile, serverCommand, url, hasStrayWord } = line;
  const given = [
    serverCommand !== undefined && '--',
    url !== undefined && 'a URL',
    configFile !== undefined && '--config',
  ].filter((form) => form !== false);
  if (given.length > 1) report('command line', `has ${given.join(' and ')}; use only one of them`);
  const isEmpty = given.length === 0 && !hasStrayWord;
  const fileName = configFile ?? (isEmpty ? env[configFileVariable] || undefined : undefined);
  // `health` needs no servers: it only contacts a running gateway.
  if (isEmpty && fileName === undefined && command !== 'health') {
    report('command line', `names no server; use one of these forms:\n${forms.map((form) => `  ${form}`).join('\n')}`);
  }
  return fileName;
}

type ReadFile = ConfigurationSources['readFile'];

function loadFile(name: string, readFile: ReadFile, context: EntryContext): ConfigFile | undefined {
  const text = readText(name, readFile, context.report);
  return text === undefined ? undefined : readConfigFile(text, name, context);
}

function checkKeysFile(
  name: string | undefined,
  readFile: ReadFile,
  report: ReportIssue,
): readonly ApiKey[] | undefined {
  const text = name === undefined ? undefined : readText(name, readFile, report);
  return name === undefined || text === undefined ? undefined : readKeysFile(text, name, report);
}

const emptyKeysWarning = `The file of ${flagOf('apiKeysFile')} contains no key, so every request is refused. Create a key with mcp-gangway key.`;

const adminOffWarning = `The operator port is disabled: ${environmentNameOf('adminHost')} is off, which is the default in the image and overrides the file. Set the address with that variable or with ${flagOf('adminHost')}.`;

const hstsWarning = `${flagOf('hstsMaxAgeS')} has no effect without ${flagOf('tlsCert')}. If a proxy terminates TLS, set the header there.`;

function readText(name: string, readFile: ReadFile, report: ReportIssue): string | undefined {
  try {
    return readFile(name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown error';
    report(name, code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`);
    return undefined;
  }
}

function checkPairs(globals: GlobalOptions, sources: readonly Given[], report: ReportIssue): void {
  for (const [smaller, larger, reason] of orderedPairs) {
    const given = firstGiven(sources, smaller) ?? firstGiven(sources, larger);
    if (given !== undefined && (globals[smaller] ?? 0) > (globals[larger] ?? Number.POSITIVE_INFINITY)) {
      report(given.path, (nameOf) => `${nameOf(smaller)} must not be larger than ${nameOf(larger)}: ${reason}`);
    }
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
