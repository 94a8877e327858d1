import type { Logger } from 'pino';
import type { SessionObserver } from '../session/observer.ts';

/** How much of a dropped line is shown at debug. */
const shownBytes = 200;

/**
 * Logs what happens to sessions: at `info` one line for the start and one for the end of each, and one when its server
 * ends by itself. Contents appear at `debug` only, and only those of lines that were dropped (P12).
 */
export function createSessionLog(logger: Logger): SessionObserver {
  return {
    started: (name, details) => logger.info({ ...name, ...details }, 'session started'),
    ended: (name, { reason, dropped }) => logger.info({ ...name, reason, ...dropped }, 'session ended'),
    backendEnded(name, { reason, detail, exitCode, signal, lastOutput }, wasReady) {
      if (reason === 'closed') {
        logger.debug({ ...name, detail }, 'server stopped');
        return;
      }
      // Once a client has spoken to the server, its output can hold what the client said.
      const showsOutput = !wasReady || logger.isLevelEnabled('debug');
      const output = showsOutput && lastOutput?.length ? { lastOutput } : {};
      logger.warn({ ...name, reason, detail, exitCode, signal, ...output }, 'server ended');
    },
    dropped(name, what, text) {
      if (!logger.isLevelEnabled('debug')) return;
      logger.debug({ ...name, what, text: text?.subarray(0, shownBytes).toString() }, 'message dropped');
    },
    failed: (name, cause) => logger.error({ ...name, err: cause }, 'session failed'),
  };
}
