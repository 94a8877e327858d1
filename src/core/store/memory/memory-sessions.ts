import { BoundedMap } from '../../util/bounded-map.ts';
import { detachBytes } from '../../util/detached-bytes.ts';
import type { LogLimits } from '../event-log.ts';
import type { Immediate } from '../immediate.ts';
import { SessionExists, type SessionRecord, type SessionRecords, type TakeOver } from '../session-records.ts';
import { maxTakeovers, takeoverPauseMs, takeoverWindowMs } from '../takeover-limit.ts';
import { MemoryLog } from './memory-log.ts';

/** A stored session. */
export interface MemorySession {
  record: SessionRecord;
  readonly log: MemoryLog;
  expiresAtMs: number;
  /** The takeovers from lost owners since the session made progress, and the time of the last one. */
  takeovers: { readonly count: number; readonly lastMs: number };
  /** The term of the last registration under this epoch. */
  term?: number | undefined;
}

/** The table of sessions: `SessionRecords`, and the access that the log and the sweep need. */
export interface MemorySessions extends Immediate<SessionRecords> {
  /** Returns the session if its record has this epoch, and renews its lifetime; else returns the reason. */
  underEpoch(key: string, epoch: number): MemorySession | 'fenced' | 'no_record';
  /** Returns a session that has not expired. */
  get(key: string): MemorySession | undefined;
  values(): Iterable<MemorySession>;
  keys(): Iterable<string>;
  /** The number of keys. */
  readonly count: number;
  /** Puts a session in place of one with the same key, or of its tombstone. The caller counts the bytes of its log. */
  restore(key: string, session: MemorySession): void;
  /** The mark of a session's end; undefined if the session has not ended, or if the mark has expired. */
  tombstone(key: string): Tombstone | undefined;
  /** Removes a session and sets the mark of its end. */
  bury(key: string, tombstone: Tombstone): void;
  /** Removes expired sessions and tombstones. */
  sweep(): void;
}

/** The limits and times of the table. */
export interface MemorySessionsOptions {
  readonly limits: LogLimits;
  readonly recordTtlMs: number;
  readonly now: () => number;
  /** Called for each session that is removed. */
  readonly onRemoved: (session: MemorySession) => void;
}

/** Remembers that a session has ended. */
export interface Tombstone {
  readonly expiresAtMs: number;
  /** The epoch of the ended session; 0 if it is not known. */
  readonly epoch: number;
  /** The epoch whose takeover ended it, for the retry of that takeover. */
  readonly wornOutFrom: number | undefined;
}

/**
 * Bounds the tombstones: they are small, but a client could start and end sessions at full speed while they are kept.
 */
const maxTombstones = 100_000;

/** Makes an empty table. */
export function createMemorySessions({ limits, recordTtlMs, now, onRemoved }: MemorySessionsOptions): MemorySessions {
  const sessions = new Map<string, MemorySession>(); // in a Map, a key such as `__proto__` is an ordinary key
  const tombstones = new BoundedMap<string, Tombstone>(maxTombstones);
  const ttlMs = Math.max(recordTtlMs, limits.maxAgeMs); // a record never expires before its log

  // A tombstone stops late writes. Late writes come soon or never, so the tombstone may expire.
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

  const tombstoneFor = (key: string): Tombstone | undefined => {
    const tombstone = tombstones.get(key);
    if (tombstone !== undefined && tombstone.expiresAtMs <= now()) tombstones.delete(key);
    return tombstones.get(key);
  };

  const replaceByTombstone = (key: string, wornOutFrom?: number): void => {
    const epoch = get(key)?.record.epoch ?? tombstones.get(key)?.epoch ?? 0;
    remove(key);
    tombstones.set(key, { expiresAtMs: now() + tombstoneMs, epoch, wornOutFrom });
  };

  const add = (key: string, record: SessionRecord): MemorySession => {
    const log = new MemoryLog(record.epoch, limits);
    const session = { record: copyRecord(record), log, expiresAtMs: now() + ttlMs, takeovers: noTakeovers };
    sessions.set(key, session);
    return session;
  };

  const underEpoch = (key: string, epoch: number): MemorySession | 'fenced' | 'no_record' => {
    if (tombstoneFor(key) !== undefined) return 'fenced';
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

  const takenOver = ({ record, log }: MemorySession): TakeOver => ({ outcome: 'taken', record, log: log.state() });

  return {
    get,
    underEpoch,
    values: () => sessions.values(),
    keys: () => sessions.keys(),
    get count() {
      return sessions.size;
    },
    tombstone: tombstoneFor,
    restore(key, session) {
      remove(key);
      tombstones.delete(key);
      sessions.set(key, session);
    },
    bury(key, tombstone) {
      remove(key);
      tombstones.set(key, tombstone);
    },
    sweep() {
      for (const key of sessions.keys()) get(key);
      for (const key of tombstones.keys()) tombstoneFor(key);
    },

    create(key, record, { followsEnded = false } = {}) {
      const existing = get(key)?.record;
      if (existing?.owner === record.owner && existing.epoch === record.epoch) return;
      // Two sessions under one key would give the events of one to the other (P11).
      const ended = tombstoneFor(key);
      const mayFollow = ended === undefined || (followsEnded && ended.epoch < record.epoch);
      if (existing !== undefined || !mayFollow) throw new SessionExists();
      tombstones.delete(key);
      add(key, record);
    },

    find(key) {
      return get(key)?.record;
    },

    amend(key, epoch, { clientState, clientSaid }) {
      const changes = {
        ...(clientState && { clientState: detachBytes(clientState) }),
        ...(clientSaid && { clientSaid: detachBytes(clientSaid) }),
      };
      return change(key, epoch, changes);
    },

    register(key, record, tail, state, { term, displacesUntilMs = Number.POSITIVE_INFINITY } = { term: 0 }) {
      if (tombstoneFor(key) !== undefined) return 'ended';
      const existing = get(key);
      if (existing !== undefined && existing.record.epoch > record.epoch) return 'fenced';
      if (existing !== undefined && existing.record.epoch < record.epoch && now() >= displacesUntilMs) return 'fenced';
      if (existing?.record.epoch === record.epoch) {
        if ((existing.term ?? 0) > term) return 'outdated';
        existing.term = term;
        change(key, record.epoch, { owner: record.owner });
        return 'registered';
      }
      const session = existing ?? add(key, record);
      session.record = copyRecord(record);
      session.term = term;
      session.log.restore(record.epoch, tail, state);
      touch(session);
      return 'registered';
    },

    takeOver(key, from, owner) {
      const wornOutFrom = tombstoneFor(key)?.wornOutFrom;
      if (wornOutFrom !== undefined && wornOutFrom === from.epoch) return { outcome: 'worn_out' };
      const session = get(key);
      if (session === undefined) return { outcome: 'unknown' };
      const { record } = session;
      if (record.owner !== from.owner || record.epoch !== from.epoch) {
        const isOwnRetry = record.owner === owner && record.epoch > from.epoch;
        return isOwnRetry ? takenOver(session) : { outcome: 'moved' };
      }
      // The caller's own takeover, after which it could not read the log, is no further loss of an owner.
      if (record.owner !== '' && record.owner !== owner) {
        const sinceMs = now() - session.takeovers.lastMs;
        const count = sinceMs < takeoverWindowMs ? session.takeovers.count : 0;
        if (count >= maxTakeovers) {
          replaceByTombstone(key, from.epoch);
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
      return takenOver(session);
    },

    confirmTakeover(key, epoch) {
      const session = underEpoch(key, epoch);
      if (typeof session === 'string') return session;
      session.takeovers = noTakeovers;
      return 'done';
    },

    release(key, epoch) {
      return change(key, epoch, { owner: '' });
    },

    renew(keys) {
      for (const key of keys) {
        const session = get(key);
        if (session !== undefined) touch(session);
      }
    },

    end(key, epoch) {
      const existing = get(key);
      if (existing !== undefined && epoch !== undefined && existing.record.epoch > epoch) return;
      replaceByTombstone(key);
    },
  };
}

const noTakeovers = { count: 0, lastMs: Number.NEGATIVE_INFINITY };

/** Copies a record whose bytes may be slices of larger memory. */
export const copyRecord = (record: SessionRecord): SessionRecord => ({
  ...record,
  initialize: detachBytes(record.initialize),
  initialized: detachBytes(record.initialized),
  clientState: detachBytes(record.clientState),
  clientSaid: detachBytes(record.clientSaid),
});
