// src/config/rules: which values of options do not fit together, as tables.

import type { NameOf, ReportIssue } from '../issues.ts';
import type { OptionPath } from '../options/options.ts';

/** A fault with its remedy; false if there is none. */
export type Fault = string | false | undefined;

/** What can be wrong with the value of an option beside others. */
export interface Rule<Subject> {
  /** The option with the fault, or several: the fault is at the first that is set. */
  readonly at: OptionPath | readonly OptionPath[];
  /** Finds the faults, whose number and order do not depend on the names. */
  readonly faults: (subject: Subject, nameOf: NameOf) => readonly Fault[];
}

/** The location of the first of these options that is set, for a fault. */
export type PlaceOf = (paths: readonly OptionPath[]) => string;

/** Reports all faults that a table finds. */
export function checkRules<Subject>(
  rules: readonly Rule<Subject>[],
  subject: Subject,
  placeOf: PlaceOf,
  report: ReportIssue,
): void {
  for (const { at, faults } of rules)
    for (const [index, fault] of faults(subject, (path) => path).entries())
      if (fault) report(placeOf([at].flat()), (nameOf) => String(faults(subject, nameOf)[index]));
}
