import { BoundedMap } from '../../src/core/util/bounded-map.ts';
import { SparseMap } from '../../src/core/util/sparse-map.ts';

/** The entries of a table or a queue. Tables with a bound of their own may keep theirs, which are for later. */
function entriesOf(value: unknown): readonly unknown[] | undefined {
  if (value instanceof BoundedMap) return [];
  if (value instanceof Map || value instanceof Set || value instanceof SparseMap) return [...value].flat();
  return Array.isArray(value) ? value : undefined;
}

/**
 * Finds what is left in the tables and queues of an object and of all objects of the gateway that it holds (P8). Needs
 * the visible fields of `visible-fields.ts`.
 * @returns `<field>: <number of entries>` for each that is not empty, in alphabetical order
 */
export function leftEntries(root: object): string[] {
  const left = new Set<string>();
  const seen = new Set<unknown>();
  const visit = (value: unknown, field: string): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    const entries = entriesOf(value);
    if (entries === undefined) {
      for (const [key, each] of Object.entries(value)) if (key.startsWith('field_')) visit(each, key);
      return;
    }
    if (entries.length > 0) left.add(`${field}: ${entries.length}`);
    for (const each of entries) visit(each, field);
  };
  visit(root, 'root');
  return [...left].sort();
}
