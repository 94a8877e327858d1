import { createRandom, type Random } from '../resume/random.ts';
import { type PlannedFault, planRound, possibleKinds } from './faults.ts';
import type { SoakOptions } from './options.ts';

/** What a seed decides. Clients draw from forks of it, so that the faults do not depend on how fast the clients are. */
export interface SoakPlan {
  /** Whether Redis is a master with a replica and a sentinel. */
  readonly hasSentinel: boolean;
  /** For the clients beside the recorded sessions. */
  readonly talkers: Random;
  /** The faults of each round, and what its recorded sessions draw from. */
  next(): { readonly random: Random; readonly faults: readonly PlannedFault[] };
}

export function createPlan({
  seed,
  faults,
  gaps,
  redis,
}: Pick<SoakOptions, 'seed' | 'faults' | 'gaps' | 'redis'>): SoakPlan {
  const random = createRandom(seed);
  const hasSentinel = random.chance(0.5) ? redis !== 'single' : redis === 'sentinel';
  const kinds = possibleKinds(faults, hasSentinel);
  const talkers = random.fork();
  return {
    hasSentinel,
    talkers,
    next() {
      const own = random.fork();
      return { faults: planRound(own.fork(), kinds, gaps), random: own };
    },
  };
}

/** The plan in words, for as many rounds as a run of so many minutes has at most. */
export function planText(options: SoakOptions): string {
  const plan = createPlan(options);
  const lines = [`seed ${options.seed}: Redis ${plan.hasSentinel ? 'with a sentinel' : 'alone'}`];
  let leftMs = options.minutes * 60_000;
  for (let round = 0; leftMs > 0; round += 1) {
    lines.push(`round ${round}`);
    for (const { what, beforeMs, afterMs } of plan.next().faults) {
      lines.push(`  after ${Math.round(beforeMs)} ms: ${what}; then ${Math.round(afterMs)} ms`);
      leftMs -= beforeMs + afterMs;
    }
  }
  return `${lines.join('\n')}\n`;
}
