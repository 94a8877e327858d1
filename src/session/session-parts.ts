import type { OpenBackend } from '../backend/backend.ts';
import type { Principal, Store } from '../store/store.ts';
import type { SessionObserver } from './observer.ts';

/** One configured server, as sessions use it. */
export interface Server {
  readonly name: string;
  readonly open: OpenBackend;
  /** How long a new backend may take to answer `initialize`. */
  readonly startTimeoutMs: number;
  /** What becomes of a session whose backend ends by itself (DESIGN decision 5). */
  readonly onBackendExit: 'restore' | 'end';
  /** Which calls are run again after a restore; see `Reruns`. */
  readonly rerun: 'safe' | 'hints';
}

/** Times and sizes that hold for every session; `docs/configuration.md` explains each. */
export interface SessionOptions {
  readonly upgradeAfterMs: number;
  readonly commitAfterMs: number;
  readonly cancelGraceMs: number;
  readonly requestIdleMs: number;
  readonly requestMaxMs: number;
  readonly maxCalls: number;
  readonly retryMs: number;
  readonly slowReaderMs: number;
  readonly streamMaxAgeMs: number;
  readonly maxEventBytes: number;
  readonly logMaxEvents: number;
  readonly logMaxBytes: number;
  readonly maxQueuedBytes: number;
}

/** What a session is made of. */
export interface SessionParts {
  readonly id: string;
  /** The session's name in the store: a hash of the id. */
  readonly key: string;
  readonly server: Server;
  readonly principal: Principal;
  readonly instance: string;
  readonly store: Store;
  readonly options: SessionOptions;
  readonly observer: SessionObserver;
  /** The session can no longer be used; what it started is still ending. */
  onEnding(): void;
  /** Nothing of the session is left. */
  onEnded(): void;
}
