import { detachBytes } from '../../util/detached-bytes.ts';
import type { LogLimits } from '../event-log.ts';
import { SessionExists, type SessionRecord, type SessionRecords, type TakeOver } from '../session-records.ts';
import { maxTakeovers, takeoverPauseMs, takeoverWindowMs } from '../takeover-limit.ts';
import { MemoryLog } from './memory-log.ts';

/** A session as it is kept. */
export interface MemorySession {
  record: SessionRecord;
  readonly log: MemoryLog;
  expiresAtMs: number;
  /** How often it was taken over from lost owners since it made progress, and when for the last time. */
  takeovers: { readonly count: number; readonly lastMs: number };
  /** Of its last registration under this epoch. */
  term?: number;
}

/** The table of sessions: `SessionRecords`, and what the log and the sweep need of it. */
export interface MemorySessions extends SessionRecords {
  /** The session, if its record is under this epoch, and its time begins anew; else why not. */
  underEpoch(key: string, epoch: number): MemorySession | 'fenced' | 'no_record';
  /** A session that lives. */
  get(key: string): MemorySession | undefined;
  values(): Iterable<MemorySession>;
  /** Removes what is over its time. */
  sweep(): void;
  clear(): void;
}

/** What the table needs to know. */
export interface MemorySessionsOptions {
  readonly limits: LogLimits;
  readonly recordTtlMs: number;
  readonly now: () => number;
  /** Called for each session that goes. */
  readonly onRemoved: (session: MemorySession) => void;
}

/** A tombstone: that a session has ended. */
interface Ended {
  readonly expiresAtMs: number;
  /** Of the session that ended; 0 if it is not known. */
  readonly epoch: number;
  /** The epoch whose takeover ended it, for the retry of that takeover. */
  readonly wornOutFrom: number | undefined;
}

/** Tombstones are small, but one client could start and end sessions at full speed for the time that they are kept. */
const maxTombstones = 100_000;

/** Makes an empty table. */
export function createMemorySessions({ limits, recordTtlMs, now, onRemoved }: MemorySessionsOptions): MemorySessions {
  const sessions = new Map<string, MemorySession>(); // a Map: keys such as `__proto__` are only keys
  const buried = new Map<string, Ended>();
  const ttlMs = Math.max(recordTtlMs, limits.maxAgeMs); // a record never expires before its log

  // A tombstone stops writes that come late, which come soon or never.
  const tombstoneMs = Number.isFinite(ttlMs) ? ttlMs : limits.maxAgeMs;

  const touch = (session: MemorySession): void => {
    session.expiresAtMs = now() + ttlMs;
  };

  const remove = (key: string): void => {
    const session = sessions.get(key);
    if (session === undefined) return;
    sessions.delete(key);
    onRemoved(session);
  };

  const get = (key: string): MemorySession | undefined => {
    const session = sessions.get(key);
    if (session !== undefined && session.expiresAtMs <= now()) remove(key);
    return sessions.get(key);
  };

  const tombstoneOf = (key: string): Ended | undefined => {
    const tombstone = buried.get(key);
    if (tombstone !== undefined && tombstone.expiresAtMs <= now()) buried.delete(key);
    return buried.get(key);
  };

  const bury = (key: string, wornOutFrom?: number): void => {
    const epoch = get(key)?.record.epoch ?? buried.get(key)?.epoch ?? 0;
    remove(key);
    buried.delete(key); // so that it stands at the end: the oldest are first
    buried.set(key, { expiresAtMs: now() + tombstoneMs, epoch, wornOutFrom });
    for (const oldest of buried.keys()) {
      if (buried.size <= maxTombstones) break;
      buried.delete(oldest);
    }
  };

  const add = (key: string, record: SessionRecord): MemorySession => {
    const log = new MemoryLog(record.epoch, limits);
    const session = { record: ownRecord(record), log, expiresAtMs: now() + ttlMs, takeovers: noTakeovers };
    sessions.set(key, session);
    return session;
  };

  const underEpoch = (key: string, epoch: number): MemorySession | 'fenced' | 'no_record' => {
    if (tombstoneOf(key) !== undefined) return 'fenced';
    const session = get(key);
    if (session === undefined || session.record.epoch < epoch) return 'no_record';
    if (session.record.epoch > epoch) return 'fenced';
    touch(session);
    return session;
  };

  const change = (key: string, epoch: number, changes: Partial<SessionRecord>): 'done' | 'fenced' | 'no_record' => {
    const session = underEpoch(key, epoch);
    if (typeof session === 'string') return session;
    session.record = { ...session.record, ...changes };
    return 'done';
  };

  const taken = ({ record, log }: MemorySession): TakeOver => ({ outcome: 'taken', record, log: log.state() });

  return {
    get,
    underEpoch,
    values: () => sessions.values(),
    clear() {
      sessions.clear();
      buried.clear();
    },
    sweep() {
      for (const key of sessions.keys()) get(key);
      for (const key of buried.keys()) tombstoneOf(key);
    },

    async create(key, record, { followsEnded = false } = {}) {
      const there = get(key)?.record;
      if (there?.owner === record.owner && there.epoch === record.epoch) return;
      // Going on would give the events of one session to another (P11).
      const ended = tombstoneOf(key);
      const mayFollow = ended === undefined || (followsEnded && ended.epoch < record.epoch);
      if (there !== undefined || !mayFollow) throw new SessionExists();
      buried.delete(key);
      add(key, record);
    },

    async find(key) {
      return get(key)?.record;
    },

    async amend(key, epoch, { clientState, clientSaid }) {
      const changes = {
        ...(clientState && { clientState: detachBytes(clientState) }),
        ...(clientSaid && { clientSaid: detachBytes(clientSaid) }),
      };
      return change(key, epoch, changes);
    },

    async register(key, record, tail, state, term = 0) {
      if (tombstoneOf(key) !== undefined) return 'ended';
      const there = get(key);
      if (there !== undefined && there.record.epoch > record.epoch) return 'fenced';
      if (there?.record.epoch === record.epoch) {
        if ((there.term ?? 0) > term) return 'outdated';
        there.term = term;
        change(key, record.epoch, { owner: record.owner });
        return 'registered';
      }
      const session = there ?? add(key, record);
      session.record = ownRecord(record);
      session.term = term;
      session.log.restore(record.epoch, tail, state);
      touch(session);
      return 'registered';
    },

    async takeOver(key, from, owner) {
      const wornOutFrom = tombstoneOf(key)?.wornOutFrom;
      if (wornOutFrom !== undefined && wornOutFrom === from.epoch) return { outcome: 'worn_out' };
      const session = get(key);
      if (session === undefined) return { outcome: 'unknown' };
      const { record } = session;
      if (record.owner !== from.owner || record.epoch !== from.epoch) {
        const isOwnRetry = record.owner === owner && record.epoch > from.epoch;
        return isOwnRetry ? taken(session) : { outcome: 'moved' };
      }
      if (record.owner !== '') {
        const sinceMs = now() - session.takeovers.lastMs;
        const count = sinceMs < takeoverWindowMs ? session.takeovers.count : 0;
        if (count >= maxTakeovers) {
          bury(key, from.epoch);
          return { outcome: 'worn_out' };
        }
        const pauseMs = takeoverPauseMs(count) - sinceMs;
        if (pauseMs > 0) return { outcome: 'paused', pauseMs };
        session.takeovers = { count: count + 1, lastMs: now() };
      }
      const epoch = Math.max(record.epoch + 1, Date.now());
      session.record = { ...record, owner, epoch };
      session.term = 0;
      session.log.beginEpoch(epoch);
      touch(session);
      return taken(session);
    },

    async confirmTakeover(key, epoch) {
      const session = underEpoch(key, epoch);
      if (typeof session === 'string') return session;
      session.takeovers = noTakeovers;
      return 'done';
    },

    async release(key, epoch) {
      return change(key, epoch, { owner: '' });
    },

    async renew(keys) {
      for (const key of keys) {
        const session = get(key);
        if (session !== undefined) touch(session);
      }
    },

    async end(key, epoch) {
      const there = get(key);
      if (there !== undefined && epoch !== undefined && there.record.epoch > epoch) return;
      bury(key);
    },
  };
}

const noTakeovers = { count: 0, lastMs: Number.NEGATIVE_INFINITY };

const ownRecord = (record: SessionRecord): SessionRecord => ({
  ...record,
  initialize: detachBytes(record.initialize),
  initialized: detachBytes(record.initialized),
  clientState: detachBytes(record.clientState),
  clientSaid: detachBytes(record.clientSaid),
});
