import type { GlobalOptions } from '../options/options.ts';
import { gatewayPlaces } from './places.ts';

type Places = typeof gatewayPlaces;

/** The options below one branch of the tree. Those below `advanced` belong to the branch of the same name. */
type OptionsAt<B extends string> = Pick<
  GlobalOptions,
  { [K in keyof Places]: Places[K] extends `${B}.${string}` | `advanced.${B}.${string}` ? K : never }[keyof Places]
>;

/**
 * The branches that rooms outside of `config` and `app` receive. The others, and all but the numbers of `cluster`, are
 * addresses and secrets.
 */
const branchNames = ['limits', 'timeouts', 'sse', 'replay', 'cluster'] as const;

type BranchName = (typeof branchNames)[number];

/** The options whose values are numbers. */
type NumbersOf<T> = Pick<T, { [K in keyof T]: T[K] extends number ? K : never }[keyof T]>;

/** The values of the options by the branches of the tree, as plain objects. */
export type Branches = {
  readonly [B in BranchName]: B extends 'cluster' ? NumbersOf<OptionsAt<B>> : OptionsAt<B>;
};

/** Separates a configuration into its branches, so that a room receives only the values of its own branches. */
export function branchesOf(config: GlobalOptions): Branches {
  const valuesAt = (branch: BranchName): Readonly<Record<string, unknown>> =>
    Object.fromEntries(
      Object.entries(gatewayPlaces)
        .filter(([, place]) => place.startsWith(`${branch}.`) || place.startsWith(`advanced.${branch}.`))
        .map(([key]): [string, unknown] => [key, config[key as keyof Places]])
        .filter(([, value]) => branch !== 'cluster' || typeof value === 'number'),
    );
  // Each object has exactly the keys of its branch, which the type system cannot see.
  return Object.fromEntries(branchNames.map((branch) => [branch, valuesAt(branch)])) as unknown as Branches;
}
