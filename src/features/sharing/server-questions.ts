import { OwnedTable } from '../../core/multiplex/owned-table.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import type { Seat } from './seat.ts';

/** How many requests of a server may be open at the same time (P8). Each waits for a person or a model. */
const maxQuestions = 1_000;

/** The requests from a server that its sessions have not answered, each with the one session that got it (P11). */
export class ServerQuestions {
  readonly #byId = new OwnedTable<Seat, RequestId, Message['progressToken'] | null>(maxQuestions);
  /** The progress tokens of these requests. Only the session that was asked may report progress of an answer. */
  readonly #tokens = new OwnedTable<Seat, RequestId>(maxQuestions);

  get size(): number {
    return this.#byId.size;
  }

  /** True if a further request of the server would make the oldest one unknown. */
  get isFull(): boolean {
    return this.#byId.size >= maxQuestions;
  }

  /** A session gets a request. Returns false if another session has an open one with this id. */
  add(seat: Seat, { id, progressToken }: Message): boolean {
    if (id === undefined || id === null || !this.#byId.claim(seat, id, progressToken ?? null)) return false;
    if (progressToken !== undefined) this.#tokens.claim(seat, progressToken, true);
    return true;
  }

  /** The session answers the request, or the server needs no answer. Returns false if the session was not asked. */
  settle(seat: Seat, id: RequestId): boolean {
    const token = this.#byId.take(seat, id);
    if (token !== undefined && token !== null) this.#tokens.take(seat, token);
    return token !== undefined;
  }

  /** True if the session was asked by a request with this progress token. */
  hasToken(seat: Seat, token: RequestId): boolean {
    return this.#tokens.has(seat, token);
  }

  /** The session that got a request. */
  askedBy(id: RequestId): Seat | undefined {
    return this.#byId.ownerOf(id);
  }

  /** The requests that a session has not answered. */
  of(seat: Seat): readonly RequestId[] {
    return this.#byId.keysOf(seat);
  }
}
