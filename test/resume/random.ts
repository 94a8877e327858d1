import { environmentNumber } from '../support/environment-number.ts';

/** Numbers that look random and come again for the same seed (mulberry32). */
export interface Random {
  /** From 0 up to, and without, 1. */
  next(): number;
  /** An integer from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** One of these. */
  pick<T>(among: readonly T[]): T;
  /** Another source that follows from this one. */
  fork(): Random;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    integer: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    pick: (among) => among[Math.floor(next() * among.length)] as never,
    fork: () => createRandom(Math.floor(next() * 2 ** 32)),
  };
}

/** The seed of this run: `RESUME_SEED`, else a new one. Tests print it, so that a failure can be run again. */
export const seedOfRun = (): number => environmentNumber('RESUME_SEED', Date.now() % 2 ** 32, { least: 0 });
