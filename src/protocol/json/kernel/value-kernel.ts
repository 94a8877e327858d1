// src/protocol/json/kernel: skips large JSON values with WebAssembly SIMD. skip-value.c is the source of the kernel.
import { randomFillSync } from 'node:crypto';
import { foldKey } from '../fold-key.ts';
import { routedKeys } from '../known-keys.ts';
import { skipValueWasm } from './skip-value-wasm.ts';

/** The exports of skip-value.c. */
interface KernelExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly state: () => number;
  readonly brackets: () => number;
  readonly window: () => number;
  readonly skip: (at: number, length: number, isLast: number) => number;
  readonly members_state: () => number;
  readonly key: () => number;
  readonly add_mark: (list: number, bytes: number) => void;
  readonly begin_object: (level: number, list: number) => void;
  readonly add_key: (level: number, bytes: number, at: number) => number;
  readonly skip_members: (at: number, length: number, isLast: number, level: number) => number;
}

/** The part of WebAssembly that the kernel needs. Undefined with `node --jitless`. */
declare const WebAssembly:
  | {
      readonly Module: new (bytes: Uint8Array) => object;
      readonly Instance: new (compiled: object) => { readonly exports: KernelExports };
    }
  | undefined;

/** The results of `skip`, in the order of skip-value.c. */
const outcomes = ['skipped', 'paused', 'not_json', 'too_deep', 'too_many_open'] as const;
const needsMore = 1;

/** The results of `skip_members`, in the order of skip-members.h. */
const memberOutcomes = [...outcomes, 'closed', 'read_key', 'same_key', 'too_many_members', 'give_up'] as const;
const needsMoreOfKey = 10;
const needsMoreOfValue = 11;
/** The results of `add_key`. */
const additions = ['added', 'same_key', 'give_up'] as const;

/** The fields of the state of members, in the order of skip-members.h. */
const baseField = 0;
const foldsField = 1;
const roomField = 2;
const sameField = 3;
const partField = 4;
const seedsField = 5;
const memberStateFields = 9;
/** The parts of a member: its key, and what follows it. */
const keyPart = 0;
const afterPart = 1;

/** The size of the memory for one key. */
const keyBytes = 4_096;
/** The members that the table of an object holds. */
export const maxTableMembers = 8_192;

/** The fields of the kernel's state, in the order of skip-value.c. */
const atField = 0;
const modeField = 1;
const openField = 2;
const limitField = 3;
const valuesField = 4;
const escapesField = 5;
const isErrorField = 6;
const stateFields = 7;

/** The kernel's sign for a call that found no key `isError`. */
const noKey = 0xffffffff;

/** The mode in which a value begins. */
const valueMode = 0;
/** The number of brackets that the kernel has room for. */
const maxOpen = 8_192;
/** Any depth: no text has as many brackets. */
const maxLimit = 2 ** 31;

/** The bounds of a kernel; tests use small ones. */
export interface KernelBounds {
  /** With fewer bytes left, a text is scanned before the kernel would have copied it. */
  readonly minBytes: number;
  /** The size of the window: 16 bytes at least, and what skip-value.c has at most. */
  readonly windowBytes: number;
}

const defaultBounds: KernelBounds = { minBytes: 512, windowBytes: 64 * 1024 };

/** Reading a value takes the time of this many escapes. */
export const escapesPerValue = 2;

/**
 * The result of a call. After `paused`, the value can continue. After `too_many_open`, another array or object begins at
 * `at`, and the kernel has no room for its bracket.
 */
export type KernelOutcome = (typeof outcomes)[number];

/**
 * The result of `skipMembers`. `read_key`: the caller must read the member at `at`. `same_key`: the key at `at` probably
 * equals the one at `sameAt`. `give_up`: the caller must read the whole object.
 */
export type MembersOutcome = (typeof memberOutcomes)[number];

/** A routing level: 0 the message, 1 its params, 2 their _meta. */
export type RoutingLevel = 0 | 1 | 2;

/** The state of a value that was paused. */
export interface PausedValue {
  readonly at: number;
  readonly isErrorAt: number;
  readonly fields: Uint32Array;
  readonly brackets: Uint8Array;
}

/**
 * Skips values in texts that are valid UTF-8. The kernel copies a text into its memory window by window, so a text of any
 * size needs 64 KiB. One kernel serves all texts in turn: no call leaves a value unfinished, except for `pause`.
 */
export class ValueKernel {
  /** The bounds' `minBytes`. */
  readonly minBytes: number;
  /** The position behind the skipped value, or the position where it was paused. */
  at = 0;
  /** The work of the call, in escapes. */
  work = 0;
  /** The position of the last key `isError` of the value itself, as far as it was read; -1 without such a key. */
  isErrorAt = -1;
  /** How many more members the object may have, after `skipMembers`. */
  room = 0;
  readonly #exports: KernelExports;
  readonly #skip: KernelExports['skip'];
  readonly #memberFields: Uint32Array;
  readonly #key: Uint8Array;
  /** The kernel's memory may contain a key. */
  #hasKeys = false;
  readonly #fields: Uint32Array;
  readonly #brackets: Uint8Array<ArrayBuffer>;
  readonly #window: Uint8Array;
  /** The range of the text that is in the window. */
  #text: Buffer | undefined;
  #from = 0;
  #to = 0;
  /** The number of bytes of the window that may contain text. */
  #used = 0;

  /** Throws if Node.js runs without WebAssembly, or if the processor has no SIMD. */
  constructor({ minBytes, windowBytes } = defaultBounds) {
    if (typeof WebAssembly === 'undefined') throw new Error('WebAssembly is disabled');
    const compiled = new WebAssembly.Module(Buffer.from(skipValueWasm, 'base64'));
    this.#exports = new WebAssembly.Instance(compiled).exports;
    const { memory, state, brackets, window, skip, members_state: membersState, key } = this.#exports;
    this.minBytes = minBytes;
    this.#skip = skip;
    this.#memberFields = new Uint32Array(memory.buffer, membersState(), memberStateFields);
    this.#key = new Uint8Array(memory.buffer, key(), keyBytes);
    randomFillSync(this.#memberFields.subarray(seedsField)); // so that nobody can choose keys with equal hashes
    for (const [level, keys] of routedKeys.entries()) {
      for (const routed of keys) {
        this.#key.set(Buffer.from(routed));
        this.#exports.add_mark(level, routed.length);
        this.#key.set(Buffer.from(foldKey(routed)));
        this.#exports.add_mark(level + routedKeys.length, routed.length);
      }
    }
    this.#fields = new Uint32Array(memory.buffer, state(), stateFields);
    this.#brackets = new Uint8Array(memory.buffer, brackets(), maxOpen);
    this.#window = new Uint8Array(memory.buffer, window(), windowBytes);
  }

  /** The closing brackets of the arrays and objects that are open at `at`. */
  get openBrackets(): Uint8Array<ArrayBuffer> {
    return this.#brackets.slice(0, this.#fields[openField]);
  }

  /**
   * Skips one value.
   * @param limit how many arrays and objects of the value may be nested
   * @param maxWork about how many escapes, or half as many values, the call may read
   */
  skip(text: Buffer, start: number, limit: number, maxWork: number): KernelOutcome {
    const fields = this.#fields;
    fields[modeField] = valueMode;
    fields[openField] = 0;
    fields[limitField] = Math.min(limit, maxLimit);
    this.isErrorAt = -1;
    return this.#run(text, start, maxWork);
  }

  /** Skips the rest of a value that was paused in this text. */
  resume(text: Buffer, { at, fields, brackets, isErrorAt }: PausedValue, maxWork: number): KernelOutcome {
    this.isErrorAt = isErrorAt;
    this.#fields.set(fields);
    this.#brackets.set(brackets);
    return this.#run(text, at, maxWork);
  }

  /** Returns the state of the value that has just been paused. Other values may then be skipped. */
  pause(): PausedValue {
    return { at: this.at, isErrorAt: this.isErrorAt, fields: this.#fields.slice(), brackets: this.openBrackets };
  }

  /** Drops the reference to the text, and deletes its bytes from the kernel's memory (P12). */
  release(): void {
    if (this.#text === undefined) return;
    this.#text = undefined;
    this.#window.fill(0, 0, this.#used);
    this.#used = 0;
    if (this.#hasKeys) this.#key.fill(0);
    this.#hasKeys = false;
  }

  /** Begins an object of a routing level. Its keys are marked and compared by their characters, or without case. */
  beginObject(level: RoutingLevel, folds: boolean): void {
    this.#hasKeys = true;
    this.#exports.begin_object(level, folds ? level + routedKeys.length : level);
  }

  /**
   * Skips members of the object of a level that no part of the gateway looks at, from a key on. The object must not have
   * a key twice.
   * @param limit how many arrays and objects of a value may be nested
   * @param room how many members may follow
   */
  skipMembers(
    text: Buffer,
    start: number,
    { level, folds, limit, room }: { level: RoutingLevel; folds: boolean; limit: number; room: number },
  ): MembersOutcome {
    const fields = this.#fields;
    const memberFields = this.#memberFields;
    fields[limitField] = Math.min(limit, maxLimit);
    memberFields[foldsField] = folds ? 1 : 0;
    memberFields[roomField] = room;
    memberFields[partField] = keyPart;
    this.#clearWork();
    let at = start;
    for (;;) {
      this.#reach(text, at);
      const from = this.#from;
      const to = this.#to;
      memberFields[baseField] = from;
      const result = this.#exports.skip_members(at - from, to - from, to === text.length ? 1 : 0, level);
      const stoppedAt = from + (fields[atField] as number);
      let outcome = memberOutcomes[result];
      if (result === needsMoreOfValue) {
        this.#to = stoppedAt;
        const valueOutcome = this.#runOn(text, stoppedAt, Number.POSITIVE_INFINITY);
        if (valueOutcome !== 'skipped') return valueOutcome;
        memberFields[partField] = afterPart;
        at = this.at;
        continue;
      }
      if (result === needsMoreOfKey) {
        if (stoppedAt > from) {
          this.#to = stoppedAt;
          at = stoppedAt;
          continue;
        }
        outcome = 'read_key'; // The window is too small for the key.
      }
      this.at = stoppedAt;
      this.#countWork();
      this.room = memberFields[roomField] as number;
      return outcome as MembersOutcome;
    }
  }

  /** The position of the key that probably equals another one, after `same_key`. */
  get sameAt(): number {
    return this.#memberFields[sameField] as number;
  }

  /** Adds a key that the caller has read to the object of a level; folded if the case of keys does not count. */
  addKey(level: RoutingLevel, key: string, at: number): (typeof additions)[number] {
    const bytes = Buffer.from(key);
    const isWellFormed = bytes.toString() === key; // UTF-8 has no unpaired surrogates
    if (!isWellFormed || bytes.length > keyBytes) return 'give_up';
    this.#key.set(bytes);
    const added = this.#exports.add_key(level, bytes.length, at);
    return additions[added] as (typeof additions)[number];
  }

  #clearWork(): void {
    this.#fields[valuesField] = 0;
    this.#fields[escapesField] = 0;
  }

  #countWork(): void {
    this.work = escapesPerValue * (this.#fields[valuesField] as number) + (this.#fields[escapesField] as number);
  }

  /** Loads the window if the position is not in it. */
  #reach(text: Buffer, at: number): void {
    if (text !== this.#text || at < this.#from || at >= this.#to) this.#load(text, at);
  }

  #run(text: Buffer, start: number, maxWork: number): KernelOutcome {
    this.#clearWork();
    return this.#runOn(text, start, maxWork);
  }

  #runOn(text: Buffer, start: number, maxWork: number): KernelOutcome {
    const fields = this.#fields;
    let at = start;
    for (;;) {
      this.#reach(text, at);
      const from = this.#from;
      const to = this.#to;
      const result = this.#skip(at - from, to - from, to === text.length ? 1 : 0);
      at = from + (fields[atField] as number);
      const isErrorAt = fields[isErrorField] as number;
      if (isErrorAt !== noKey) this.isErrorAt = from + isErrorAt;
      this.#countWork();
      if (result !== needsMore || this.work > maxWork) {
        this.at = at;
        return outcomes[result] as KernelOutcome;
      }
      this.#to = at; // The cut token at the end of the window is copied again, with its rest.
    }
  }

  #load(text: Buffer, at: number): void {
    const to = Math.min(at + this.#window.length, text.length);
    this.#text = text;
    this.#from = at;
    this.#to = to;
    this.#used = Math.max(this.#used, to - at);
    this.#window.set(at === 0 && to === text.length ? text : text.subarray(at, to));
  }
}
