import type { RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message.ts';
import type { Destination } from './calls.ts';

/** More questions than this from one server without an answer are a fault of the server (P8). */
const maxOpen = 1000;

/** The requests of the server (sampling, elicitation, roots, ping) that its client has not answered yet. */
export class ServerRequests {
  readonly #open = new Map<RequestId, Destination>();

  /** Notes a request that goes to the client. False if too many are open, so that it must not. */
  add(id: RequestId, destination: Destination): boolean {
    if (this.#open.size >= maxOpen && !this.#open.has(id)) return false;
    this.#open.set(id, destination);
    return true;
  }

  /** Takes note of the client's response. False if nothing with this id is open: the response belongs to nothing. */
  settle(id: RequestId): boolean {
    return this.#open.delete(id);
  }

  /**
   * Where a cancellation by the server goes: to where the request went, if that can still be reached. Undefined for
   * anything else.
   */
  cancelledBy(message: Message): Destination | undefined {
    if (message.cancels === undefined) return undefined;
    const destination = this.#open.get(message.cancels);
    this.#open.delete(message.cancels);
    return destination === 'get' || destination?.answer.hasStream ? destination : undefined;
  }
}
