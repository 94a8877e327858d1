import type { Logger } from 'pino';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import type { FaultReporter, Seam } from '../../util/boundary.ts';

/** How much of one message of an error is shown. */
const maxMessage = 300;

/** How many causes are followed. */
const maxCauses = 5;

const withheld = 'the message may contain contents; set --log-level debug to see it';

/**
 * An error as the log may show it at any level (P12): its name, its stack and its causes. The message stays out where Node.js or
 * a library made it of what was read. Properties of the error are left out too.
 */
export function shownFault(cause: unknown, depth = 0): Error {
  if (!(cause instanceof Error)) return new Error(`a value that is not an error was thrown: ${typeof cause}`);
  const { name, stack = '' } = cause;
  const isOwn = !(cause instanceof SyntaxError) && !('code' in cause);
  const message = isOwn ? cause.message.slice(0, maxMessage) : withheld;
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const before = cause.cause === undefined || depth >= maxCauses ? undefined : shownFault(cause.cause, depth + 1);
  const shown = new Error(message, before && { cause: before });
  Object.defineProperty(shown, 'stack', { value: [`${name}: ${message}`, ...frames].join('\n') });
  return shown;
}

/** The field of a line that tells of a fault of the gateway itself; whole where contents may be shown. */
export const faultField = (logger: Logger, cause: unknown): { err: unknown } => ({
  err: logger.isLevelEnabled('debug') ? cause : shownFault(cause),
});

/**
 * Logs every fault that a boundary stops, and counts it.
 * @param onUnavailable is told where the cause is a store that does not answer: that is no fault of the gateway
 */
export function createFaultReporter(
  logger: Logger,
  count: (seam: Seam) => void,
  onUnavailable: (cause: StoreUnavailable) => void,
): FaultReporter {
  return (seam, cause) => {
    if (cause instanceof StoreUnavailable) return onUnavailable(cause);
    count(seam);
    logger.error({ seam, ...faultField(logger, cause) }, 'internal error');
  };
}
