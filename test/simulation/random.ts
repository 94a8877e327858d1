import { createRandom } from '../resume/random.ts';

/** Random choices that are the same for the same seed. */
export class Random {
  /** A number from 0 to below 1. */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = createRandom(seed).next;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A number between two others. */
  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** A time in milliseconds between two others, evenly on a logarithmic scale. */
  time(lowMs: number, highMs: number): number {
    return Math.exp(this.between(Math.log(lowMs), Math.log(highMs)));
  }

  integer(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  pick<T>(from: readonly T[]): T {
    return from[this.integer(0, from.length - 1)] as T;
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.integer(0, 255)));
  }
}

/** The source of all ids that the code under test makes. A simulation replaces it. */
export const entropy = { current: new Random(0) };

/** Replaces the random functions of `node:crypto`. */
export const seededCrypto = {
  randomBytes: (count: number): Buffer => entropy.current.bytes(count),
  randomUUID: (): string => {
    const hex = entropy.current.bytes(16).toString('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  },
};
