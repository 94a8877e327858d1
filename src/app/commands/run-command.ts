// src/app/commands: the commands of the program: serve, check, health, key, help and version.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { KeyRequest } from '../../config/access/key-request.ts';
import { type Configuration, type GatewayConfig, readConfiguration, type ServerConfig } from '../../config/config.ts';
import { renderHelp } from '../../config/help/help.ts';
import { renderIssue } from '../../config/issues.ts';
import { flagOf } from '../../config/options/option-names.ts';
import { sendsLog } from '../../config/options/options.ts';
import type { Command } from '../../config/sources/command-table.ts';
import { redactFault } from '../../core/ops/log/fault-log.ts';
import { createLog, type Log, type LogCopy } from '../../core/ops/log/log.ts';
import { readLogLevels } from '../../core/ops/log/log-parts.ts';
import { reportFaultsTo } from '../../core/util/boundary.ts';
import { docsPage } from '../../core/util/docs-page.ts';
import { type Features, type GatewaySetup, needed } from '../features/gateway-features.ts';
import { statesOf } from '../file-watch.ts';
import { instanceName } from '../instance-name.ts';
import { prepareStarter } from '../prepare-starter.ts';
import { pinCommand } from '../servers/run-server.ts';
import { version } from '../version.ts';
import { check } from './check/check-command.ts';
import { notesOn } from './check/configuration-notes.ts';
import { jsonListener, textListener } from './check/render-check.ts';
import { endSignals } from './end-on-signals.ts';
import { argumentsOfContainer, requestHealth } from './health-command.ts';
import { addToKeyFile, limitKey, makeKey } from './key-command.ts';
import { failed, misconfigured, type Outcome, printed, refused } from './outcome.ts';
import { serveUntilSignal } from './serve-command.ts';
import type { changeServers, PackageOf } from './servers-command.ts';

/** What does not work on an operating system; undefined if nothing is known. */
interface PlatformSupport {
  /** Why these servers cannot be served at all, and the remedy. */
  readonly obstacle?: string;
  /** What the operator should know, for the log. */
  readonly warning?: string;
}

const platformPage = docsPage('deploy.md#windows-and-macos');

/**
 * Runs the program: reads the command line, the environment and the file, and executes the command.
 * @param features those of this build
 */
export async function runCommand(features: Features): Promise<void> {
  const sources = {
    env: process.env,
    readFile: (path: string) => readFileSync(path, 'utf8'),
    listFolder: (path: string) => (statSync(path).isDirectory() ? readdirSync(path) : undefined),
    findCommand: (name: string) => statSync(name, { throwIfNoEntry: false })?.isFile() ?? false,
  };
  const read = (): Configuration => readConfiguration({ ...sources, argv: argumentsGiven() });
  process.stdout.on('error', ignoreClosedPipe);
  const configuration = read();
  const outcome = configuration.ok
    ? await run(configuration, features, sources, read)
    : {
        stderr: [...configuration.faults.map(renderIssue), remedies[configuration.command], ''].join('\n'),
        exitCode: misconfigured,
      };
  if (outcome === undefined) return;
  process.stdout.write(outcome.stdout ?? '');
  process.stderr.write(outcome.stderr ?? '');
  process.exitCode = outcome.exitCode;
}

/** What a command reads of the machine. */
type CommandSources = Parameters<typeof changeServers>[1];

/** Executes the command. Undefined while the gateway runs. */
async function run(
  configuration: Extract<Configuration, { readonly ok: true }>,
  features: Features,
  sources: CommandSources,
  read: () => Configuration,
): Promise<Outcome | undefined> {
  if (configuration.command === 'key') return createKey(configuration.key);
  if (configuration.command === 'audit') {
    const { verifyAudit } = await import('./audit-command.ts');
    return verifyAudit(configuration.files, configuration.last, features);
  }
  if ('request' in configuration) {
    const { changeServers } = await import('./servers-command.ts');
    const { describePackage } = await import('../servers/package-server.ts');
    const packageOf: PackageOf = (server, config) =>
      describePackage(server, { config, features, environment: process.env });
    return changeServers(configuration.request, sources, packageOf);
  }
  if (!('config' in configuration)) return printed(await textOf(configuration));
  const { command, config, warnings, file, included, flags } = configuration;
  const setup: GatewaySetup = { config, features, environment: process.env };
  if (command === 'print') {
    const { renderConfiguration } = await import('./print/print-config.ts');
    return printed(renderConfiguration(configuration));
  }
  if (command === 'health') {
    const { isWell, text } = await requestHealth(config.listen, flags.has('--ready') ? '/readyz' : '/healthz');
    return { stdout: `${text}\n`, exitCode: isWell ? 0 : failed };
  }
  if (command === 'upgrade') {
    const { upgradePackages } = await import('./upgrade-command.ts');
    prepareStarter(process.env);
    const print = (line: string): unknown => process.stdout.write(`${line}\n`);
    return { exitCode: await upgradePackages(configuration, setup, print) };
  }
  const unreadable = command === 'serve' || flags.has('--config-only') ? pinFaults(configuration, features) : [];
  if (unreadable.length > 0) {
    const stderr = unreadable.map((fault) => `mcp-gangway: ${fault}\n`).join('');
    return { stderr, exitCode: command === 'serve' ? failed : misconfigured };
  }
  if (command === 'check' && flags.has('--config-only')) {
    const { renderConfigOnly } = await import('./check/config-only.ts');
    return printed(renderConfigOnly(configuration, flags.has('--json')));
  }
  const support = platformSupport(process.platform, config.servers);
  if (support.obstacle !== undefined) return refused(`${support.obstacle}.`);
  if (command === 'connect') {
    const { connectClient } = await import('./connect/connect-command.ts');
    const connectLog = logOf(config, {});
    for (const warning of warnings) connectLog.app.warn(warning);
    const leaving = new AbortController();
    for (const signal of endSignals) process.once(signal, () => leaving.abort());
    // Nothing that is left may keep a client waiting for the end of this program.
    process.exit(await connectClient(setup, connectLog, leaving.signal));
  }
  if (config.servers.some(({ address }) => address === undefined)) prepareStarter(process.env);
  if (command === 'pin') {
    const { pinTools } = await import('./pin-command.ts');
    return pinTools(configuration, setup);
  }
  if (command === 'check') {
    for (const signal of endSignals) process.once(signal, () => process.exit(failed)); // the starter ends all servers
    const { stdout, stderr } = process;
    const print = (text: string): void => {
      stdout.write(text);
    };
    const hasColors = stdout.isTTY && stdout.hasColors();
    const json = flags.has('--json') ? jsonListener() : undefined;
    reportFaultsTo((seam, cause) => {
      const { stack } = redactFault(cause);
      stderr.write(`mcp-gangway: internal error (${seam}): ${stack}\n`);
    });
    const listener = json?.listener ?? textListener(print, hasColors);
    const isFine = await check(setup, notesOn(configuration), listener, (line) => stderr.write(line));
    return { stdout: json?.text(isFine) ?? '', exitCode: isFine ? 0 : failed };
  }
  const copy: LogCopy = {};
  const log = logOf(config, copy);
  const otlp = await features.otlp?.load({
    environment: process.env,
    version,
    instance: instanceName,
    logger: log.app,
  });
  if (sendsLog(config.observe.otlpLogs)) copy.write = otlp?.writeLine;
  for (const warning of [...warnings, support.warning]) if (warning !== undefined) log.app.warn(warning);
  const files = file === undefined ? [] : [file, ...included];
  const source = { file, files, states: statesOf(files), read };
  await serveUntilSignal({ ...setup, source, log, otlp }, flags.has('--open'));
  return undefined;
}

/** Why the gateway would not start with these pin files: a sentence for each that cannot be read, with its command. */
const pinFaults = (
  { config, file }: Pick<Extract<Configuration, { readonly config: GatewayConfig }>, 'config' | 'file'>,
  { definitions }: Features,
): readonly string[] =>
  config.servers.flatMap(({ name, pin }) => {
    if (pin === undefined) return [];
    try {
      needed(definitions, 'pin files').openPins(pin, pinCommand(name, file));
      return [];
    } catch (cause) {
      return [(cause as Error).message];
    }
  });

/** Programs such as `head` close the pipe when they have enough. What they do not read is not missing. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

const correct = 'Correct the configuration; see mcp-gangway --help.';
const seeHelp = 'See mcp-gangway --help.';

/** What to do after a fault, by command. */
const remedies: Readonly<Record<Command, string>> = {
  serve: `The gateway was not started. ${correct}`,
  check: correct,
  connect: correct,
  config: correct,
  health: correct,
  add: correct,
  audit: seeHelp,
  remove: correct,
  list: correct,
  pin: correct,
  upgrade: correct,
  completion: seeHelp,
  help: seeHelp,
  key: seeHelp,
  version: seeHelp,
};

/** The text of a command that only prints. */
async function textOf(configuration: PrintingCommand): Promise<string> {
  switch (configuration.command) {
    case 'help':
      return renderHelp(configuration.on);
    case 'version':
      return `${version}\n`;
    case 'completion':
      return (await import('./completion.ts')).renderCompletion(configuration.shell);
    case 'schema': {
      const { configurationSchema } = await import('../../config/tree/json-schema.ts');
      return `${JSON.stringify(configurationSchema(), undefined, 2)}\n`;
    }
  }
}

type PrintingCommand = Extract<
  Configuration,
  { readonly ok: true; readonly command: 'help' | 'version' | 'completion' | 'schema' }
>;

/** Creates a key. With a file, prints only the key itself, for its user. */
function createKey({ name, addTo: file, ...limits }: KeyRequest): Outcome {
  const made = limitKey(makeKey(name), limits);
  if (file === undefined) {
    const entries = made.variable === undefined ? 'line is its entry' : 'two lines are its entries';
    const places = `for the ${flagOf('auth.apiKeysFile')} file (a JSON list)${made.variable === undefined ? '' : ' and for GANGWAY_API_KEYS'}`;
    const stderr = `Save this key: it is shown only once. The next ${entries} ${places}.\n`;
    const lines = [made.key, made.entry, made.variable].filter((line) => line !== undefined);
    return { stderr, stdout: lines.map((line) => `${line}\n`).join(''), exitCode: 0 };
  }
  let earlier: number;
  try {
    earlier = addToKeyFile(file, made);
  } catch (error) {
    return refused((error as Error).message);
  }
  const added = `Added the key to ${file}. Give this line to ${name}; it is shown only once. A gateway with ${flagOf('auth.apiKeysFile')} ${file} accepts the key within seconds.\n`;
  const others =
    earlier === 0
      ? ''
      : `The file already had ${earlier === 1 ? 'a key with this name, which stays' : `${earlier} keys with this name, which stay`} valid. To revoke a key, delete its entry.\n`;
  return { stderr: added + others, stdout: `Authorization: Bearer ${made.key}\n`, exitCode: 0 };
}

/** The arguments of this program. The health check of a container uses those of the gateway in the container. */
function argumentsGiven(): readonly string[] {
  const [, program = '', ...given] = process.argv;
  const isBare = given[0] === 'health' && given.slice(1).every((word) => word === '--ready');
  return isBare ? [...given, ...argumentsOfContainer(program)] : given;
}

function logOf({ observe: { logLevel, logFormat } }: GatewayConfig, copy: LogCopy): Log {
  const { stderr } = process;
  const read = readLogLevels(logLevel);
  if (!read.ok) throw new Error('the configuration has checked the log levels');
  const isPretty = logFormat === 'auto' ? stderr.isTTY : logFormat === 'pretty';
  return createLog({ levels: read.levels, isPretty, hasColors: stderr.isTTY && stderr.hasColors(), copy });
}

/**
 * Says what does not work on an operating system. A STDIO server without a process group would leave its children
 * behind (P10), so the gateway does not start it there.
 */
export function platformSupport(platform: NodeJS.Platform, servers: readonly ServerConfig[]): PlatformSupport {
  if (platform !== 'win32') return {};
  const remedy = `Run the gateway in WSL2 or Docker; see ${platformPage}`;
  const names = (isMeant: (server: ServerConfig) => boolean): string =>
    servers
      .filter(isMeant)
      .map(({ name }) => name)
      .join(', ');
  const local = names(({ address }) => address === undefined);
  if (local !== '')
    return {
      obstacle: `STDIO servers (${local}) need process groups and signals, which Windows does not have. ${remedy}`,
    };
  const sockets = names(({ address }) => address?.transport === 'unix');
  if (sockets !== '')
    return {
      obstacle: `servers at unix:// (${sockets}) need Unix sockets, which Node.js does not have on Windows. ${remedy}`,
    };
  return { warning: `The gateway was never tested on Windows, and cannot shut down gracefully there. ${remedy}` };
}
