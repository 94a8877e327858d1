import type { Reason, RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import { BoundedMap } from '../util/bounded-map.ts';
import { TimeLimit } from '../util/timing/time-limit.ts';
import type { BackendEnd, Sent } from './backend.ts';

/** Why a request of the gateway has no response. */
export type NoResponse =
  /** Not in time, or the server does not read, or it has sent the request back. */
  | { readonly kind: 'silent' | 'full' | 'echo' }
  /** The backend reports that none comes. */
  | { readonly kind: 'unanswered'; readonly reason: Reason }
  /** The backend has ended; `end` is undefined if it had before. */
  | { readonly kind: 'ended'; readonly end: BackendEnd | undefined };

/** The response to a request of the gateway, or why there is none. */
export type OwnAnswer = Message | NoResponse;

export const isResponse = (answer: OwnAnswer): answer is Message => answer.kind === 'response';

/** Requests whose answers nobody waits for any more are remembered up to this number, so that nobody else gets them (P8). */
const maxLate = 100;

/** The requests of the gateway itself to one backend that are not answered. */
export class OwnRequests {
  readonly #open = new Map<RequestId, { readonly method: string | undefined; settle(answer: OwnAnswer): void }>();

  /** Those that the server did not answer in time. */
  readonly #late = new BoundedMap<RequestId, true>(maxLate);

  /** The ids that the server may still answer. */
  get ids(): ReadonlySet<RequestId> {
    return new Set([...this.#open.keys(), ...this.#late.keys()]);
  }

  get areNone(): boolean {
    return this.#open.size + this.#late.size === 0;
  }

  /**
   * Sends a request, and resolves with its response, or with the reason why there is none. Never rejects.
   * @param limitMs how long to wait; no limit if undefined
   */
  send(request: Message, send: (request: Message) => Sent, limitMs?: number): Promise<OwnAnswer> {
    const id = request.id as RequestId;
    return new Promise((resolve) => {
      const limit = limitMs === undefined ? undefined : new TimeLimit(() => this.#giveUp(id), limitMs);
      const settle = (answer: OwnAnswer): void => {
        limit?.clear();
        resolve(answer);
      };
      this.#open.set(id, { method: request.method, settle });
      const sent = send(request);
      if (sent === 'full') this.#settle(id, { kind: 'full' });
      // A backend that has just ended reports its end soon.
    });
  }

  /** Takes a response. False if it answers no request of the gateway. */
  answer(response: Message): boolean {
    return response.id != null && (this.#settle(response.id, response) || this.#late.delete(response.id));
  }

  /** Takes a request of the server. True if the server has sent back a request of the gateway, as `cat` does. */
  takeEcho({ id, method }: Message): boolean {
    const isEcho = id != null && method !== undefined && this.#open.get(id)?.method === method;
    return isEcho && this.#settle(id as RequestId, { kind: 'echo' });
  }

  /** The backend reports that the server does not answer a request. False if it is none of the gateway. */
  lose(id: RequestId, reason: Reason): boolean {
    return this.#settle(id, { kind: 'unanswered', reason }) || this.#late.delete(id);
  }

  /** The backend has ended, or is given up. */
  end(end: BackendEnd | undefined): void {
    for (const id of [...this.#open.keys()]) this.#settle(id, { kind: 'ended', end });
  }

  #giveUp(id: RequestId): void {
    if (this.#settle(id, { kind: 'silent' })) this.#late.set(id, true);
  }

  #settle(id: RequestId, answer: OwnAnswer): boolean {
    const open = this.#open.get(id);
    this.#open.delete(id);
    open?.settle(answer);
    return open !== undefined;
  }
}
