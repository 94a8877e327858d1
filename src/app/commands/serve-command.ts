import type { Logger } from 'pino';
import { hasAuthentication } from '../../config/access/authentication-config.ts';
import { flagOf } from '../../config/options/option-names.ts';
import type { Environment } from '../../config/sources/environment-variables.ts';
import { starter } from '../../core/backend/stdio/starter/starter.ts';
import { faultField } from '../../core/ops/log/fault-log.ts';
import { detach } from '../../core/util/boundary.ts';
import { type Gateway, type GatewayParts, startGateway } from '../gateway.ts';
import { describeKeeping, programOf, renderBanner } from './banner.ts';
import { endOnSignals } from './end-on-signals.ts';
import { openInBrowser } from './open-page.ts';
import { failed } from './outcome.ts';

/** Runs the gateway until a signal ends it. Exits with a message if the gateway cannot start. */
export async function serveUntilSignal(
  parts: Omit<GatewayParts, 'onUseless' | 'onDrain'>,
  opensPage: boolean,
): Promise<void> {
  const { config, environment, file } = parts;
  const logger = parts.log.app;
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
  endWithNpx(environment, () => {
    logger.info('npx has ended, so the gateway ends too');
    onDrain();
  });
  let gateway: Gateway | undefined;
  endOnSignals(() => gateway, config, logger);
  starter.onLost = () =>
    logger.warn('the process that starts the servers has ended; running servers go on, and another one replaces it');
  try {
    gateway = await startGateway({ ...parts, onUseless: exitWithError, onDrain });
  } catch (error) {
    return exitWithError((error as Error).message);
  }
  for (const urls of gateway.urls)
    logger.info(urls, urls.failure === undefined ? 'endpoint ready' : 'endpoint ready, but its server is not');
  // An audit log on stdout must not be mixed with other text.
  const output = config.observe.audit === 'stdout' ? process.stderr : process.stdout;
  const { urls, statusPage, ca, localUrl, sharing, storeDirectory } = gateway;
  const details = {
    program: programOf(process.argv[1] ?? '', process.cwd()),
    needsKey: hasAuthentication(config),
    keysFile: config.auth.apiKeysFile,
    ca,
    localUrl,
    statusPage,
    file,
    packagesFolder: gateway.packagesFolder,
    sessions: `${describeKeeping(config, storeDirectory)} ${sharing}`,
  };
  output.write(renderBanner(urls, details));
  if (opensPage) detach('admin', openStatusPage(statusPage, environment, logger));
}

/** Opens the status page, or logs why it stays closed. The gateway works either way. */
async function openStatusPage(url: string | undefined, environment: Environment, logger: Logger): Promise<void> {
  const why =
    url === undefined
      ? `The page cannot be opened here: see ${flagOf('listen.adminPort')} and ${flagOf('listen.adminHost')}.`
      : await openInBrowser(url, environment);
  if (why !== undefined) logger.warn({ why }, '--open cannot open the status page');
}

/** How often the gateway looks whether its parent still runs. */
const lookEveryMs = 1_000;

/** True if `npx` started this program itself. A program that `npx` started passes the same variables on to its children. */
const isStartedByNpx = ({ npm_lifecycle_event: event, npm_lifecycle_script: script = '' }: Environment): boolean =>
  event === 'npx' && /^["']?mcp-gangway\b/.test(script);

/**
 * Shuts the gateway down, as at SIGTERM, when the `npx` that started it has ended. On SIGTERM, `npx` and its shell end
 * without passing the signal on, and would leave the gateway and its servers running.
 */
function endWithNpx(environment: Environment, onEnded: () => void): void {
  if (!isStartedByNpx(environment)) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onEnded();
  }, lookEveryMs).unref();
}
