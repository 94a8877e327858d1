import { foldKey } from './fold-key.ts';
import type { KnownKeys } from './known-keys.ts';

/** The members of one object: `keys[i]` has its value at bytes `starts[i]` to `ends[i]`. */
export interface Members {
  readonly keys: string[];
  readonly starts: number[];
  readonly ends: number[];
}

/** Where a member stands in `members`, or -1 if the object has no such key. */
export const memberIndex = (members: Members | undefined, key: string): number => members?.keys.indexOf(key) ?? -1;

/** Above this many keys in one object, duplicates are found by a Set: comparing all pairs would be quadratic. */
const fewKeys = 12;

/** Memory for so many members is used again; what one large object needed beyond that is given back. */
const maxReusedMembers = 64;

/** The members of one object, in memory that is used again for the next one: small messages come by the hundred thousand. */
export class FoundMembers {
  #count = 0;
  #keys: string[] = [];
  #starts: number[] = [];
  #ends: number[] = [];
  #seen: Set<string> | undefined;
  /** At each place the key of the object that had one there last, if it stood in the text as it is: most messages are alike. */
  #guesses: (string | undefined)[] = [];
  /** At each place the known keys among which its guess was found: the same key there need not be looked up again. */
  #knownAmong: (KnownKeys | undefined)[] = [];
  /** At each place its guess, folded: the same for a key that is not known. */
  #foldedAt: (string | undefined)[] = [];
  /** The keys that are not known, folded, where they are judged. */
  #folded: string[] = [];
  #seenFolded: Set<string> | undefined;

  /** What the next key may well be: the one that another object had at this place. */
  get guess(): string | undefined {
    return this.#guesses[this.#count];
  }

  /** Forgets all members. */
  clear(): void {
    if (this.#count > maxReusedMembers) {
      this.#keys = [];
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
  }

  /**
   * Begins a member; false if there is one with this key.
   * @param isPlain the key stands in the text as it is: in ASCII, without escapes
   * @param known if given, also false for a key that differs from one of these, or from another one, in case alone
   */
  begin(key: string, isPlain: boolean, known?: KnownKeys): boolean {
    const count = this.#count;
    if (this.#guesses[count] !== key) {
      this.#knownAmong[count] = undefined;
      this.#foldedAt[count] = undefined;
    }
    if (known !== undefined && this.#knownAmong[count] !== known) {
      if (known.exact.has(key)) this.#knownAmong[count] = known;
      else if (!this.#isNewFolded(key, known)) return false;
    }
    if (count === fewKeys) this.#seen = new Set(this.#keys.slice(0, count));
    if (this.#seen?.has(key) ?? this.indexOf(key) >= 0) return false;
    this.#seen?.add(key);
    this.#keys[count] = key;
    this.#guesses[count] = isPlain ? key : undefined;
    this.#count = count + 1;
    return true;
  }

  #isNewFolded(key: string, known: KnownKeys): boolean {
    this.#foldedAt[this.#count] ??= foldKey(key);
    const folded = this.#foldedAt[this.#count] as string;
    if (this.#folded.length === fewKeys) this.#seenFolded = new Set(this.#folded);
    if (known.folded.has(folded) || (this.#seenFolded?.has(folded) ?? this.#folded.includes(folded))) return false;
    this.#folded.push(folded);
    this.#seenFolded?.add(folded);
    return true;
  }

  /** Where the member that was begun last has its value. */
  finish(start: number, end: number): void {
    this.#starts[this.#count - 1] = start;
    this.#ends[this.#count - 1] = end;
  }

  /** Where a member stands, or -1 if the object has no such key. */
  indexOf(key: string): number {
    const keys = this.#keys;
    for (let index = 0; index < this.#count; index += 1) if (keys[index] === key) return index;
    return -1;
  }

  /** The first byte of the value of a member that there is, and the one behind it. */
  startOf(index: number): number {
    return this.#starts[index] as number;
  }

  endOf(index: number): number {
    return this.#ends[index] as number;
  }

  copy(): Members {
    const count = this.#count;
    return {
      keys: this.#keys.slice(0, count),
      starts: this.#starts.slice(0, count),
      ends: this.#ends.slice(0, count),
    };
  }
}

/** True if an object has such a member. */
export const hasMember = (members: FoundMembers | undefined, key: string): boolean =>
  members !== undefined && members.indexOf(key) >= 0;
