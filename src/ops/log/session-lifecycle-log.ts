import type { SessionEndReason } from '../../session/end-reason.ts';
import type { SessionObserver } from '../../session/session-observer.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { serverFailure } from '../health/server-failure.ts';
import { helpIfSilent, helpOfEnd, withCheck } from '../health/start-help.ts';
import { faultField } from './fault-log.ts';
import type { Log } from './log.ts';
import type { SessionByProcess } from './session-by-process.ts';

/** How much of a dropped message is logged at `debug`. */
const maxLoggedBytes = 200;

/** Requests to Redis keep failing during an outage. The log repeats the warning this often. */
const outageReminderMs = 10_000;

/** A revision is a date, but a server may answer anything. */
const maxVersionLength = 32;

/** A modern server refuses `initialize` with this error. */
const unsupportedVersion = -32022;
const otherEra =
  'The server refused initialize with an error that modern servers send. If --era legacy is set for this server, remove it.';

const noAnswer = 'The server did not answer initialize within --start-timeout-ms.';

/** Ends that are not faults. All other ends are warnings. */
const isExpected: ReadonlySet<SessionEndReason> = new Set([
  'deleted',
  'idle',
  'operator',
  'client_gone',
  'refused',
  'reconfigured',
  'draining',
  'released',
]);

/**
 * Logs the lifecycle of sessions. At `info`, a session has one line for its start, one for its end, and one when its
 * server ends by itself. Contents appear at `debug` only (P12): dropped messages, and the stderr of a server, which can
 * repeat what its client sent.
 * @param processes records the process of each session
 * @param isAtTerminal true if the log is read in the terminal of the person who runs the gateway; it then shows the
 *   last output of a server
 * @param explainOutage returns the log fields of a Redis outage: which Redis, why, and what to do; without secrets
 */
export function createSessionLifecycleLog(
  { session: logger, store }: Pick<Log, 'session' | 'store'>,
  processes: SessionByProcess,
  isAtTerminal: boolean,
  explainOutage: (cause: StoreUnavailable) => object,
): SessionObserver {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return {
    started(name, { protocolVersion, ...details }) {
      processes.set(name, details.pid);
      const revision = { protocolVersion: protocolVersion.slice(0, maxVersionLength) };
      logger.info({ ...name, ...revision, ...details }, 'session started');
    },
    ended(name, { reason, errorCode, dropped }) {
      processes.forget(name);
      const isOtherEra = errorCode === unsupportedVersion;
      const isSilent = reason === 'server_start_timeout';
      const explanation = isOtherEra
        ? { detail: otherEra }
        : isSilent
          ? { detail: noAnswer, help: withCheck(helpIfSilent) }
          : reason === 'crash_loop'
            ? { help: serverFailure('crash_loop').help }
            : {};
      const refusal = { ...(errorCode !== undefined && { errorCode }), ...explanation };
      const level = isExpected.has(reason) && !isOtherEra ? 'info' : 'warn';
      logger[level]({ ...name, reason, ...refusal, ...dropped }, 'session ended');
    },
    backendEnded(name, end, { isAtStart }) {
      const { reason, detail, exitCode, signal, lastOutput } = end;
      const help = isAtStart ? helpOfEnd(end) : undefined;
      const outputField = isAtTerminal && lastOutput?.length ? { lastOutput } : {};
      logger.warn({ ...name, reason, detail, exitCode, signal, help, ...outputField }, 'server ended');
      if (!isAtTerminal && lastOutput?.length) logger.debug({ ...name, lastOutput }, 'last output of the server');
    },
    adopted: (name, details) => logger.info({ ...name, ...details }, 'session taken over'),
    takeoverLimitReached: (name) => logger.warn({ ...name, reason: 'worn_out' }, 'session ended'),
    clusterJoined: () => store.info('Redis is available; sessions are shared'),
    hibernated(name) {
      processes.forget(name);
      logger.info(name, 'session hibernated');
    },
    restored(name, { pid, isWaking, losses }) {
      processes.set(name, pid);
      if (isWaking) logger.info({ ...name, pid }, 'session woken');
      else logger.info({ ...name, pid, losses }, 'server restored');
    },
    dropped(name, what, text) {
      if (!logger.isLevelEnabled('debug')) return;
      logger.debug({ ...name, what, text: text?.subarray(0, maxLoggedBytes).toString() }, 'message dropped');
    },
    failed: (name, cause) => logger.error({ ...name, ...faultField(logger, cause) }, 'session failed'),
    clusterFailed(cause) {
      if (!(cause instanceof StoreUnavailable)) {
        store.error(faultField(store, cause), 'internal error in the cluster');
        return;
      }
      const now = performance.now();
      store.debug({ err: cause }, 'Redis is unavailable');
      if (now - warnedAt < outageReminderMs) return;
      warnedAt = now;
      store.warn(explainOutage(cause), 'Redis is unavailable');
    },
  };
}
