import type { BackendEvents } from '../../../core/backend/backend.ts';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import type { Message } from '../../../core/protocol/message/message.ts';

/** How many bytes wait for a session that reads nothing (P8). The shared server is not paused for one session. */
const maxHeldBytes = 4 * 1024 * 1024;

type Entry =
  | { readonly message: Message; readonly requestId: RequestId | undefined }
  | { readonly unanswered: RequestId; readonly reason: Reason };

/**
 * Queues a translator's output for its session, in order. Events are reported outside of any call into the backend, and
 * those of one moment together, as `BackendEvents` promises. The queue also holds the output while the session is
 * paused.
 */
export class HeldOutput {
  readonly #events: Pick<BackendEvents, 'onMessages' | 'onUnanswered'>;
  #entries: Entry[] = [];
  #heldBytes = 0;
  #isPaused = false;
  #isDue = false;
  #isClosed = false;

  constructor(events: Pick<BackendEvents, 'onMessages' | 'onUnanswered'>) {
    this.#events = events;
  }

  /** Queues a message that may be lost, for the request that it belongs to. Returns false if there is no room. */
  notify(message: Message, requestId?: RequestId): boolean {
    if (this.#isClosed || this.#heldBytes > maxHeldBytes) return false;
    this.#add({ message, requestId });
    return true;
  }

  /** Queues the response to a request. Without room for it, the request stays unanswered. */
  respond(id: RequestId, message: Message): void {
    if (this.#heldBytes > maxHeldBytes) this.abandon(id, 'slow_reader');
    else this.#add({ message, requestId: id });
  }

  /** Reports that the request will have no response, for this reason. */
  abandon(id: RequestId, reason: Reason): void {
    this.#add({ unanswered: id, reason });
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#flushSoon();
  }

  /** Drops the queue and everything that is added later. */
  close(): void {
    this.#isClosed = true;
    this.#entries = [];
    this.#heldBytes = 0;
  }

  #add(entry: Entry): void {
    if (this.#isClosed) return;
    this.#entries.push(entry);
    if ('message' in entry) this.#heldBytes += entry.message.text.length;
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#isDue || this.#isPaused || this.#entries.length === 0) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (!this.#isPaused && this.#entries.length > 0) {
      const [first] = this.#entries as [Entry];
      if ('reason' in first) {
        this.#entries.shift();
        this.#events.onUnanswered([first.unanswered], first.reason, true); // final: the shared server has run the call again where it may
        continue;
      }
      const { requestId } = first;
      const end = this.#entries.findIndex((entry) => !('message' in entry) || entry.requestId !== requestId);
      const messages = this.#entries.splice(0, end < 0 ? this.#entries.length : end).flatMap(messageIn);
      for (const { text } of messages) this.#heldBytes -= text.length;
      this.#events.onMessages(messages, requestId === undefined ? [] : [requestId]);
    }
  }
}

const messageIn = (entry: Entry): Message[] => ('message' in entry ? [entry.message] : []);
