import type { Reason, RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import { contain } from '../util/boundary.ts';
import type { RequestIds } from './backend.ts';
import { Interceptor, type Outgoing } from './link/link.ts';

/** The lists of one backend that are awaited at the same time (P8). Others are not read. */
const maxAwaited = 16;

/** Reads the answers to some list requests of one backend, and changes nothing. */
export abstract class ListWatcher<Kind> extends Interceptor {
  readonly #kinds: ReadonlyMap<string, Kind>;
  readonly #awaited = new Map<RequestId, Kind>();

  /** @param kinds what is read, by the method that lists it */
  constructor(kinds: ReadonlyMap<string, Kind>) {
    super();
    this.#kinds = kinds;
  }

  /** A list has arrived. */
  protected abstract onList(kind: Kind, response: Message): void;

  override onSend(outgoing: Outgoing): Outgoing {
    const { kind, method, id } = outgoing.message;
    const listed = kind === 'request' ? this.#kinds.get(method ?? '') : undefined;
    if (listed !== undefined && this.#awaited.size < maxAwaited) this.#awaited.set(id as RequestId, listed);
    return outgoing;
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    for (const message of this.#awaited.size === 0 ? [] : messages) {
      if (message.kind !== 'response' || message.id == null) continue;
      const kind = this.#awaited.get(message.id);
      if (kind === undefined) continue;
      this.#awaited.delete(message.id);
      // To watch a list must not cost a client the list.
      if (!message.isError) contain('backend', () => this.onList(kind, message));
    }
    return messages;
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    for (const id of ids) this.#awaited.delete(id);
    this.passUnanswered(ids, reason, isFinal);
  }
}
