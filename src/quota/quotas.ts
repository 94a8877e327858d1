import type { Reason } from '../protocol/faults.ts';
import type { Principal } from '../protocol/principal.ts';
import { anonymous, isSameUser } from '../protocol/principal.ts';
import type { Server } from '../server/server.ts';
import type { Rates } from '../store/shared/rates.ts';
import { Account, type AccountLimits, type AccountReasons } from './account.ts';
import { Accounts } from './accounts.ts';
import type { Rate } from './rate.ts';
import { CountedVisit, uncounted, type Visit } from './request-permit.ts';
import { createSeat, type Seat, uncountedSeat } from './session-permit.ts';
import { SharedUse } from './shared-rate.ts';

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
export interface SessionOf {
  readonly server: Pick<Server, 'isRemote' | 'sharesProcess'>;
  readonly principal: Principal;
}

/** What a process is started for that is of no session. */
export interface ProcessOf {
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
  enter(principal: Principal, bytes: number): Visit | Reason;
  /** Why this principal may open no session more. */
  refusesSession(of: SessionOf): Reason | undefined;
  /** Counts a session. */
  take(of: SessionOf): Seat;
  /** Lets a client wait for a session that it is about to open, and returns what ends that; else says why not. */
  wait(principal: Principal): Reason | (() => void);
  /** Why this principal may have no process more beside his sessions. */
  refusesProcess(of: ProcessOf): Reason | undefined;
  /** Counts such a process. */
  takeProcess(of: ProcessOf): Seat;
}

/** No quotas at all. */
export const noQuotas: Quotas = {
  enter: () => uncounted,
  refusesSession: () => undefined,
  take: () => uncountedSeat,
  wait: () => () => undefined,
  refusesProcess: () => undefined,
  takeProcess: () => uncountedSeat,
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
  const shared = new SharedUse(rates, onFailed);
  const accounts = new Accounts((key) => {
    const onRequests = own.requests && ((rate: Rate) => shared.note(`requests ${key}`, rate));
    return new Account(own, ownReasons, onRequests);
  });
  const together = new Account(all, allReasons);
  const onlyTogether = [together];

  /** Whoever is nobody in particular has no account: else each would be throttled by what the others do. */
  const accountsOf = (principal: Principal): readonly Account[] =>
    isSameUser(principal, anonymous) ? onlyTogether : [accounts.of(principal), together];

  const countsRequests = limitsRequests(own) || limitsRequests(all);

  return {
    enter(principal, bytes) {
      if (!countsRequests) return uncounted;
      const nowMs = performance.now();
      const counted = accountsOf(principal);
      for (const account of counted) {
        const refused = account.refusesStream ?? account.refusesRequest(bytes, nowMs);
        if (refused !== undefined) return refused;
      }
      return new CountedVisit(counted, bytes, nowMs);
    },

    refusesSession({ server, principal }) {
      const nowMs = performance.now();
      for (const account of accountsOf(principal)) {
        const refused = account.refusesSession(hasProcess(server), nowMs);
        if (refused !== undefined) return refused;
      }
      return undefined;
    },

    take: ({ server, principal }) =>
      createSeat(accountsOf(principal), { sessions: 1, processes: hasProcess(server) ? 1 : 0 }),

    refusesProcess({ server, principal }) {
      if (server.isRemote) return undefined;
      const nowMs = performance.now();
      for (const account of accountsOf(principal)) {
        const refused = account.refusesProcess(nowMs);
        if (refused !== undefined) return refused;
      }
      return undefined;
    },

    takeProcess: ({ server, principal }) =>
      createSeat(accountsOf(principal), { sessions: 0, processes: server.isRemote ? 0 : 1 }),

    wait(principal) {
      const counted = accountsOf(principal);
      for (const { refusesWaiting } of counted) if (refusesWaiting !== undefined) return refusesWaiting;
      for (const account of counted) account.waiting += 1;
      return () => {
        for (const account of counted) account.waiting -= 1;
      };
    },
  };
}

const hasProcess = ({ isRemote, sharesProcess = false }: SessionOf['server']): boolean => !isRemote && !sharesProcess;
