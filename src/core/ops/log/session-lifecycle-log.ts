import type { Logger } from 'pino';
import { modernErrorCodes } from '../../protocol/revisions.ts';
import type { SessionEndReason } from '../../session/end-reason.ts';
import type { SessionEvent } from '../../session/session-events.ts';
import { OtherRecordVersion } from '../../store/session-records.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { EventOf } from '../../util/telemetry/emit.ts';
import type { GatewaySink } from '../gateway-events.ts';
import { serverFailure } from '../health/server-failure.ts';
import { helpIfSilent, helpOfEnd, withCheck } from '../health/start-help.ts';
import type { RepeatedHelp } from '../repeated-help.ts';
import { faultField } from './fault-log.ts';
import type { Log } from './log.ts';
import type { SessionByProcess } from './session-by-process.ts';

/** How much of a dropped message is logged at `debug`. */
const maxLoggedBytes = 200;

/** Requests to the store keep failing during an outage. The log repeats the warning this often. */
const outageReminderMs = 10_000;

/** A revision is a date, but a server may answer anything. */
const maxVersionLength = 32;

const otherEra =
  'The server refused initialize with an error that modern servers send. If --era legacy is set for this server, remove it.';

const noAnswer = 'The server did not answer initialize within --defaults.timeouts.start.';

/** Ends that are not faults. All other ends are warnings. */
const isExpected: ReadonlySet<SessionEndReason> = new Set([
  'deleted',
  'idle',
  'operator',
  'client_gone',
  'superseded',
  'refused',
  'reconfigured',
  'draining',
  'released',
]);

/** What the lifecycle log needs besides its loggers. */
export interface SessionLifecycleLogOptions {
  /** Records the process of each session. */
  readonly processes: SessionByProcess;
  /** The log is read in the terminal of the person who runs the gateway. It then shows the last output of a server. */
  readonly isAtTerminal: boolean;
  /** Is shared by all logs. */
  readonly helps: RepeatedHelp;
  /** The name of the store in messages: `Redis`, or `the store in files`. */
  readonly storeName: string;
  /** Returns the log fields of an outage of the store: which one, why, and what to do; without secrets. */
  explainOutage(cause: StoreUnavailable): object | undefined;
}

const linkHelp =
  'Instances must reach each other. If that instance still runs, check --cluster.link.host and --cluster.link.address there, and that no firewall or network policy is between the two.';

const oversizedHelp =
  'An answer gets lost if its client is not connected, and other messages are dropped. Raise --replay.maxSize, of which an event may take half. Further ones are not reported.';

/**
 * Logs the lifecycle of sessions. At `info`, a session has one line for its start, one for its end, and one when its
 * server ends by itself. Contents appear at `debug` only (P12): dropped messages, and the stderr of a server, which can
 * repeat what its client sent.
 */
export function createSessionLifecycleLog(
  { session: logger, store }: Pick<Log, 'session' | 'store'>,
  { processes, isAtTerminal, helps, storeName, explainOutage }: SessionLifecycleLogOptions,
): GatewaySink {
  const unused = new UnusedOutput();
  const continues =
    storeName === 'Redis' ? 'session continues; its last instance has left it' : 'session continues after a restart';
  const lostInstances = new LostInstances(logger);
  /** The servers whose large messages were reported. */
  const oversized = new Set<string>();
  const logOutage = createOutageLog(store, storeName, explainOutage);
  return (event) => {
    switch (event.type) {
      case 'session-started': {
        const { name, startMs, pid } = event;
        processes.set(name, pid);
        const protocolVersion = event.protocolVersion.slice(0, maxVersionLength);
        return logger.info({ ...name, protocolVersion, startMs, pid }, 'session started');
      }
      case 'session-ended':
        processes.forget(event.name);
        return logEnd(logger, event, helps);
      case 'backend-ended':
        return logBackendEnd(logger, event, isAtTerminal, helps, unused);
      case 'session-adopted':
        if (event.lostInstance === undefined) return logger.info({ ...event.name, pending: event.pending }, continues);
        lostInstances.count(event.lostInstance);
        return logger.info({ ...event.name, pending: event.pending }, 'session taken over');
      case 'probe-output':
        return unused.note(event.server, event.lastOutput);
      case 'spare-ended':
        return unused.note(event.server, event.end.lastOutput);
      case 'takeover-limit-reached':
        return logger.warn({ ...event.name, reason: 'worn_out' }, 'session ended');
      case 'session-hibernated':
        processes.forget(event.name);
        return logger.info({ ...event.name, reason: event.reason }, 'session hibernated');
      case 'backend-restored': {
        const { name, pid, restoration } = event;
        processes.set(name, pid);
        if (restoration.isWaking) return logger.info({ ...name, pid }, 'session woken');
        const { losses } = restoration;
        return logger.info({ ...name, pid, ...(losses > 0 && { losses }) }, 'server restored');
      }
      case 'session-message-dropped': {
        if (event.reason === 'oversized' && !oversized.has(event.name.server)) {
          oversized.add(event.name.server);
          logger.warn(
            { ...event.name, help: oversizedHelp },
            'a message of the server is larger than an event that is kept for clients',
          );
        }
        if (!logger.isLevelEnabled('debug')) return;
        const { name, reason: what, text } = event;
        return logger.debug({ ...name, what, text: text?.subarray(0, maxLoggedBytes).toString() }, 'message dropped');
      }
      case 'session-client-cut':
        return logger.warn(event.name, 'disconnected a client that does not read its stream');
      case 'session-failed':
        return logger.error({ ...event.name, ...faultField(logger, event.cause) }, 'session failed');
      case 'store-joined':
        return store.info(`${storeName} is available${storeName === 'Redis' ? '; sessions are shared' : ''}`);
      case 'peer-unreachable': {
        const { instance: peer, address, detail } = event;
        return store.warn(
          { peer, address, detail, help: linkHelp },
          'another instance cannot be reached; its sessions are not served here',
        );
      }
      case 'peer-reachable': {
        const { instance: peer, address } = event;
        return store.info({ peer, address }, 'the other instance can be reached again');
      }
      case 'store-failed':
        return logOutage(event.cause);
    }
  };
}

function logEnd(
  logger: Logger,
  { name, reason, dropped, errorCode }: EventOf<SessionEvent, 'session-ended'>,
  helps: RepeatedHelp,
): void {
  const isOtherEra = errorCode === modernErrorCodes.unsupportedVersion;
  const isSilent = reason === 'server_start_timeout';
  const explanation = isOtherEra
    ? { detail: otherEra }
    : isSilent
      ? { detail: noAnswer, ...helps.of(name.server, withCheck(helpIfSilent)) }
      : reason === 'crash_loop'
        ? helps.of(name.server, serverFailure('crash_loop').help)
        : {};
  const refusal = { ...(errorCode !== undefined && { errorCode }), ...explanation };
  const isLoginStep = reason === 'client_unauthorized'; // anybody can cause it, so it must not fill the log
  const level = isLoginStep ? 'debug' : isExpected.has(reason) && !isOtherEra ? 'info' : 'warn';
  logger[level]({ ...name, reason, ...refusal, ...dropped }, 'session ended');
}

function logBackendEnd(
  logger: Logger,
  { name, end, isAtStart }: EventOf<SessionEvent, 'backend-ended'>,
  isAtTerminal: boolean,
  helps: RepeatedHelp,
  unused: UnusedOutput,
): void {
  const { reason, detail, exitCode, signal, lastOutput } = end;
  const helpFields = isAtStart ? helps.of(name.server, helpOfEnd(end)) : {};
  const mayShow = isAtTerminal || (isAtStart && unused.has(name.server, lastOutput));
  const outputField = mayShow && lastOutput?.length ? { lastOutput } : {};
  logger.warn({ ...name, reason, detail, exitCode, signal, ...outputField, ...helpFields }, 'server ended');
  if (!mayShow && lastOutput?.length) logger.debug({ ...name, lastOutput }, 'last output of the server');
}

/** The limit for servers whose output is remembered (P8). Of each, a few lines are kept. */
const maxServersWithOutput = 1_000;

/**
 * The last output of processes that no client has used. A process of a session may have repeated what its client sent,
 * so its output may be logged only if a process without a client wrote the same lines (P12).
 */
class UnusedOutput {
  readonly #lines = new BoundedMap<string, ReadonlySet<string>>(maxServersWithOutput);

  note(server: string, lines: readonly string[] = []): void {
    if (lines.length > 0) this.#lines.set(server, new Set(lines));
  }

  /** True if all lines are known from a process without a client. */
  has(server: string, lines: readonly string[] = []): boolean {
    const known = this.#lines.get(server);
    return known !== undefined && lines.every((line) => known.has(line));
  }
}

/** The sessions of a lost instance arrive one by one, when their clients ask for them. They are counted for this time. */
const countMs = 5_000;

/** The limit for instances that are counted at the same time (P8). */
const maxLost = 100;

/** Says that an instance was lost, and how many of its sessions this one has taken over since the last line. */
class LostInstances {
  readonly #logger: Logger;
  readonly #counts = new Map<string, number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  count(instance: string): void {
    const known = this.#counts.get(instance);
    if (known === undefined) {
      if (this.#counts.size >= maxLost) return;
      setTimeout(() => this.#report(instance), countMs).unref();
    }
    this.#counts.set(instance, (known ?? 0) + 1);
  }

  #report(instance: string): void {
    const sessions = this.#counts.get(instance);
    this.#counts.delete(instance);
    this.#logger.warn({ instance, sessions }, 'instance lost; its sessions continue here');
  }
}

/** Returns the function that logs a failure of the store. An outage is one warning, repeated from time to time. */
function createOutageLog(
  logger: Logger,
  storeName: string,
  explainOutage: SessionLifecycleLogOptions['explainOutage'],
): (cause: unknown) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  let refusedAt = Number.NEGATIVE_INFINITY;
  return (cause) => {
    if (cause instanceof OtherRecordVersion) {
      // Each request of such a session comes here.
      if (performance.now() - refusedAt < outageReminderMs) return;
      refusedAt = performance.now();
      logger.error({ detail: cause.message }, 'cannot read a session of another version');
      return;
    }
    if (!(cause instanceof StoreUnavailable)) {
      logger.error(faultField(logger, cause), 'internal error in the cluster');
      return;
    }
    const now = performance.now();
    logger.debug({ err: cause }, `${storeName} is unavailable`);
    if (now - warnedAt < outageReminderMs) return;
    warnedAt = now;
    logger.warn(explainOutage(cause) ?? {}, `${storeName} is unavailable`);
  };
}
