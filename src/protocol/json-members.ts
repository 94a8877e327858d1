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
    }
    this.#count = 0;
    this.#seen = undefined;
  }

  /**
   * Begins a member; false if there is one with this key.
   * @param isPlain the key stands in the text as it is: in ASCII, without escapes
   */
  begin(key: string, isPlain: boolean): boolean {
    const count = this.#count;
    if (count === fewKeys) this.#seen = new Set(this.#keys.slice(0, count));
    if (this.#seen?.has(key) ?? this.indexOf(key) >= 0) return false;
    this.#seen?.add(key);
    this.#keys[count] = key;
    this.#guesses[count] = isPlain ? key : undefined;
    this.#count = count + 1;
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
