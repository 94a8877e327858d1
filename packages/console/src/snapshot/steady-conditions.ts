import type { ServerCondition } from './server-condition.ts';

/** A better state, or another kind of trouble, is shown when it has lasted for this time. */
const holdMs = 10_000;

/** The order of the servers changes at most once in this time. */
const orderMs = 10_000;

const order: readonly ServerCondition['state'][] = ['down', 'degraded', 'slow', 'up', 'unused'];

/** The rank of a state, the worst one first. */
export const rankOf = ({ state }: Pick<ServerCondition, 'state'>): number => order.indexOf(state);

/** The states from which trouble is shown at once. */
const calm: ReadonlySet<ServerCondition['state']> = new Set(['slow', 'up', 'unused']);

const isWell = ({ state }: ServerCondition): boolean => state === 'up' || state === 'unused';

interface Shown {
  condition: ServerCondition;
  /** Another state that was found, and since when nothing else was found. `since` is in milliseconds since 1970. */
  next: { readonly state: ServerCondition['state']; readonly at: number; readonly since: number } | undefined;
}

/**
 * Keeps the shown conditions of the servers steady: a process that ends and starts again every few seconds is one state,
 * and the rows do not move under the pointer. One entry for each configured server.
 */
export class SteadyConditions {
  readonly #byServer = new Map<string, Shown>();
  readonly #now: () => number;
  #names: readonly string[] = [];
  #orderedAt = Number.NEGATIVE_INFINITY;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Notes the condition that was found, and returns the one to show. Its `since` is that of the shown state. */
  show(server: string, found: ServerCondition): ServerCondition {
    const shown = this.#byServer.get(server);
    if (shown === undefined) {
      this.#byServer.set(server, { condition: found, next: undefined });
      return found;
    }
    const { condition } = shown;
    if (found.state === condition.state) {
      shown.next = undefined;
      shown.condition = { ...found, since: condition.since ?? found.since };
    } else if (calm.has(condition.state) && rankOf(found) < rankOf(condition)) {
      shown.next = undefined;
      shown.condition = { ...found, since: isWell(found) ? undefined : (found.since ?? Date.now()) };
    } else {
      if (shown.next?.state !== found.state) shown.next = { state: found.state, at: this.#now(), since: Date.now() };
      if (this.#now() - shown.next.at >= holdMs) {
        shown.condition = { ...found, since: isWell(found) ? undefined : shown.next.since };
        shown.next = undefined;
      }
    }
    return shown.condition;
  }

  /** Sorts the servers in trouble first. Servers in the same state keep their order; new servers are sorted at once. */
  sort<T extends { readonly name: string; readonly condition: ServerCondition }>(servers: readonly T[]): readonly T[] {
    const isKnown = servers.length === this.#names.length && servers.every(({ name }) => this.#names.includes(name));
    if (!isKnown || this.#now() - this.#orderedAt >= orderMs) {
      this.#orderedAt = this.#now();
      this.#names = [...servers].sort((a, b) => rankOf(a.condition) - rankOf(b.condition)).map(({ name }) => name);
    }
    return [...servers].sort((a, b) => this.#names.indexOf(a.name) - this.#names.indexOf(b.name));
  }

  /** Forgets the servers that are no longer configured. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#byServer.keys()) if (!names.has(name)) this.#byServer.delete(name);
  }
}
