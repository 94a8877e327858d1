// src/app/commands: the commands of the program: serve, check, health, key, import, help and version.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Logger } from 'pino';
import { killAllGroupsNow, setProcessGroupListener } from '../../backend/stdio/processes/process-group.ts';
import { ownIdentity } from '../../backend/stdio/processes/process-identity.ts';
import { createGroupJournal } from '../../backend/stdio/stale-groups/group-journal.ts';
import { killStaleProcessGroups } from '../../backend/stdio/stale-groups/kill-stale-groups.ts';
import { hasAuthentication } from '../../config/access/authentication-config.ts';
import { type Configuration, type GatewayConfig, readConfiguration } from '../../config/config.ts';
import { renderHelp } from '../../config/help/help.ts';
import { renderIssue } from '../../config/issues.ts';
import { flagOf } from '../../config/options/option-names.ts';
import type { Command } from '../../config/sources/command-line.ts';
import { faultField, redactFault } from '../../ops/log/fault-log.ts';
import { createLog, type Log } from '../../ops/log/log.ts';
import { readLogLevels } from '../../ops/log/log-parts.ts';
import { detach, reportFaultsTo } from '../../util/boundary.ts';
import { statesOf } from '../file-watch.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import type { ConfigurationSource } from '../reload/configuration-reload.ts';
import { stateDirectory } from '../runtime-directory.ts';
import { version } from '../version.ts';
import { describeKeeping, renderBanner } from './banner.ts';
import { check } from './check/check-command.ts';
import { createProgressLine, createProgressNotes } from './check/progress-line.ts';
import { jsonListener, textListener } from './check/render-check.ts';
import { argumentsOfContainer, requestHealth } from './health-command.ts';
import { addToKeyFile, makeKey } from './key-command.ts';
import { openInBrowser } from './open-page.ts';
import { platformSupport } from './platform-support.ts';

/** Exit codes: 0 success, 1 failure, 2 invalid configuration. */
const failed = 1;
const misconfigured = 2;

/** The signals that end the program. */
const endSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs the program: reads the command line, the environment and the file, and executes the command. */
export async function runCommand(): Promise<void> {
  const read = (): Configuration =>
    readConfiguration({
      argv: argumentsGiven(),
      env: process.env,
      readFile: (path) => readFileSync(path, 'utf8'),
      listFolder: (path) => (statSync(path).isDirectory() ? readdirSync(path) : undefined),
      findCommand: (name) => statSync(name, { throwIfNoEntry: false })?.isFile() ?? false,
    });
  process.stdout.on('error', ignoreClosedPipe);
  const configuration = read();
  if (!configuration.ok) {
    for (const fault of configuration.faults) process.stderr.write(`${renderIssue(fault)}\n`);
    process.stderr.write(`${remedies[configuration.command]}\n`);
    process.exitCode = misconfigured;
    return;
  }
  if (configuration.command === 'key') return createKey(configuration.name, configuration.addTo);
  if (configuration.command === 'import') return importFile(configuration.file);
  if (!('config' in configuration)) {
    process.stdout.write(await textOf(configuration));
    return;
  }
  const { command, config, warnings, file, included, isJson, isConfigOnly, isReadyCheck } = configuration;
  if (command === 'print') {
    const { renderConfiguration } = await import('./print/print-config.ts');
    process.stdout.write(renderConfiguration(configuration));
    return;
  }
  if (command === 'health') {
    const { isWell, text } = await requestHealth(config, isReadyCheck ? '/readyz' : '/healthz');
    process.stdout.write(`${text}\n`);
    process.exitCode = isWell ? 0 : failed;
    return;
  }
  if (command === 'check' && isConfigOnly) {
    const { renderConfigOnly } = await import('./check/config-only.ts');
    process.stdout.write(renderConfigOnly(config, warnings, isJson));
    return;
  }
  const support = platformSupport(process.platform, config.servers);
  if (support.obstacle !== undefined) {
    process.stderr.write(`mcp-gangway: ${support.obstacle}.\n`);
    process.exitCode = failed;
    return;
  }
  process.on('exit', killAllGroupsNow);
  if (command === 'check') {
    for (const signal of endSignals) process.once(signal, () => process.exit(failed)); // the exit listener ends all started servers
    journalGroups(() => undefined);
    const progress = process.stderr.isTTY
      ? createProgressLine(process.stderr)
      : createProgressNotes((text) => process.stderr.write(text));
    const print = (text: string): void => progress.past(() => process.stdout.write(text));
    const { stdout } = process;
    const hasColors = stdout.isTTY && stdout.hasColors();
    const json = isJson ? jsonListener() : undefined;
    reportFaultsTo((seam, cause) => {
      const { stack } = redactFault(cause);
      progress.past(() => process.stderr.write(`mcp-gangway: internal error (${seam}): ${stack}\n`));
    });
    const isFine = await check(
      config,
      warnings,
      process.env,
      json?.listener ?? textListener(print, hasColors),
      progress.show,
    );
    if (json !== undefined) print(json.text(isFine));
    process.exitCode = isFine ? 0 : failed;
    return;
  }
  const log = logOf(config);
  for (const warning of [...warnings, support.warning]) if (warning !== undefined) log.app.warn(warning);
  const files = file === undefined ? [] : [file, ...included];
  await serve(config, { file, files, states: statesOf(files), read }, log);
}

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
  config: correct,
  health: correct,
  completion: seeHelp,
  help: seeHelp,
  import: seeHelp,
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
function createKey(name: string, file: string | undefined): void {
  const made = makeKey(name);
  if (file === undefined) {
    process.stderr.write(
      `Save this key: it is shown only once. The next two lines are its entries for the ${flagOf('apiKeysFile')} file (a JSON list) and for GANGWAY_API_KEYS.\n`,
    );
    process.stdout.write(`${made.key}\n${made.entry}\n${made.variable}\n`);
    return;
  }
  let earlier: number;
  try {
    earlier = addToKeyFile(file, made);
  } catch (error) {
    process.stderr.write(`mcp-gangway: ${(error as Error).message}\n`);
    process.exitCode = failed;
    return;
  }
  process.stderr.write(
    `Added the key to ${file}. Give this line to ${name}; it is shown only once. A gateway with ${flagOf('apiKeysFile')} ${file} accepts the key within seconds.\n`,
  );
  if (earlier > 0)
    process.stderr.write(
      `The file already had ${earlier === 1 ? 'a key with this name, which stays' : `${earlier} keys with this name, which stay`} valid. To revoke a key, delete its entry.\n`,
    );
  process.stdout.write(`Authorization: Bearer ${made.key}\n`);
}

/** Prints a description of the MCP registry as a configuration, and on stderr what remains to be done. */
async function importFile(file: string): Promise<void> {
  const { importRegistry } = await import('./import/import-command.ts');
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    const remedy = /^https?:/.test(file) ? '; download it first, for example with curl' : '; check the path';
    process.stderr.write(`mcp-gangway: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})${remedy}.\n`);
    process.exitCode = failed;
    return;
  }
  const { configuration, report } = importRegistry(content, file);
  process.stderr.write(report);
  if (configuration === undefined) process.exitCode = failed;
  else process.stdout.write(configuration);
}

/** The arguments of this program. The health check of a container uses those of the gateway in the container. */
function argumentsGiven(): readonly string[] {
  const [, program = '', ...given] = process.argv;
  const isBare = given[0] === 'health' && given.slice(1).every((word) => word === '--ready');
  return isBare ? [...given, ...argumentsOfContainer(program)] : given;
}

function logOf({ logLevel, logFormat }: GatewayConfig): Log {
  const { stderr } = process;
  const read = readLogLevels(logLevel);
  if (!read.ok) throw new Error('the configuration has checked the log levels');
  const isPretty = logFormat === 'auto' ? stderr.isTTY : logFormat === 'pretty';
  return createLog({ levels: read.levels, isPretty, hasColors: stderr.isTTY && stderr.hasColors() });
}

async function serve(config: GatewayConfig, source: ConfigurationSource, log: Log): Promise<void> {
  const logger = log.app;
  const exitWithError = (message: string): never => {
    process.stderr.write(`mcp-gangway: ${message}\n`);
    process.exit(failed);
  };
  process.on('uncaughtException', (error) => {
    logger.fatal(faultField(logger, error), 'the gateway failed');
    process.exit(failed);
  });
  // The signal handler does the rest.
  const onDrain = (): void => {
    process.kill(process.pid, 'SIGTERM');
  };
  let gateway: Gateway | undefined;
  endOnSignals(() => gateway, config, logger);
  if (await cleanUpProcesses(logger))
    journalGroups((why) =>
      logger.warn({ why }, 'cannot record the server processes: if the gateway is killed, they may keep running'),
    );
  try {
    gateway = await startGateway({
      config,
      source,
      environment: process.env,
      log,
      onUseless: exitWithError,
      onDrain,
      // Nothing else outside of src/console knows the console. Without this line there is no status page.
      connectConsole: (await import('../../console/connect-console.ts')).connectConsole,
    });
  } catch (error) {
    return exitWithError((error as Error).message);
  }
  for (const urls of gateway.urls)
    logger.info(urls, urls.failure === undefined ? 'endpoint ready' : 'endpoint ready, but its server is not');
  // An audit log on stdout must not be mixed with other text.
  const output = config.audit === 'stdout' ? process.stderr : process.stdout;
  const { urls, statusPage, curlArguments, localUrl, sharing } = gateway;
  const details = {
    needsKey: hasAuthentication(config),
    curlArguments,
    localUrl,
    statusPage,
    file: source.file,
    sharing,
  };
  output.write(renderBanner(urls, { ...details, keeping: describeKeeping(config) }));
  if (config.open) detach('admin', openStatusPage(statusPage, logger));
}

/** Opens the status page, or logs why it stays closed. The gateway works either way. */
async function openStatusPage(url: string | undefined, logger: Logger): Promise<void> {
  const why =
    url === undefined
      ? `The page cannot be opened here: see ${flagOf('adminPort')} and ${flagOf('adminHost')}.`
      : await openInBrowser(url, process.env);
  if (why !== undefined) logger.warn({ why }, `${flagOf('open')} cannot open the status page`);
}

/**
 * Ends the processes that killed gateways left on this host, before new servers need the same files and ports (P10).
 * Logs one line with the result.
 * @returns false if this system cannot clean up, so that there is no use in recording processes either
 */
async function cleanUpProcesses(logger: Logger): Promise<boolean> {
  const self = ownIdentity();
  if (self === undefined) {
    logger.debug('this system has no /proc: server processes of a killed gateway are not cleaned up at the next start');
    return false;
  }
  try {
    const { gateways, ignored, ...groups } = await killStaleProcessGroups({
      directory: stateDirectory(process.env),
      self,
    });
    for (const file of ignored)
      logger.warn({ file }, 'ignored a process record that another user may have written; remove it');
    const isClean = groups.survived.length + groups.unknown.length === 0;
    const text = 'cleaned up the server processes that a killed gateway left running';
    if (gateways > 0) logger[isClean ? 'info' : 'warn']({ gateways, ...groups }, text);
    return true;
  } catch (error) {
    logger.warn({ why: (error as Error).message }, 'cannot clean up the server processes of a killed gateway');
    return false;
  }
}

/** Records the processes that this gateway starts, for the clean-up at the next start, until a graceful exit. */
function journalGroups(onUnable: (why: string) => void): void {
  const self = ownIdentity();
  // In a container, all processes end with process 1.
  if (self === undefined || self.pid === 1) return;
  const notes = createGroupJournal({ directory: stateDirectory(process.env), self, onUnable });
  setProcessGroupListener(notes);
  process.on('exit', notes.close);
}

/**
 * The first signal shuts the gateway down gracefully. A second signal, or one before the gateway is ready, ends it at
 * once. With a terminal, SIGHUP means the end of the terminal. Without one, it reloads the configuration.
 */
function endOnSignals(started: () => Gateway | undefined, config: GatewayConfig, logger: Logger): void {
  let isEnding = false;
  const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const gateway = started();
    if (isEnding || gateway === undefined) {
      logger.warn({ signal }, 'shutting down immediately');
      process.exit(failed);
    }
    isEnding = true;
    const { drainMs } = config;
    logger.info(
      { signal, drainMs },
      'shutting down: requests in flight have the time of --timeouts.drain; a second signal stops the gateway at once',
    );
    await gateway.close();
    logger.info('shut down');
    process.exit(0);
  };
  for (const signal of endSignals) {
    process.on(signal, () => {
      if (signal !== 'SIGHUP' || hasTerminal) detach('background', end(signal));
      else if (!isEnding) started()?.reload(); // before the gateway is ready, nothing can have changed
    });
  }
}
