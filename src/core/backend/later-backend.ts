import { type ForwardedHeaders, noHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import { detach } from '../util/boundary.ts';
import {
  type BackendEnd,
  type BackendEvents,
  type CloseOptions,
  closedByGateway,
  type OpenBackend,
  type OpenOptions,
  type QueuedMessage,
  type Sent,
} from './backend.ts';
import { ReplaceableBackend } from './replaceable-backend.ts';
import { WaitingList } from './waiting-budget.ts';

/** How to open a backend, or why it cannot be opened. */
export type Opening = OpenBackend | BackendEnd;

/** A backend whose server must be made ready first, such as by an installation. Messages wait, in order. */
export class LaterBackend extends ReplaceableBackend {
  readonly #waiting = new WaitingList<QueuedMessage>(({ message }) => message.text.length);
  #isOver = false;

  /** @param ready settles when the server is ready; never rejects */
  constructor(ready: Promise<Opening>, user: BackendEvents, options: OpenOptions | undefined) {
    super(user);
    detach(
      'backend',
      ready.then((opening) => this.#open(opening, options)),
    );
  }

  override send(message: Message, headers: ForwardedHeaders = noHeaders): Sent {
    if (this.backend !== undefined) return this.backend.send(message, headers);
    if (this.#isOver) return 'ended';
    if (!this.#waiting.hasRoomFor(message.text.length)) return 'full';
    this.#waiting.push({ message, headers });
    return 'sent';
  }

  override async close(how?: CloseOptions): Promise<void> {
    if (this.backend !== undefined) return super.close(how);
    if (this.#isOver) return;
    // What makes the server ready goes on: the next session needs it.
    await Promise.resolve();
    this.#end(closedByGateway);
  }

  #open(opening: Opening, options: OpenOptions | undefined): void {
    if (this.#isOver) return;
    if (typeof opening === 'function') this.place(opening(this.user, options), this.#waiting.takeAll());
    else this.#end(opening);
  }

  #end(end: BackendEnd): void {
    if (this.#isOver || this.backend !== undefined) return;
    this.#isOver = true;
    this.#waiting.takeAll();
    this.user.onEnd(end);
  }
}
