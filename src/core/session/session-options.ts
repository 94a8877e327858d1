import type { Principal } from '../protocol/principal.ts';
import type { SessionPermit } from '../quota/session-permit.ts';
import type { Server } from '../server/server.ts';
import type { LogLimits } from '../store/event-log.ts';
import type { Registrant } from '../store/session-records.ts';
import type { Store } from '../store/store.ts';
import type { CreateGroupRules } from './group-rules.ts';
import type { SessionTelemetry } from './session-events.ts';

/** Times and sizes that hold for every session; `docs/reference/configuration.md` explains each. */
export interface SessionOptions {
  readonly streamAfterMs: number;
  readonly commitAfterMs: number;
  /** How long a server may work on a cancelled request. */
  readonly graceMs: number;
  readonly requestIdleMs: number;
  readonly requestTotalMs: number;
  /**
   * How long a call of a group that has asked may be without a reader, which may be another instance. For ever by default.
   */
  readonly unreadMs?: number | undefined;
  /** How long a call may be silent before its client gets progress; for ever by default. */
  readonly progressMs?: number;
  readonly maxCalls: number;
  /** As `maxCalls`, for a session that many clients share. */
  readonly maxSharedCalls: number;
  readonly reconnectDelayMs: number;
  readonly slowReaderMs: number;
  /** How long an event stream may last; 0 for no limit. */
  readonly maxAgeMs: number;
  readonly maxEventBytes: number;
  /** What the log keeps of each session. */
  readonly logLimits: Pick<LogLimits, 'maxEvents' | 'maxBytes'>;
  readonly maxQueuedBytes: number;
  /** How long a request waits for a store that is not available. */
  readonly storeWaitMs: number;
  /** Makes the rules of a session of a group; absent if no such session is opened. */
  readonly groupRules?: CreateGroupRules | undefined;
}

/** An instance that shares its store with no other; see `SessionParts.instance`. */
export const singleInstance = { name: '', term: 0 };

/** The parts that a session is made of. */
export interface SessionParts {
  /** The session's name in the store: a hash of the id that clients know. */
  readonly key: string;
  readonly server: Server;
  readonly principal: Principal;
  /** The current name and term of this instance. The name changes after each lapse of the lease; see `Lease`. */
  instance(): Registrant & { readonly name: string };
  /** False while another instance may own the session (P6). Absent if the store is shared with no other instance. */
  isOwner?(): boolean;
  readonly store: Store;
  /** Aborted when the gateway stops and the store is no longer used. */
  readonly storeSignal: AbortSignal;
  readonly options: SessionOptions;
  readonly telemetry: SessionTelemetry;
  /** The session's place in the quotas. */
  readonly permit: SessionPermit;
}
