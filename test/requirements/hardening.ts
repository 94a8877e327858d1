import { floor } from './floor.ts';
import { gateFindings } from './gate-findings.ts';
import { advisories } from './hardening-advisories.ts';
import { faults } from './hardening-faults.ts';
import { inputs } from './hardening-inputs.ts';
import { properties } from './hardening-properties.ts';
import type { Requirement } from './requirement.ts';

/** Every row of docs/hardening.md. */
export const hardening: readonly Requirement[] = [
  ...faults,
  ...inputs,
  ...properties,
  ...advisories,
  ...floor,
  ...gateFindings,
];
