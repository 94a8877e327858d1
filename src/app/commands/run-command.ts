// src/app/commands: the commands of the program: serve, check, health, key, help and version.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { type Configuration, type GatewayConfig, readConfiguration } from '../../config/config.ts';
import { renderHelp } from '../../config/help/help.ts';
import { renderIssue } from '../../config/issues.ts';
import { sendsLog } from '../../config/options/observe-options.ts';
import type { Command } from '../../config/sources/command-table.ts';
import { redactFault } from '../../core/ops/log/fault-log.ts';
import { createLog, type Log, type LogCopy } from '../../core/ops/log/log.ts';
import { readLogLevels } from '../../core/ops/log/log-parts.ts';
import { reportFaultsTo } from '../../core/util/boundary.ts';
import { instanceName } from '../create-telemetry.ts';
import type { Features, GatewaySetup } from '../features/gateway-features.ts';
import { statesOf } from '../file-watch.ts';
import { prepareStarter } from '../prepare-starter.ts';
import { pinsOf } from '../servers/run-server.ts';
import { version } from '../version.ts';
import { notesOn } from './check/advice.ts';
import { check } from './check/check-command.ts';
import { jsonListener, renderConfigOnly, textListener } from './check/render-check.ts';
import { endSignals } from './end-on-signals.ts';
import { argumentsOfContainer, requestHealth } from './health-command.ts';
import { createKey } from './key-command.ts';
import { failed, misconfigured, type Outcome, printed, refused } from './outcome.ts';
import { platformSupport } from './platform-support.ts';
import { serveUntilSignal } from './serve-command.ts';
import type { changeServers, PackageOf } from './servers-command.ts';

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
  const setup: GatewaySetup = { config, features, environment: process.env, file };
  if (command === 'print') {
    const { renderConfiguration } = await import('./print/print-config.ts');
    return printed(renderConfiguration(configuration));
  }
  if (command === 'health') return requestHealth(config.listen, flags.has('--ready') ? '/readyz' : '/healthz');
  if (command === 'upgrade') {
    const { upgradePackages } = await import('./upgrade-command.ts');
    prepareStarter(process.env);
    const print = (line: string): unknown => process.stdout.write(`${line}\n`);
    return { exitCode: await upgradePackages(configuration, setup, print) };
  }
  const unreadable = command === 'serve' || flags.has('--config-only') ? pinFaults(setup) : [];
  if (unreadable.length > 0) {
    const stderr = unreadable.map((fault) => `mcp-gangway: ${fault}\n`).join('');
    return { stderr, exitCode: command === 'serve' ? failed : misconfigured };
  }
  if (command === 'check' && flags.has('--config-only')) {
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
  const source = { files, states: statesOf(files), read };
  await serveUntilSignal({ ...setup, source, log, otlp }, flags.has('--open'));
  return undefined;
}

/** Why the gateway would not start with these pin files: a sentence for each that cannot be read, with its command. */
const pinFaults = (setup: GatewaySetup): readonly string[] =>
  setup.config.servers.flatMap((server) => {
    try {
      pinsOf(server, setup);
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
