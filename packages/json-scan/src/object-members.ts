import { foldKey, isAscii } from './fold-key.ts';
import type { KnownKeys } from './known-keys.ts';

/** The members of one object: the value of `keys[i]` lies at bytes `starts[i]` to `ends[i]`. */
export interface Members {
  readonly keys: readonly string[];
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** The members of one object, some without their keys: what `scanShortKeys` returns. */
export interface MembersWithShortKeys extends Omit<Members, 'keys'> {
  /** Undefined for a key that was too long to be decoded. */
  readonly keys: readonly (string | undefined)[];
}

/** The index of a member in `members`, or -1 if the object has no such key. */
export const memberIndex = (members: Members | undefined, key: string): number => members?.keys.indexOf(key) ?? -1;

/** From this many keys on, duplicates are found by a Set: comparing all pairs would be quadratic. */
const fewKeys = 12;

/** Memory for this many members is reused. The rest of what a large object needed is freed. */
const maxReusedMembers = 64;

/**
 * The unknown keys of an object that are compared without case, and are not ASCII, have at most this many characters
 * together (P8): each costs time, and memory until the end of the message. Messages have no such keys.
 */
const maxFoldedLength = 16 * 1024;
/** What a key costs besides its characters. */
const foldedLengthOfKey = 16;

/**
 * The members of one object, in memory that is reused for the next one: small messages come by the hundred thousand.
 */
export class FoundMembers {
  #count = 0;
  #keys: string[] = [];
  /** The keys of the newest copy. */
  #copiedKeys: readonly string[] = [];
  #starts: number[] = [];
  #ends: number[] = [];
  #seen: Set<string> | undefined;
  /**
   * At each index, the key of the last object that had one there, if its text had no escapes: most messages are alike.
   * What the next two lists say at an index is always about this key: `#remember` writes all three together.
   */
  #guesses: (string | undefined)[] = [];
  /** At each index, the known keys that contain the guess: the same key there need not be looked up again. */
  #knownAmong: (KnownKeys | undefined)[] = [];
  /** At each index, the folded guess: an unknown key there need not be folded again. */
  #foldedAt: (string | undefined)[] = [];
  /** The unknown keys, folded, where they are checked. */
  #folded: string[] = [];
  #seenFolded: Set<string> | undefined;
  #foldedLength = 0;

  /** A guess at the next key: the one that another object had at this index. */
  get guess(): string | undefined {
    return this.#guesses[this.#count];
  }

  clear(): void {
    if (this.#count > maxReusedMembers) {
      this.#keys = [];
      this.#copiedKeys = [];
      this.#starts = [];
      this.#ends = [];
      this.#guesses = [];
      this.#knownAmong = [];
      this.#foldedAt = [];
    }
    this.#count = 0;
    this.#seen = undefined;
    if (this.#folded.length > 0) this.#folded = [];
    this.#seenFolded = undefined;
    this.#foldedLength = 0;
  }

  /** True if `begin` returned false because the keys that it has to compare without case are too long together. */
  get isTooLong(): boolean {
    return this.#foldedLength > maxFoldedLength;
  }

  /**
   * Begins a member; false if the object already has this key.
   * @param isPlain the key stands in the text in ASCII and without escapes
   * @param known if given, also false for a key that differs only in case from a known key or from another key, and if
   *   `isTooLong`
   */
  begin(key: string, isPlain: boolean, known?: KnownKeys): boolean {
    const count = this.#count;
    if (this.#guesses[count] !== key) this.#remember(count, isPlain ? key : undefined);
    if (known !== undefined && this.#knownAmong[count] !== known) {
      if (known.exact.has(key)) this.#knownAmong[count] = known;
      else if (!this.#isNewFolded(key, known)) return false;
    }
    if (count === fewKeys) this.#seen = new Set(this.#keys.slice(0, count));
    if (this.#seen?.has(key) ?? this.indexOf(key) >= 0) return false;
    this.#seen?.add(key);
    this.#keys[count] = key;
    this.#count = count + 1;
    return true;
  }

  /** Forgets all about the key that was guessed at this index, before anything about another one is known or refused. */
  #remember(index: number, guess: string | undefined): void {
    this.#guesses[index] = guess;
    this.#knownAmong[index] = undefined;
    this.#foldedAt[index] = undefined;
  }

  #isNewFolded(key: string, known: KnownKeys): boolean {
    if (!isAscii(key)) this.#foldedLength += key.length + foldedLengthOfKey;
    if (this.isTooLong) return false;
    this.#foldedAt[this.#count] ??= foldKey(key);
    const folded = this.#foldedAt[this.#count] as string;
    if (this.#folded.length === fewKeys) this.#seenFolded = new Set(this.#folded);
    if (known.folded.has(folded) || (this.#seenFolded?.has(folded) ?? this.#folded.includes(folded))) return false;
    this.#folded.push(folded);
    this.#seenFolded?.add(folded);
    return true;
  }

  /** Sets the range of the value of the member that was begun last. */
  finish(start: number, end: number): void {
    this.#starts[this.#count - 1] = start;
    this.#ends[this.#count - 1] = end;
  }

  /** The index of a member, or -1 if the object has no such key. */
  indexOf(key: string): number {
    const keys = this.#keys;
    for (let index = 0; index < this.#count; index += 1) if (keys[index] === key) return index;
    return -1;
  }

  /** The first byte of the value of an existing member; `endOf` returns the byte behind the value. */
  startOf(index: number): number {
    return this.#starts[index] as number;
  }

  endOf(index: number): number {
    return this.#ends[index] as number;
  }

  copy(): Members {
    const count = this.#count;
    return { keys: this.#copyKeys(), starts: this.#starts.slice(0, count), ends: this.#ends.slice(0, count) };
  }

  /** Objects in a row mostly have the same keys. They share one list. */
  #copyKeys(): readonly string[] {
    const count = this.#count;
    const isShared = count === this.#copiedKeys.length && this.#copiedKeys.every((key, at) => key === this.#keys[at]);
    if (!isShared) this.#copiedKeys = this.#keys.slice(0, count);
    return this.#copiedKeys;
  }
}

export const hasMember = (members: FoundMembers | undefined, key: string): boolean =>
  members !== undefined && members.indexOf(key) >= 0;
