import type { Logger } from 'pino';
import type { DropCounts, ModernObserver } from '../../modern/modern-observer.ts';
import { helpOfEnd } from '../health/start-help.ts';
import { faultField } from './fault-log.ts';

/** How much of a dropped message is logged at `debug`. */
const maxLoggedBytes = 200;

/**
 * Logs the lifecycle of modern servers. At `info`, a process that all clients share has one line when it is ready and
 * one when it ends. Contents appear at `debug` only (P12). So does the last output of a server that clients have sent
 * requests to.
 * @param isAtTerminal true if the log is read in the terminal of the person who runs the gateway; it then shows the
 *   last output of a server
 */
export function createSharedServerLog(logger: Logger, isAtTerminal: boolean): ModernObserver {
  const warnedServers = new Set<string>();
  const dropField = (counts: DropCounts): object => (Object.keys(counts).length === 0 ? {} : { dropped: counts });
  return {
    eraFound: (server, details) => logger.info({ server, ...details }, 'detected the era of the server'),
    isolationUnused: (server) =>
      logger.warn(
        {
          server,
          detail:
            'Each modern request has its own connection to a server at a URL, so the gateway cannot isolate users. Identify users to the server with --credential or --forward-header.',
        },
        '--isolation has no effect on modern clients of this server',
      ),
    ready: (server, details) => logger.info({ server, ...details }, 'shared server ready'),
    ended(server, { reason, detail, exitCode, signal, lastOutput }, { dropped, ...details }) {
      const outputField = isAtTerminal && lastOutput?.length ? { lastOutput } : {};
      const fields = { server, reason, detail, exitCode, signal, ...details, ...dropField(dropped), ...outputField };
      logger.warn(fields, 'shared server ended');
      if (!isAtTerminal && lastOutput?.length) logger.debug({ server, lastOutput }, 'last output of the server');
    },
    startFailed(server, end, { isByProbe }) {
      const { reason, detail, lastOutput = [] } = end;
      const level = isByProbe ? 'debug' : 'warn';
      const outputField = lastOutput.length > 0 ? { lastOutput } : {};
      logger[level]({ server, reason, detail, ...outputField, help: helpOfEnd(end) }, 'shared server did not start');
    },
    wroteAtStart: (server, lastOutput) => logger.warn({ server, lastOutput }, 'last output of the server'),
    crashLoop: (server, details) =>
      logger.warn({ server, ...details }, 'shared server exited repeatedly; the gateway waits before the next start'),
    clientCut: (server) => logger.warn({ server }, 'disconnected a client that does not read its stream'),
    filtersTruncated: (server) =>
      logger.warn(
        { server },
        'too many subscribed resources to share between instances; clients of other instances miss changes to some resources',
      ),
    closed(server, { dropped }) {
      const hasLosses = Object.keys(dropped).length > 0;
      logger[hasLosses ? 'info' : 'debug']({ server, ...dropField(dropped) }, 'shared server closed');
    },
    failed: (server, cause) => logger.error({ server, ...faultField(logger, cause) }, 'internal error'),
    dropped(server, what, text) {
      if (what === 'server_request' && !warnedServers.has(server)) {
        warnedServers.add(server);
        logger.warn(
          { server },
          'the server sends requests to its clients, which 2026-07-28 does not allow; the gateway answers them with errors',
        );
      }
      if (!logger.isLevelEnabled('debug')) return;
      logger.debug({ server, what, text: text?.subarray(0, maxLoggedBytes).toString() }, 'message dropped');
    },
  };
}
