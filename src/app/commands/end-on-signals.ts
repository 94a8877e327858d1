import { isatty } from 'node:tty';
import type { Logger } from 'pino';
import type { GatewayConfig } from '../../config/config.ts';
import { detach } from '../../core/util/boundary.ts';
import type { Gateway } from '../gateway.ts';
import { failed } from './outcome.ts';

/** The signals that end the program. */
export const endSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * The first signal shuts the gateway down gracefully. A second signal, or one before the gateway is ready, ends it at
 * once. With a terminal, SIGHUP means the end of the terminal. Without one, it reloads the configuration.
 */
export function endOnSignals(started: () => Gateway | undefined, config: GatewayConfig, logger: Logger): void {
  let isEnding = false;
  const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const gateway = started();
    if (isEnding || gateway === undefined) {
      logger.warn({ signal }, 'shutting down immediately');
      process.exit(failed);
    }
    isEnding = true;
    const { drainMs } = config.timeouts;
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
