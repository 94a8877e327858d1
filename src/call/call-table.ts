// src/call: client requests in flight: the table of calls, their answers, reruns, tasks and reports.
import type { RequestId } from '../protocol/faults.ts';
import { SparseMap } from '../util/sparse-map.ts';

/** A request in flight, as a table sees it. */
export interface CallInFlight {
  /** The id under which the server knows the request. */
  readonly id: RequestId;
  /** The time of sending or of the last progress, and the time of sending, on the monotonic clock in milliseconds. */
  activeAt: number;
  readonly startedAt: number;
}

/** How long a request may be silent, and how long it may take, in milliseconds. */
export interface CallTimeLimits {
  readonly requestIdleMs: number;
  readonly requestTotalMs: number;
}

/** Why an overdue request is cancelled, for the server. */
export const overdueReason = 'The request took too long.';

/**
 * The requests in flight at one server, in the order of their arrival. The two kinds of it decide where the server's
 * messages belong: `SessionCalls` for one session, and `SharedCalls` for the many clients of a process.
 */
export class CallTable<C extends CallInFlight> {
  readonly #byId = new SparseMap<RequestId, C>();
  /** Undefined for none. */
  #emptyListeners: (() => void)[] | undefined;
  /** When the last call was answered, on the monotonic clock in milliseconds. */
  emptySince = performance.now();

  get size(): number {
    return this.#byId.size;
  }

  has(id: RequestId): boolean {
    return this.#byId.has(id);
  }

  get(id: RequestId | null | undefined): C | undefined {
    return id == null ? undefined : this.#byId.get(id);
  }

  /** True if the call is still in flight. */
  holds(call: C): boolean {
    return this.#byId.get(call.id) === call;
  }

  add(call: C): void {
    this.#byId.set(call.id, call);
  }

  /** Removes the call with this id, and returns it; undefined if there is none. */
  take(id: RequestId | null | undefined): C | undefined {
    const call = this.get(id);
    if (call === undefined) return undefined;
    this.#byId.delete(call.id);
    if (this.#byId.size > 0) return call;
    this.emptySince = performance.now();
    const listeners = this.#emptyListeners ?? [];
    this.#emptyListeners = undefined;
    for (const notify of listeners) notify();
    return call;
  }

  /** The calls, oldest first, as long as none is added or removed. */
  values(): IterableIterator<C> {
    return this.#byId.values();
  }

  /** Returns all calls, oldest first. */
  all(): C[] {
    return [...this.#byId.values()];
  }

  /** Returns the calls that were silent or in flight for too long. */
  overdue({ requestIdleMs, requestTotalMs }: CallTimeLimits): C[] {
    const now = performance.now();
    return this.all().filter((call) => now - call.activeAt >= requestIdleMs || now - call.startedAt >= requestTotalMs);
  }

  /** Resolves when no call is in flight. */
  whenEmpty(): Promise<void> {
    if (this.#byId.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#emptyListeners ??= [];
      this.#emptyListeners.push(resolve);
    });
  }
}
