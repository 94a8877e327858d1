import type { Logger } from 'pino';
import { modernEra } from '../../protocol/known-revisions.ts';
import type { EventOf } from '../../util/telemetry/emit.ts';
import type { GatewaySink } from '../gateway-events.ts';
import { helpOfEnd } from '../health/start-help.ts';
import type { RepeatedHelp } from '../repeated-help.ts';
import type { DropCounts, SharedServerEvent, UnusedOption } from '../shared-server-events.ts';
import { faultField } from './fault-log.ts';

/** How much of a dropped message is logged at `debug`. */
const maxLoggedBytes = 200;

const unusedOptions: Readonly<Record<UnusedOption, { readonly what: string; readonly detail: string }>> = {
  share: {
    what: '--share has no effect on modern clients of this server',
    detail:
      'Each modern request to a server that is configured by its URL has its own connection, so the gateway cannot isolate users. Identify users to the server with --defaults.credentials or --defaults.forwardHeaders.',
  },
  'share-of-sessions': {
    what: '--share has no effect on sessions of this server',
    detail:
      'At a URL, each client session has its own session at the server. Only clients without sessions share one. To share a process, run the server with STDIO behind this gateway.',
  },
  affinity: {
    what: 'the affinity has no effect, because this is a modern server',
    detail: `A server of ${modernEra} keeps nothing between requests, so --share alone decides who uses a process. Remove the affinity, or set --era legacy if the server also serves sessions.`,
  },
};

/**
 * Logs the lifecycle of modern servers. At `info`, a process that all clients share has one line when it is ready and
 * one when it ends. Contents appear at `debug` only (P12). So does the last output of a server that clients have sent
 * requests to.
 * @param isAtTerminal true if the log is read in the terminal of the person who runs the gateway; it then shows the
 *   last output of a server
 * @param helps is shared by all logs
 */
export function createSharedServerLog(logger: Logger, isAtTerminal: boolean, helps: RepeatedHelp): GatewaySink {
  const logDropped = createDropLog(logger);
  return (event) => {
    switch (event.type) {
      case 'era-found': {
        const { server, era, probeMs } = event;
        return logger.info({ server, era, probeMs }, 'detected the era of the server');
      }
      case 'option-unused': {
        const { what, detail } = unusedOptions[event.option];
        return logger.warn({ server: event.server, detail }, what);
      }
      case 'process-per-request': {
        const detail = `The gateway does not know the users of its clients, and a client of ${modernEra} has no session. A tool that builds on an earlier call finds nothing. Configure authentication, or set --share all if all clients are yours. Clients that open a session keep their state.`;
        return logger.warn(
          { server: event.server, detail },
          `each request of a client of ${modernEra} gets a new process of this server`,
        );
      }
      case 'shared-server-ready': {
        const { server, revisions, startMs, pid } = event;
        return logger.info({ server, revisions, startMs, pid }, 'shared server ready');
      }
      case 'shared-server-ended':
        return logSharedEnd(logger, event, isAtTerminal);
      case 'shared-start-failed': {
        const { server, end, isByProbe } = event;
        const { reason, detail, lastOutput = [] } = end;
        const outputField = lastOutput.length > 0 ? { lastOutput } : {};
        const fields = { server, reason, detail, ...outputField, ...helps.of(server, helpOfEnd(end)) };
        return logger[isByProbe ? 'debug' : 'warn'](fields, 'shared server did not start');
      }
      case 'probe-output': {
        const { server, lastOutput } = event;
        return logger.warn({ server, lastOutput }, 'last output of the server');
      }
      case 'shared-crash-loop': {
        const { server, pauseMs } = event;
        return logger.warn(
          { server, pauseMs },
          'shared server exited repeatedly; the gateway waits before the next start',
        );
      }
      case 'client-cut':
        return logger.warn({ server: event.server }, 'disconnected a client that does not read its stream');
      case 'filters-truncated':
        return logger.warn(
          { server: event.server },
          'too many subscribed resources to share between instances; clients of other instances miss changes of some resources',
        );
      case 'shared-server-closed': {
        const { server, dropped } = event;
        const hasLosses = Object.keys(dropped).length > 0;
        return logger[hasLosses ? 'info' : 'debug']({ server, ...dropField(dropped) }, 'shared server closed');
      }
      case 'shared-server-failed':
        return logger.error({ server: event.server, ...faultField(logger, event.cause) }, 'internal error');
      case 'shared-message-dropped':
        return logDropped(event);
    }
  };
}

const dropField = (counts: DropCounts): object => (Object.keys(counts).length === 0 ? {} : { dropped: counts });

function logSharedEnd(
  logger: Logger,
  { server, end, inFlight, runAgain, dropped }: EventOf<SharedServerEvent, 'shared-server-ended'>,
  isAtTerminal: boolean,
): void {
  const { reason, detail, exitCode, signal, lastOutput } = end;
  const outputField = isAtTerminal && lastOutput?.length ? { lastOutput } : {};
  const counts = { inFlight, runAgain, ...dropField(dropped) };
  logger.warn({ server, reason, detail, exitCode, signal, ...counts, ...outputField }, 'shared server ended');
  if (!isAtTerminal && lastOutput?.length) logger.debug({ server, lastOutput }, 'last output of the server');
}

/** Returns the function that logs a dropped message. Requests from a server to its clients are one warning. */
function createDropLog(logger: Logger): (event: EventOf<SharedServerEvent, 'shared-message-dropped'>) => void {
  const warnedServers = new Set<string>();
  return ({ server, reason: what, text }) => {
    if (what === 'server_request' && !warnedServers.has(server)) {
      warnedServers.add(server);
      logger.warn(
        { server },
        `the server sends requests to its clients, which ${modernEra} does not allow; the gateway answers them with errors`,
      );
    }
    if (!logger.isLevelEnabled('debug')) return;
    logger.debug({ server, what, text: text?.subarray(0, maxLoggedBytes).toString() }, 'message dropped');
  };
}
