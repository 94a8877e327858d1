// src/config/tree: the tree of the options, its names and its JSON Schema.

import type { Option, Unit } from '../options/option-kinds.ts';

/** An object of options and of further branches. Its keys are the words of the options' paths. */
export interface Branch {
  readonly [name: string]: Option | Branch;
}

/**
 * The values of a branch. In the code, the name of an option ends with its unit, because a number has none:
 * `timeouts.sessionIdle` is `timeouts.sessionIdleMs`.
 */
export type ValuesOf<B extends Branch> = {
  readonly [K in keyof B & string as B[K] extends Option<unknown, infer U> ? `${K}${U}` : K]: B[K] extends Option<
    infer V,
    Unit
  >
    ? V
    : B[K] extends Branch
      ? ValuesOf<B[K]>
      : never;
};

/** The paths of the options in a branch. */
export type PathsOf<B extends Branch> = {
  [K in keyof B & string]: B[K] extends Option<unknown, Unit>
    ? K
    : B[K] extends Branch
      ? `${K}.${PathsOf<B[K]>}`
      : never;
}[keyof B & string];

/** True for an option, and false for a branch. */
export const isOption = (entry: Option | Branch): entry is Option => typeof entry['kind'] === 'string';

/** All options of a branch with their paths, in the order of the branch. */
export const leavesOf = (branch: Branch, prefix = ''): (readonly [path: string, option: Option])[] =>
  Object.entries(branch).flatMap(([name, entry]) =>
    isOption(entry) ? [[prefix + name, entry] as const] : leavesOf(entry, `${prefix}${name}.`),
  );

/** Makes the values of a branch. `read` gets the path of each option. */
export function valuesOf<B extends Branch>(
  branch: B,
  read: (path: string, option: Option) => unknown,
  prefix = '',
): ValuesOf<B> {
  const members = Object.entries(branch).map(([name, entry]): [string, unknown] => {
    const path = prefix + name;
    return isOption(entry) ? [name + entry.unit, read(path, entry)] : [name, valuesOf(entry, read, `${path}.`)];
  });
  // Each member has the name and the type that `ValuesOf` gives it, which the type system cannot see.
  return Object.fromEntries(members) as ValuesOf<B>;
}

/** The value at the path of an option in the values of its branch. */
export function leafValue(values: object, path: string, { unit }: Option): unknown {
  const words = `${path}${unit}`.split('.');
  return words.reduce<unknown>(
    (value, word) => (typeof value === 'object' && value !== null ? Reflect.get(value, word) : undefined),
    values,
  );
}
