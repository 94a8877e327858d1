import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { MemorySession, MemorySessions, Tombstone } from '../../core/store/memory/memory-sessions.ts';
import type { ValueKind } from '../../core/store/shared/shared-data.ts';
import { type Change, formatChange, parseChange } from './change.ts';
import type { Engine, Operation } from './engine.ts';

/** A change, when it was made, in milliseconds of the store's clock, and the generation of its chain. */
export interface TimedChange {
  readonly atMs: number;
  readonly generation: number;
  readonly change: Change;
}

/** A change that does not depend on earlier ones. */
type WholeChange = Extract<Change, { kind: 'session' | 'end' }>;

/** Options of `StoredChanges`. */
export interface StoredChangesOptions {
  readonly engine: Engine;
  /** The sessions, and the marks of ended ones, as the tables have them now. */
  readonly sessions: Pick<MemorySessions, 'get' | 'tombstone'>;
  now(): number;
}

/** What is stored of one session: its newest whole change in slot 0, and the changes that follow it in the next slots. */
interface Chain {
  readonly digest: string;
  /** How often a whole change was stored. Changes of an earlier generation in later slots are obsolete. */
  generation: number;
  /** The slot of the next change, and the first one that was never used. */
  next: number;
  unused: number;
  /** The bytes of the whole change, and of those that follow it. */
  wholeBytes: number;
  laterBytes: number;
  /** What the tables had when this was stored: the session, or the mark of its end. */
  session: Readonly<MemorySession> | undefined;
  tombstone: Tombstone | undefined;
}

/** Below this size, the changes that follow a whole one are not worth another one. */
const minLaterBytes = 256 * 1024;

/** The changes that follow a whole one may be so many times as large. */
const growth = 3;

/** What the keys begin with. The changes of a session come before the time until which it is kept. */
export const changePrefix = 'c/';
export const expiryPrefix = 'e/';
export const valuePrefix = 'v/';

/**
 * Knows what is stored under which key. The changes of a session have slots. Slot 0 has the whole session, or the mark of
 * its end. When the changes that follow are larger, the session is stored whole again, and its slots are used again. So
 * the files are bounded by what is valid, and need no clean-up of their own (P8).
 */
export class StoredChanges {
  readonly #options: StoredChangesOptions;
  readonly #chains = new Map<string, Chain>();

  constructor(options: StoredChangesOptions) {
    this.#options = options;
  }

  /** The keys of the sessions, and of the marks of ended ones. */
  get keys(): Iterable<string> {
    return this.#chains.keys();
  }

  /**
   * Stores what the tables have changed of a session: the members of its record that are not the same any more, or the
   * whole session or its end, if that is new. Nothing is stored if nothing has changed.
   */
  addChanges(key: string): void {
    const { sessions } = this.#options;
    const session = sessions.get(key);
    const chain = this.#chains.get(key);
    if (session === undefined) {
      if (sessions.tombstone(key) !== chain?.tombstone) this.addWhole(key);
      return;
    }
    const before = chain?.session;
    if (before === undefined || before.log !== session.log) return this.addWhole(key);
    const { record, takeovers, term } = session;
    if (record === before.record && takeovers === before.takeovers && term === before.term) return;
    const known = new Map<string, unknown>(Object.entries(before.record));
    const changed = Object.entries(record).filter(([name, value]) => value !== known.get(name));
    this.add({ kind: 'record', key, record: Object.fromEntries(changed), takeovers, term });
    this.noteTables(key);
  }

  /** What is stored of a session is what the tables have. */
  noteTables(key: string): void {
    const { sessions } = this.#options;
    const chain = this.#chains.get(key);
    const session = sessions.get(key);
    if (chain !== undefined)
      Object.assign(chain, { session: session && { ...session }, tombstone: sessions.tombstone(key) });
  }

  /** Stores a session whole, or the mark of its end, as the tables have it now. */
  addWhole(key: string): void {
    const whole = this.#wholeOf(key);
    if (whole !== undefined) this.#putWhole(whole);
  }

  /** Stores a change that the tables already have, and that is not whole. */
  add(change: Exclude<Change, WholeChange>): void {
    const { engine, now } = this.#options;
    if (change.kind === 'value') {
      const { of, name } = change;
      const key = valueKey(of, name);
      return engine.write([{ type: 'put', key, value: encodeChange(key, { atMs: now(), generation: 0, change }) }]);
    }
    const chain = this.#chains.get(change.key);
    const whole = chain === undefined || isTooLong(chain) ? this.#wholeOf(change.key) : undefined;
    if (whole !== undefined) return this.#putWhole(whole);
    if (chain === undefined) return; // the session has ended meanwhile
    const key = changeKey(chain.digest, chain.next);
    const value = encodeChange(key, { atMs: now(), generation: chain.generation, change });
    engine.write([{ type: 'put', key, value }]);
    chain.next += 1;
    chain.unused = Math.max(chain.unused, chain.next);
    chain.laterBytes += value.length;
  }

  /** Stores how long a session is kept. */
  addExpiry(key: string): void {
    const chain = this.#chains.get(key);
    const expiresAtMs = this.#options.sessions.get(key)?.expiresAtMs ?? Number.POSITIVE_INFINITY;
    if (chain === undefined || !Number.isFinite(expiresAtMs)) return;
    const value = Buffer.allocUnsafe(8);
    value.writeDoubleLE(expiresAtMs);
    this.#options.engine.write([{ type: 'put', key: `${expiryPrefix}${chain.digest}`, value }]);
  }

  /**
   * Stores a session whole, if it has changed since it was stored whole, and removes what is obsolete.
   * @param isForced stores it also if it has not changed
   */
  renewWhole(key: string, isForced = false): void {
    const chain = this.#chains.get(key);
    if (chain === undefined || (!isForced && chain.unused === 1)) return;
    const whole = this.#wholeOf(key);
    if (whole === undefined) return;
    const obsolete = removalOf(chain).slice(1); // slot 0 gets the whole change
    this.#putWhole(whole);
    this.#options.engine.write(obsolete);
    chain.unused = 1;
  }

  /** Removes all that is stored of a session, or the mark of its end. */
  remove(key: string): void {
    const chain = this.#chains.get(key);
    if (chain === undefined) return;
    this.#chains.delete(key);
    this.#options.engine.write([...removalOf(chain), { type: 'del', key: `${expiryPrefix}${chain.digest}` }]);
  }

  /**
   * Notes a change that is stored already. Changes come in the order of their slots.
   * @returns false if it is obsolete
   */
  noteStored(digest: string, slot: number, { generation, change }: TimedChange, bytes: number): boolean {
    const { key } = change as WholeChange;
    const chain = this.#chainOf(key, digest, generation);
    chain.unused = slot + 1;
    if (slot > 0 && generation !== chain.generation) return false;
    chain.next = slot + 1;
    if (slot === 0) chain.wholeBytes = bytes;
    else chain.laterBytes += bytes;
    return true;
  }

  /** @param generation that of a session of which nothing is known yet */
  #chainOf(key: string, digest: string, generation: number): Chain {
    const made = {
      generation,
      next: 1,
      unused: 1,
      wholeBytes: 0,
      laterBytes: 0,
      session: undefined,
      tombstone: undefined,
    };
    const chain = this.#chains.get(key) ?? { digest, ...made };
    this.#chains.set(key, chain);
    return chain;
  }

  #wholeOf(key: string): WholeChange | undefined {
    const { sessions } = this.#options;
    const [session, tombstone] = [sessions.get(key), sessions.tombstone(key)];
    if (session !== undefined) return { kind: 'session', key, session: { ...session, log: session.log.contents() } };
    return tombstone && { kind: 'end', key, tombstone };
  }

  #putWhole(change: WholeChange): void {
    const { engine, now } = this.#options;
    const { key } = change;
    const chain = this.#chainOf(key, digestOf(key), 0);
    chain.generation += 1;
    const place = changeKey(chain.digest, 0);
    const value = encodeChange(place, { atMs: now(), generation: chain.generation, change });
    engine.write([{ type: 'put', key: place, value }]);
    Object.assign(chain, { next: 1, wholeBytes: value.length, laterBytes: 0 });
    this.noteTables(key);
    // What an ended session has said is of no use to anybody.
    if (change.kind !== 'end' || chain.unused === 1) return;
    engine.write(removalOf(chain).slice(1));
    chain.unused = 1;
  }
}

const isTooLong = ({ wholeBytes, laterBytes }: Chain): boolean =>
  laterBytes > Math.max(minLaterBytes, wholeBytes * growth);

const removalOf = ({ digest, unused }: Chain): Operation[] =>
  Array.from({ length: unused }, (_, slot) => ({ type: 'del', key: changeKey(digest, slot) }));

/** Names come from callers, so their characters and their length must not matter. */
const digestOf = (name: string): string => hash('sha256', name, 'base64url');

const slotDigits = 11;
const changeKey = (digest: string, slot: number): string =>
  `${changePrefix}${digest}/${slot.toString(36).padStart(slotDigits, '0')}`;

/** The parts of a key of a change. */
export function parseChangeKey(key: string): { readonly digest: string; readonly slot: number } {
  const [digest = '', slot = ''] = key.slice(changePrefix.length).split('/');
  return { digest, slot: Number.parseInt(slot, 36) };
}

/** The key of a value. */
export const valueKey = (kind: ValueKind, name: string): string => `${valuePrefix}${kind}/${digestOf(name)}`;

/** A checksum, since the engine itself reads its files without one; a time, and the generation. */
const headBytes = 4 + 8 + 4;

/** The key is a part: a damaged one would name another slot, and all slots before it would count as used. */
const checksumOf = (key: string, encoded: Buffer): number => crc32(encoded.subarray(4), crc32(key));

function encodeChange(key: string, { atMs, generation, change }: TimedChange): Buffer {
  const encoded = Buffer.concat([Buffer.allocUnsafe(headBytes), ...formatChange(change)]);
  encoded.writeDoubleLE(atMs, 4);
  encoded.writeUInt32LE(generation, 12);
  encoded.writeUInt32LE(checksumOf(key, encoded));
  return encoded;
}

/** Decodes a change that is stored under a key; undefined if one of the two is damaged. */
export function decodeChange(key: string, encoded: Buffer): TimedChange | undefined {
  if (encoded.length < headBytes || encoded.readUInt32LE() !== checksumOf(key, encoded)) return undefined;
  const change = parseChange(encoded.subarray(headBytes));
  return { atMs: encoded.readDoubleLE(4), generation: encoded.readUInt32LE(12), change };
}
