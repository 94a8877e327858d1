// src/core/quota: limits on the resources that each principal, and all principals together, use at once and over time.
import type { Reason } from '../protocol/faults.ts';
import { anonymous, isSameUser, type Principal } from '../protocol/principal.ts';
import type { Server } from '../server/server.ts';
import type { Rates } from '../store/shared/shared-data.ts';
import { type AccountLimits, type AccountReasons, QuotaAccount } from './account.ts';
import { QuotaAccounts } from './accounts.ts';
import type { RequestRate } from './rate.ts';
import { CountedRequestPermit, type RequestPermit, uncountedRequestPermit } from './request-permit.ts';
import { createSessionPermit, type SessionPermit, uncountedSessionPermit } from './session-permit.ts';
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

/** The server and the principal of a session. */
export interface SessionUse {
  readonly server: Pick<Server, 'isRemote' | 'sharesProcess' | 'processes'>;
  readonly principal: Principal;
}

/** The server and the principal of a process that belongs to no session. */
export interface ProcessUse {
  readonly server: Pick<Server, 'isRemote'>;
  readonly principal: Principal;
}

/**
 * The limits of each principal and of all principals together (docs/decisions/0146). A permit is acquired at admission,
 * before any part of a request reaches a server, and released on every way out. Admitted work is never refused later: a
 * session that is restored or taken over is counted but not checked.
 */
export interface Quotas {
  /** Admits a request with this number of bytes, or a WebSocket. Returns the reason if the request is refused. */
  admitRequest(principal: Principal, bytes: number): RequestPermit | Reason;
  /** Returns the reason if this principal may not open another session. */
  sessionRefusal(use: SessionUse): Reason | undefined;
  /** Counts a session. */
  acquireSession(use: SessionUse): SessionPermit;
  /**
   * Admits a client that waits for a session, and returns a function that ends the wait. Returns the reason if refused.
   */
  admitWaiting(principal: Principal): Reason | (() => void);
  /** Returns the reason if this principal may not have another process beside the principal's sessions. */
  processRefusal(use: ProcessUse): Reason | undefined;
  /** Counts such a process. */
  acquireProcess(use: ProcessUse): SessionPermit;
}

/** Quotas without any limit. */
export const noQuotas: Quotas = {
  admitRequest: () => uncountedRequestPermit,
  sessionRefusal: () => undefined,
  acquireSession: () => uncountedSessionPermit,
  admitWaiting: () => () => undefined,
  processRefusal: () => undefined,
  acquireProcess: () => uncountedSessionPermit,
};

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

/** Makes quotas with these limits. Without any limit nothing is counted. */
export function createQuotas({ own, all, heldBytes, rates, onFailed }: QuotasOptions): Quotas {
  if (!hasLimit(own) && !hasLimit(all)) return noQuotas;
  const shared = new SharedRate(rates, onFailed);
  const accounts = new QuotaAccounts((key) => {
    const onRequests = own.requests && ((rate: RequestRate) => shared.note(`requests ${key}`, rate));
    return new QuotaAccount(own, ownReasons, onRequests);
  });
  const totalAccount = new QuotaAccount(all, allReasons, undefined, heldBytes);
  const onlyTotal = [totalAccount];

  /** The anonymous principal has no account of its own: all anonymous users would share it and throttle each other. */
  const accountsFor = (principal: Principal): readonly QuotaAccount[] =>
    isSameUser(principal, anonymous) ? onlyTotal : [accounts.accountFor(principal), totalAccount];

  const mustCountRequests = hasRequestLimit(own) || hasRequestLimit(all);

  return {
    admitRequest(principal, bytes) {
      if (!mustCountRequests) return uncountedRequestPermit;
      const nowMs = performance.now();
      const counted = accountsFor(principal);
      for (const account of counted) {
        const refusal = account.streamRefusal ?? account.requestRefusal(bytes, nowMs);
        if (refusal !== undefined) return refusal;
      }
      return new CountedRequestPermit(counted, bytes, nowMs);
    },

    sessionRefusal({ server, principal }) {
      const nowMs = performance.now();
      for (const account of accountsFor(principal)) {
        const refusal = account.sessionRefusal(processesOf(server), nowMs);
        if (refusal !== undefined) return refusal;
      }
      return undefined;
    },

    acquireSession: ({ server, principal }) =>
      createSessionPermit(accountsFor(principal), { sessions: 1, processes: processesOf(server) }),

    processRefusal({ server, principal }) {
      if (server.isRemote) return undefined;
      const nowMs = performance.now();
      for (const account of accountsFor(principal)) {
        const refusal = account.processRefusal(nowMs);
        if (refusal !== undefined) return refusal;
      }
      return undefined;
    },

    acquireProcess: ({ server, principal }) =>
      createSessionPermit(accountsFor(principal), { sessions: 0, processes: server.isRemote ? 0 : 1 }),

    admitWaiting(principal) {
      const counted = accountsFor(principal);
      for (const { waitingRefusal } of counted) if (waitingRefusal !== undefined) return waitingRefusal;
      for (const account of counted) account.waiting += 1;
      return () => {
        for (const account of counted) account.waiting -= 1;
      };
    },
  };
}

/** The processes that a session of a server may have. A session of a view has those of its servers. */
const processesOf = ({ isRemote, sharesProcess = false, processes }: SessionUse['server']): number =>
  processes ?? (isRemote || sharesProcess ? 0 : 1);
