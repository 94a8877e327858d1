// src/protocol/json/kernel: skips large JSON values with WebAssembly SIMD. skip-value.c is the source of the kernel.
import { skipValueWasm } from './skip-value-wasm.ts';

/** The exports of skip-value.c. */
interface KernelExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly state: () => number;
  readonly brackets: () => number;
  readonly window: () => number;
  readonly skip: (at: number, length: number, isLast: number) => number;
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

/** The fields of the kernel's state, in the order of skip-value.c. */
const atField = 0;
const modeField = 1;
const openField = 2;
const limitField = 3;
const valuesField = 4;
const escapesField = 5;
const stateFields = 6;

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

/** The state of a value that was paused. */
export interface PausedValue {
  readonly at: number;
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
  readonly #skip: KernelExports['skip'];
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
    const { memory, state, brackets, window, skip } = new WebAssembly.Instance(compiled).exports;
    this.minBytes = minBytes;
    this.#skip = skip;
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
    fields[limitField] = limit < maxLimit ? limit : maxLimit;
    return this.#run(text, start, maxWork);
  }

  /** Skips the rest of a value that was paused in this text. */
  resume(text: Buffer, { at, fields, brackets }: PausedValue, maxWork: number): KernelOutcome {
    this.#fields.set(fields);
    this.#brackets.set(brackets);
    return this.#run(text, at, maxWork);
  }

  /** Returns the state of the value that has just been paused. Other values may then be skipped. */
  pause(): PausedValue {
    return { at: this.at, fields: this.#fields.slice(), brackets: this.openBrackets };
  }

  /** Drops the reference to the text, and deletes its bytes from the kernel's memory (P12). */
  release(): void {
    if (this.#text === undefined) return;
    this.#text = undefined;
    this.#window.fill(0, 0, this.#used);
    this.#used = 0;
  }

  #run(text: Buffer, start: number, maxWork: number): KernelOutcome {
    const fields = this.#fields;
    fields[valuesField] = 0;
    fields[escapesField] = 0;
    let at = start;
    for (;;) {
      if (text !== this.#text || at < this.#from || at >= this.#to) this.#load(text, at);
      const from = this.#from;
      const to = this.#to;
      const result = this.#skip(at - from, to - from, to === text.length ? 1 : 0);
      at = from + (fields[atField] as number);
      this.work = escapesPerValue * (fields[valuesField] as number) + (fields[escapesField] as number);
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
