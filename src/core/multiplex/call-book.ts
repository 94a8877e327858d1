// src/core/multiplex: what several clients of one server share, and what keeps them apart.

import { HeldBytes } from '../backend/held-bytes.ts';
import type { RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import { BoundedMap } from '../util/bounded-map.ts';
import { SparseMap } from '../util/sparse-map.ts';

/** A request that a server has not answered. */
export interface BookedCall {
  /** The id and the progress token that the server knows the request by. */
  readonly id: RequestId;
  readonly progressToken?: RequestId | undefined;
  /** The request, while it may have to be sent again. */
  request?: Message | undefined;
}

/** How many cancelled calls, and progress tokens of answered ones, are remembered (P8). A client can cancel at any rate. */
const maxCancelled = 1_000;
const maxLateTokens = 64;

/**
 * The requests in flight at one server, in the order of their arrival. A call is awaited until it is answered or
 * cancelled. The server may still write about a cancelled one: it is remembered until its answer, or for a while.
 */
export class CallBook<C extends BookedCall> {
  readonly #awaited = new SparseMap<RequestId, C>();
  /** Undefined until a call is cancelled. */
  #cancelled: Map<RequestId, { readonly call: C; readonly timer: NodeJS.Timeout }> | undefined;
  readonly #byToken = new SparseMap<RequestId, C>();
  /** By the progress token: servers report progress late. Undefined until a call with a token is answered. */
  #late: BoundedMap<RequestId, C> | undefined;
  readonly #held = new HeldBytes();
  /** Until then the server may write about cancelled calls that are forgotten; by `performance.now()`. */
  #doubtUntilMs = 0;
  /** Undefined for none. */
  #emptyListeners: (() => void)[] | undefined;
  /** When the last call was answered or cancelled, by `performance.now()`. */
  emptySince = performance.now();

  /** The number of awaited calls. */
  get size(): number {
    return this.#awaited.size;
  }

  /** True if the server can write about no call. */
  get isClear(): boolean {
    return this.#awaited.size === 0 && !this.hasCancelled;
  }

  /** True while the server may write about a cancelled call. */
  get hasCancelled(): boolean {
    return (this.#cancelled !== undefined && this.#cancelled.size > 0) || this.isInDoubt;
  }

  /** True while the server may write about a call that nobody knows any more. */
  get isInDoubt(): boolean {
    return this.#doubtUntilMs > 0 && performance.now() < this.#doubtUntilMs;
  }

  /** The bytes of the requests that may have to be sent again. */
  get heldBytes(): number {
    return this.#held.bytes;
  }

  /** True if the call is awaited. */
  has(id: RequestId): boolean {
    return this.#awaited.has(id);
  }

  /** An awaited call. */
  get(id: RequestId | null | undefined): C | undefined {
    return id == null ? undefined : this.#awaited.get(id);
  }

  /** A call that the server may write about. */
  find(id: RequestId): C | undefined {
    return this.#awaited.get(id) ?? this.#cancelled?.get(id)?.call;
  }

  /** True if the call is awaited. */
  holds(call: C): boolean {
    return this.#awaited.get(call.id) === call;
  }

  add(call: C): void {
    this.#awaited.set(call.id, call);
    if (call.progressToken !== undefined) this.#byToken.set(call.progressToken, call);
    this.#held.bytes += call.request?.text.length ?? 0;
  }

  /** Removes a call that the server will write about no more, and returns it; undefined if there is none. */
  take(id: RequestId | null | undefined): C | undefined {
    if (id == null) return undefined;
    return this.#removeAwaited(id) ?? this.#removeCancelled(id);
  }

  /** As `take`, for a call that the server has answered. Its progress may come late. */
  settle(id: RequestId | null | undefined): C | undefined {
    const call = this.take(id);
    if (call === undefined) return undefined;
    call.request = undefined;
    if (call.progressToken === undefined) return call;
    this.#late ??= new BoundedMap(maxLateTokens);
    this.#late.set(call.progressToken, call);
    return call;
  }

  /**
   * Nobody waits for the answer of a call any more. The server may write about it for so long, unless it answers before.
   * @param onOver called if it does not
   */
  cancel(call: C, graceMs: number, onOver?: () => void): void {
    if (!this.holds(call)) return;
    this.#removeAwaited(call.id);
    call.request = undefined;
    this.#cancelled ??= new Map();
    const [oldest] = this.#cancelled.keys();
    if (this.#cancelled.size >= maxCancelled && oldest !== undefined) {
      this.#removeCancelled(oldest);
      this.#doubtUntilMs = performance.now() + graceMs;
    }
    const drop = (): void => {
      this.#removeCancelled(call.id);
      onOver?.();
    };
    const timer = setTimeout(drop, graceMs).unref();
    this.#cancelled.set(call.id, { call, timer });
    if (call.progressToken !== undefined) this.#byToken.set(call.progressToken, call);
  }

  /** The call with this progress token: one that the server may write about, or one that it has answered just now. */
  byToken(token: RequestId): C | undefined {
    return this.#byToken.get(token) ?? this.#late?.get(token);
  }

  /** Drops the request of a call that will not be sent again. */
  forgetRequest(call: C): void {
    this.#held.bytes -= call.request?.text.length ?? 0;
    call.request = undefined;
  }

  /** The awaited calls, oldest first, as long as none is added or removed. */
  values(): IterableIterator<C> {
    return this.#awaited.values();
  }

  /** Returns all awaited calls, oldest first. */
  all(): C[] {
    return [...this.#awaited.values()];
  }

  /** The calls that the server may write about. */
  *speakable(): IterableIterator<C> {
    yield* this.#awaited.values();
    for (const { call } of this.#cancelled?.values() ?? []) yield call;
  }

  /** Resolves when no call is awaited. */
  whenEmpty(): Promise<void> {
    if (this.#awaited.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#emptyListeners ??= [];
      this.#emptyListeners.push(resolve);
    });
  }

  /** The server has ended: it writes about no cancelled call any more. */
  forgetCancelled(): void {
    this.#doubtUntilMs = 0;
    for (const id of [...(this.#cancelled?.keys() ?? [])]) this.#removeCancelled(id);
  }

  #removeAwaited(id: RequestId): C | undefined {
    const call = this.#awaited.get(id);
    if (call === undefined) return undefined;
    this.#awaited.delete(id);
    this.#held.bytes -= call.request?.text.length ?? 0;
    this.#removeToken(call);
    if (this.#awaited.size > 0) return call;
    this.emptySince = performance.now();
    const listeners = this.#emptyListeners ?? [];
    this.#emptyListeners = undefined;
    for (const notify of listeners) notify();
    return call;
  }

  #removeCancelled(id: RequestId): C | undefined {
    const found = this.#cancelled?.get(id);
    if (found === undefined) return undefined;
    clearTimeout(found.timer);
    this.#cancelled?.delete(id);
    this.#removeToken(found.call);
    return found.call;
  }

  #removeToken(call: C): void {
    const { progressToken } = call;
    if (progressToken !== undefined && this.#byToken.get(progressToken) === call) this.#byToken.delete(progressToken);
  }
}
