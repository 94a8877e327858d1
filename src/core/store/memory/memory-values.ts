import { BoundedMap, type ByteBudget, emptyEntryBytes } from '../../util/bounded-map.ts';
import { detachBytes } from '../../util/detached-bytes.ts';
import type { Immediate } from '../immediate.ts';
import type { ValueKind, Values } from '../shared/shared-data.ts';

interface Value {
  readonly value: Buffer;
  readonly untilMs: number;
}

/**
 * How many bytes the values of each kind may take (P8). Beyond this limit, those that were set least recently are
 * dropped. The gateway itself names its secrets, and has few of them, so no peer can drop one.
 */
export const maxValueBytes: Readonly<Record<ValueKind, number>> = {
  secret: 1024 * 1024,
  outcome: 64 * 1024 * 1024,
  owner: 16 * 1024 * 1024,
  used: 16 * 1024 * 1024,
  task: 96 * 1024 * 1024,
  result: 64 * 1024 * 1024,
  definition: 16 * 1024 * 1024,
};

/** Values that live at most as long as the process. */
export interface MemoryValues extends Immediate<Values> {
  /** Removes expired values. */
  sweep(): void;
  /** The arguments of `set` that make the same table again, in order. */
  all(): Iterable<Parameters<Values['set']>>;
}

/** Called for each value that is dropped or replaced. */
export type OnValueRemoved = (kind: ValueKind, name: string) => void;

/** Makes an empty table. */
export function createMemoryValues(now: () => number, onRemoved: OnValueRemoved = () => undefined): MemoryValues {
  const tables = new Map<ValueKind, BoundedMap<string, Value>>();
  for (const [kind, maxBytes] of Object.entries(maxValueBytes) as [ValueKind, number][])
    tables.set(kind, new ValueTable(maxBytes, (name) => onRemoved(kind, name)));
  const tableOf = (kind: ValueKind): BoundedMap<string, Value> => tables.get(kind) as BoundedMap<string, Value>;

  const get = (kind: ValueKind, name: string): Buffer | undefined => {
    const found = tableOf(kind).get(name);
    return found !== undefined && found.untilMs > now() ? found.value : undefined;
  };
  const set = (kind: ValueKind, name: string, value: Buffer, ttlMs: number): void => {
    tableOf(kind).set(name, { value: detachBytes(value), untilMs: now() + ttlMs });
  };
  return {
    get,
    set,
    keep(kind, name, candidate, ttlMs) {
      const kept = get(kind, name) ?? candidate;
      set(kind, name, kept, ttlMs);
      return kept;
    },
    sweep() {
      for (const table of tables.values())
        for (const [name, { untilMs }] of table) if (untilMs <= now()) table.delete(name);
    },
    *all() {
      for (const [kind, table] of tables)
        for (const [name, { value, untilMs }] of table) yield [kind, name, value, untilMs - now()];
    },
  };
}

class ValueTable extends BoundedMap<string, Value> {
  readonly #onRemoved: (name: string) => void;

  constructor(maxBytes: number, onRemoved: (name: string) => void) {
    super(Number.POSITIVE_INFINITY, budgetOf(maxBytes));
    this.#onRemoved = onRemoved;
  }

  override delete(name: string): boolean {
    const isRemoved = super.delete(name);
    if (isRemoved) this.#onRemoved(name);
    return isRemoved;
  }
}

const budgetOf = (maxBytes: number): ByteBudget<string, Value> => ({
  maxBytes,
  maxEntryBytes: maxBytes,
  bytesOf: (name, { value }) => Buffer.byteLength(name) + value.length + emptyEntryBytes,
});
