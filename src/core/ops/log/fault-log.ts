import type { Logger } from 'pino';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import type { FaultReporter, Seam } from '../../util/boundary.ts';

/** How much of an error message is logged. */
const maxMessageLength = 300;

/** How many causes are followed. */
const maxCauses = 5;

const withheld = 'the message may contain contents; set --log-level debug to see it';

/**
 * Returns an error as the log may show it at any level (P12): its name, its stack and its causes. The message is left
 * out where Node.js or a library made it from input. Properties of the error are left out too.
 */
export function redactFault(cause: unknown, depth = 0): Error {
  if (!(cause instanceof Error)) return new Error(`a value that is not an error was thrown: ${typeof cause}`);
  const { name, stack = '' } = cause;
  const isOwn = !(cause instanceof SyntaxError) && !('code' in cause);
  const message = isOwn ? cause.message.slice(0, maxMessageLength) : withheld;
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const nestedCause = cause.cause === undefined || depth >= maxCauses ? undefined : redactFault(cause.cause, depth + 1);
  const redacted = new Error(message, nestedCause && { cause: nestedCause });
  Object.defineProperty(redacted, 'stack', { value: [`${name}: ${message}`, ...frames].join('\n') });
  return redacted;
}

/** The log field of an internal error. The error is complete where contents may be logged. */
export const faultField = (logger: Logger, cause: unknown): { err: unknown } => ({
  err: logger.isLevelEnabled('debug') ? cause : redactFault(cause),
});

/**
 * Creates the reporter that logs and counts every fault that a boundary stops.
 * @param onUnavailable receives an unavailable store instead: that is not a fault of the gateway
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
