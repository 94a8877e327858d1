import { environmentNumber } from '../support/environment-number.ts';
import { type FaultKind, faultKinds } from './ledger.ts';

/** What `soak.mjs` was told, which has refused what makes no sense. */
export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** 1: about 30 % of a core. */
  readonly load: number;
  /** How many sessions are recorded, a multiple of twelve. */
  readonly clients: number;
  /** How long is between faults, in relation to a long run. */
  readonly gaps: number;
  /** What Redis is; the seed decides unless told. */
  readonly redis: 'single' | 'sentinel' | undefined;
  /** Only the plan is printed. */
  readonly isPlanOnly: boolean;
  /** Only these faults; all unless told otherwise. */
  readonly faults: readonly FaultKind[];
  /** The report; undefined to print it alone. */
  readonly write: string | undefined;
  /** Where logs and evidence are kept; undefined for a folder that goes unless something was found. */
  readonly folder: string | undefined;
  /** The run is to end with the round that is under way once this file is there. */
  readonly end: string | undefined;
}

export function optionsOfRun(): SoakOptions {
  const { SOAK_FAULTS, SOAK_WRITE, SOAK_FOLDER, SOAK_END, SOAK_REDIS, SOAK_PLAN } = process.env;
  const minutes = environmentNumber('SOAK_MINUTES', 2, { isFraction: true });
  return {
    minutes,
    seed: environmentNumber('SOAK_SEED', Date.now() % 2 ** 32, { least: 0 }),
    load: environmentNumber('SOAK_LOAD', 1, { isFraction: true }),
    clients: environmentNumber('SOAK_CLIENTS', 12),
    // A run that only shows that everything works has short ones.
    gaps: environmentNumber('SOAK_GAPS', minutes < 1 ? 0.2 : 1, { isFraction: true }),
    faults: SOAK_FAULTS === undefined ? faultKinds : faultKinds.filter((kind) => SOAK_FAULTS.split(',').includes(kind)),
    redis: SOAK_REDIS === 'single' || SOAK_REDIS === 'sentinel' ? SOAK_REDIS : undefined,
    isPlanOnly: SOAK_PLAN !== undefined,
    write: SOAK_WRITE,
    folder: SOAK_FOLDER,
    end: SOAK_END,
  };
}
