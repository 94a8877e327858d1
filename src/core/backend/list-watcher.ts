import type { Message } from '../protocol/message/message.ts';
import { contain } from '../util/boundary.ts';
import { AnswerWatcher } from './link/answer-watcher.ts';
import type { Outgoing } from './link/link.ts';

/** The lists of one backend that are awaited at the same time (P8). Others are not read. */
const maxAwaited = 16;

/** Reads the answers to some list requests of one backend, and changes nothing. */
export abstract class ListWatcher<Kind> extends AnswerWatcher<Kind> {
  readonly #kinds: ReadonlyMap<string, Kind>;

  /** @param kinds what is read, by the method that lists it */
  constructor(kinds: ReadonlyMap<string, Kind>) {
    super();
    this.#kinds = kinds;
  }

  /** A list has arrived. */
  protected abstract onList(kind: Kind, response: Message): void;

  override onSend(outgoing: Outgoing): Outgoing {
    const { message } = outgoing;
    const listed = message.kind === 'request' ? this.#kinds.get(message.method ?? '') : undefined;
    if (listed !== undefined && this.watched < maxAwaited) this.note(message, listed);
    return outgoing;
  }

  protected override onAnswer(response: Message, kind: Kind): Message {
    // To watch a list must not cost a client the list.
    if (!response.isError) contain('backend', () => this.onList(kind, response));
    return response;
  }
}
