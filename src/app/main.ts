import { readFileSync, statSync } from 'node:fs';
import type { Logger } from 'pino';
import { killAllGroupsNow } from '../backend/stdio/groups.ts';
import { createLogger } from '../ops/log.ts';
import { renderBanner } from './banner.ts';
import { checkServers } from './check.ts';
import { type GatewayConfig, readConfiguration } from './config.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { renderHelp } from './help.ts';
import { version } from './version.ts';

/** Exit codes: 0 all is well, 1 it could not be done, 2 the configuration is wrong. */
const failed = 1;
const misconfigured = 2;

/** What ends the program from outside. */
const endSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** The program: reads the command line, the environment and the file, and does what they say. */
export async function main(): Promise<void> {
  const configuration = readConfiguration({
    argv: process.argv.slice(2),
    env: process.env,
    readFile: (path) => readFileSync(path, 'utf8'),
    findCommand: (name) => statSync(name, { throwIfNoEntry: false })?.isFile() ?? false,
  });
  if (!configuration.ok) {
    for (const { path, message } of configuration.faults) process.stderr.write(`${path}: ${message}\n`);
    process.stderr.write('Nothing was started. See mcp-gangway --help.\n');
    process.exitCode = misconfigured;
    return;
  }
  process.on('exit', killAllGroupsNow);
  if (!('config' in configuration)) {
    process.stdout.write(configuration.command === 'help' ? renderHelp() : `${version}\n`);
    return;
  }
  const { command, config, warnings } = configuration;
  if (command === 'check') {
    for (const signal of endSignals) process.once(signal, () => process.exit(failed)); // which ends what was started
    const isFine = await checkServers(config, process.env, (text) => process.stdout.write(text));
    process.exitCode = isFine ? 0 : failed;
    return;
  }
  const logger = createLogger(config.logLevel);
  for (const warning of warnings) logger.warn(warning);
  await serve(config, logger);
}

async function serve(config: GatewayConfig, logger: Logger): Promise<void> {
  const giveUp = (message: string): never => {
    process.stderr.write(`mcp-gangway: ${message}\n`);
    process.exit(failed);
  };
  process.on('uncaughtException', (error) => {
    logger.fatal({ err: error }, 'the gateway failed');
    process.exit(failed);
  });
  let gateway: Gateway;
  try {
    gateway = await startGateway({ config, environment: process.env, logger, onUseless: giveUp });
  } catch (error) {
    return giveUp((error as Error).message);
  }
  for (const { server, url } of gateway.urls) logger.info({ server, url }, 'endpoint ready');
  process.stdout.write(renderBanner(gateway.urls));
  endOnSignals(gateway, logger);
}

/** The first signal ends the gateway in order; a second one at once. */
function endOnSignals(gateway: Gateway, logger: Logger): void {
  let isEnding = false;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (isEnding) {
      logger.warn({ signal }, 'ending at once');
      process.exit(failed);
    }
    isEnding = true;
    logger.info({ signal }, 'ending: no new sessions, calls in flight are finished');
    await gateway.close();
    logger.info('ended');
    process.exit(0);
  };
  for (const signal of endSignals) process.on(signal, () => void end(signal));
}
