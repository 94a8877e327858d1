// src/core/quota: limits on the resources that each principal, and all principals together, use at once and over time.
import type { Reason } from '../protocol/faults.ts';
import { anonymous, isSameUser, type Principal } from '../protocol/principal.ts';
import type { Server } from '../server/server.ts';
import type { Rates } from '../store/shared/shared-data.ts';
import { type AccountLimits, type AccountReasons, QuotaAccount } from './account.ts';
import { QuotaAccounts } from './accounts.ts';
import type { RequestRate } from './rate.ts';
import { RequestPermit, uncountedRequestPermit } from './request-permit.ts';
import { SessionPermit, uncountedSessionPermit } from './session-permit.ts';
import { SharedRate } from './shared-rate.ts';

/** The limits, and the store of shared rates. */
export interface QuotasOptions {
  /** The limits of each principal. */
  readonly own: AccountLimits;
  /** The limits of all principals together on this instance, including anonymous ones. */
  readonly all: AccountLimits;
  /** The bytes that wait for servers, also those of clients that have left; none by default. */
  heldBytes?(): number;
  /** The rates that all instances count together: the requests of each principal. */
  readonly rates: Rates;
  /** Receives a fault of the gateway itself. */
  onFailed(cause: unknown): void;
}

/** A session to be opened, or a process beside all sessions, and whose it is. */
export interface QuotaUse {
  readonly principal: Principal;
  readonly server: Pick<Server, 'isRemote' | 'sharesProcess' | 'processes'>;
  /** True for a process that belongs to no session. */
  readonly isProcess?: boolean;
}

const ownReasons: AccountReasons = {
  sessions: 'quota_sessions',
  processes: 'quota_processes',
  streams: 'quota_streams',
  bytes: 'quota_bytes',
  requests: 'quota_requests',
  starts: 'quota_starts',
};

/**
 * Sessions and connections already have limits elsewhere (`maxSessions`, `maxConnections`), whose reasons are reused
 * here.
 */
const allReasons: AccountReasons = {
  sessions: 'too_many_sessions',
  processes: 'too_many_sessions',
  streams: 'gateway_busy',
  bytes: 'gateway_busy',
  requests: 'gateway_busy',
  starts: 'too_many_starts',
};

const hasLimit = (limits: AccountLimits): boolean => Object.values(limits).some((limit) => limit !== undefined);

/** True if each request has to be counted. A limit of sessions alone costs requests nothing. */
const hasRequestLimit = ({ streams, bytes, requests }: AccountLimits): boolean =>
  hasLimit({ streams, bytes, requests });

/**
 * The limits of each principal and of all principals together (docs/decisions/0146). A permit is acquired at admission,
 * before any part of a request reaches a server, and released on every way out. Admitted work is never refused later: a
 * session that is restored or taken over is counted but not checked. Without any limit nothing is counted.
 */
export class Quotas {
  readonly #own: QuotaAccounts | undefined;
  /** The account of all principals; empty without any limit. */
  readonly #total: readonly QuotaAccount[] = [];
  readonly #countsRequests: boolean = false;

  constructor(options?: QuotasOptions) {
    if (options === undefined || (!hasLimit(options.own) && !hasLimit(options.all))) return;
    const { own, all, heldBytes, rates, onFailed } = options;
    const shared = new SharedRate(rates, onFailed);
    this.#own = new QuotaAccounts((key) => {
      const onRequests = own.requests && ((rate: RequestRate) => shared.note(`requests ${key}`, rate));
      return new QuotaAccount(own, ownReasons, onRequests);
    });
    this.#total = [new QuotaAccount(all, allReasons, undefined, heldBytes)];
    this.#countsRequests = hasRequestLimit(own) || hasRequestLimit(all);
  }

  /** Admits a request with this number of bytes, or a WebSocket. Returns the reason if the request is refused. */
  admitRequest(principal: Principal, bytes: number): RequestPermit | Reason {
    if (!this.#countsRequests) return uncountedRequestPermit;
    const nowMs = performance.now();
    const counted = this.#accountsOf(principal);
    for (const account of counted) {
      const refusal = account.streamRefusal ?? account.requestRefusal(bytes, nowMs);
      if (refusal !== undefined) return refusal;
    }
    return new RequestPermit(counted, bytes, nowMs);
  }

  /** Returns the reason if this principal may not have another session, or another process. */
  refusalOf(use: QuotaUse): Reason | undefined {
    const nowMs = performance.now();
    for (const account of this.#accountsOf(use.principal)) {
      const refusal = account.refusalOf(sessionsOf(use), processesOf(use.server), nowMs);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Counts a session, or a process. */
  acquire(use: QuotaUse, onEnded?: () => void): SessionPermit {
    const accounts = this.#accountsOf(use.principal);
    if (accounts.length === 0 && onEnded === undefined) return uncountedSessionPermit;
    return new SessionPermit(accounts, sessionsOf(use), processesOf(use.server), onEnded);
  }

  /**
   * Admits a client that waits for a session, and returns a function that ends the wait. Returns the reason if refused.
   */
  admitWaiting(principal: Principal): Reason | (() => void) {
    const counted = this.#accountsOf(principal);
    for (const { waitingRefusal } of counted) if (waitingRefusal !== undefined) return waitingRefusal;
    for (const account of counted) account.waiting += 1;
    return () => {
      for (const account of counted) account.waiting -= 1;
    };
  }

  /** The anonymous principal has no account of its own: all anonymous users would share it and throttle each other. */
  #accountsOf(principal: Principal): readonly QuotaAccount[] {
    const ownAccount = isSameUser(principal, anonymous) ? undefined : this.#own?.accountFor(principal);
    return ownAccount === undefined ? this.#total : [ownAccount, ...this.#total];
  }
}

const sessionsOf = ({ isProcess = false }: QuotaUse): 0 | 1 => (isProcess ? 0 : 1);

/** The processes that a session of a server may have. A session of a view has those of its servers. */
const processesOf = ({ isRemote, sharesProcess = false, processes }: QuotaUse['server']): number =>
  processes ?? (isRemote || sharesProcess ? 0 : 1);
