import type { Reason } from '../protocol/faults.ts';
import type { Principal } from '../protocol/principal.ts';
import { anonymous, isSameUser } from '../protocol/principal.ts';
import type { Server } from '../server/server.ts';
import type { Rates } from '../store/shared/rates.ts';
import { type AccountLimits, type AccountReasons, QuotaAccount } from './account.ts';
import { QuotaAccounts } from './accounts.ts';
import type { RequestRate } from './rate.ts';
import { CountedRequestPermit, type RequestPermit, uncountedRequestPermit } from './request-permit.ts';
import { createSessionPermit, type SessionPermit, uncountedSessionPermit } from './session-permit.ts';
import { SharedRate } from './shared-rate.ts';

/** What is counted, and where. */
export interface QuotasOptions {
  /** Of each principal. */
  readonly own: AccountLimits;
  /** Of all together on this instance, with those who do not say who they are. */
  readonly all: AccountLimits;
  /** What all instances count together: the requests of each principal. */
  readonly rates: Rates;
  /** A fault of the gateway itself. */
  onFailed(cause: unknown): void;
}

/** What a session is asked for by. */
export interface SessionUse {
  readonly server: Pick<Server, 'isRemote' | 'sharesProcess'>;
  readonly principal: Principal;
}

/** What a process is started for that is of no session. */
export interface ProcessUse {
  readonly server: Pick<Server, 'isRemote'>;
  readonly principal: Principal;
}

/**
 * What each principal may have in use, and all together (docs/decisions/0036). It is asked for at the door, where nothing of
 * a request has reached a server yet, and given back on every way out. What is let in is not refused later: a session that is
 * restored or taken over only counts.
 */
export interface Quotas {
  /** Lets in a request with so many bytes, or a WebSocket; else says why not. */
  admitRequest(principal: Principal, bytes: number): RequestPermit | Reason;
  /** Why this principal may open no session more. */
  sessionRefusal(of: SessionUse): Reason | undefined;
  /** Counts a session. */
  acquireSession(of: SessionUse): SessionPermit;
  /** Lets a client wait for a session that it is about to open, and returns what ends that; else says why not. */
  admitWaiting(principal: Principal): Reason | (() => void);
  /** Why this principal may have no process more beside his sessions. */
  processRefusal(of: ProcessUse): Reason | undefined;
  /** Counts such a process. */
  acquireProcess(of: ProcessUse): SessionPermit;
}

/** No quotas at all. */
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

/** Of sessions, with their processes, and of connections, with what is open on them, others keep the number. */
const allReasons: AccountReasons = {
  sessions: 'too_many_sessions',
  processes: 'too_many_sessions',
  streams: 'gateway_busy',
  bytes: 'gateway_busy',
  requests: 'gateway_busy',
  starts: 'too_many_starts',
};

const isAnything = (limits: AccountLimits): boolean => Object.values(limits).some((limit) => limit !== undefined);

/** True if each request has to be counted; a limit of sessions costs requests nothing. */
const limitsRequests = ({ streams, bytes, requests }: AccountLimits): boolean =>
  isAnything({ streams, bytes, requests });

/** Quotas with these limits; none at all where there are none. */
export function createQuotas({ own, all, rates, onFailed }: QuotasOptions): Quotas {
  if (!isAnything(own) && !isAnything(all)) return noQuotas;
  const shared = new SharedRate(rates, onFailed);
  const accounts = new QuotaAccounts((key) => {
    const onRequests = own.requests && ((rate: RequestRate) => shared.note(`requests ${key}`, rate));
    return new QuotaAccount(own, ownReasons, onRequests);
  });
  const together = new QuotaAccount(all, allReasons);
  const onlyTogether = [together];

  /** Whoever is nobody in particular has no account: else each would be throttled by what the others do. */
  const accountsOf = (principal: Principal): readonly QuotaAccount[] =>
    isSameUser(principal, anonymous) ? onlyTogether : [accounts.of(principal), together];

  const countsRequests = limitsRequests(own) || limitsRequests(all);

  return {
    admitRequest(principal, bytes) {
      if (!countsRequests) return uncountedRequestPermit;
      const nowMs = performance.now();
      const counted = accountsOf(principal);
      for (const account of counted) {
        const refused = account.refusesStream ?? account.refusesRequest(bytes, nowMs);
        if (refused !== undefined) return refused;
      }
      return new CountedRequestPermit(counted, bytes, nowMs);
    },

    sessionRefusal({ server, principal }) {
      const nowMs = performance.now();
      for (const account of accountsOf(principal)) {
        const refused = account.refusesSession(hasProcess(server), nowMs);
        if (refused !== undefined) return refused;
      }
      return undefined;
    },

    acquireSession: ({ server, principal }) =>
      createSessionPermit(accountsOf(principal), { sessions: 1, processes: hasProcess(server) ? 1 : 0 }),

    processRefusal({ server, principal }) {
      if (server.isRemote) return undefined;
      const nowMs = performance.now();
      for (const account of accountsOf(principal)) {
        const refused = account.refusesProcess(nowMs);
        if (refused !== undefined) return refused;
      }
      return undefined;
    },

    acquireProcess: ({ server, principal }) =>
      createSessionPermit(accountsOf(principal), { sessions: 0, processes: server.isRemote ? 0 : 1 }),

    admitWaiting(principal) {
      const counted = accountsOf(principal);
      for (const { refusesWaiting } of counted) if (refusesWaiting !== undefined) return refusesWaiting;
      for (const account of counted) account.waiting += 1;
      return () => {
        for (const account of counted) account.waiting -= 1;
      };
    },
  };
}

const hasProcess = ({ isRemote, sharesProcess = false }: SessionUse['server']): boolean => !isRemote && !sharesProcess;
