import type { BackendEnd, BackendEvents, RequestIds } from '../../core/backend/backend.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';

/** How many bytes a session may leave unread before it holds up the process that it shares (P8). */
const maxHeldBytes = 4 * 1024 * 1024;

/** How long a session may hold up the process that it shares with others (P8). */
const maxHoldUpMs = 5_000;

/** The end of the connection of a session that did not read. */
const tooSlow: BackendEnd = {
  reason: 'exited',
  detail: 'The session did not read the messages of its shared process, and was detached from the process.',
};

/** The process of a seat, as the seat sees it. */
export interface SeatHost {
  /** The number of seats. */
  readonly size: number;
  /** A session has started or stopped reading, or holds up the process. */
  updatePause(): void;
  leave(seat: Seat): void;
}

/** The place of one session in a process. Other sessions may have seats there at the same time. */
export class Seat {
  /** True for the first session: its ids stay unchanged. */
  readonly keepsIds: boolean;
  readonly receiver: BackendEvents;
  /** The least severe log level that the session wants; undefined if it has set none. */
  logLevel: string | undefined;
  readonly #host: SeatHost;
  /** Messages that wait while the session does not read. */
  #held: Message[] = [];
  #heldBytes = 0;
  /** The requests without an answer that the session learns of after these messages. */
  #unanswered: Parameters<BackendEvents['onUnanswered']>[] = [];
  #holdUpTimer: TimeLimit | undefined;
  #isPaused = false;
  hasLeft = false;

  constructor(host: SeatHost, receiver: BackendEvents, keepsIds: boolean) {
    this.#host = host;
    this.receiver = receiver;
    this.keepsIds = keepsIds;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** True while other sessions wait for this one. */
  get holdsUp(): boolean {
    return this.#holdUpTimer !== undefined;
  }

  pause(): void {
    this.#isPaused = true;
    this.#host.updatePause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#flush();
    this.#host.updatePause();
  }

  /** Delivers messages of the server, under the ids of the session. They wait while the session does not read. */
  deliver(messages: readonly Message[], relatedRequests: RequestIds | undefined, isAlone: boolean): void {
    if (this.hasLeft) return;
    if (this.#held.length === 0 && (isAlone || !this.#isPaused))
      return this.receiver.onMessages(messages, relatedRequests);
    for (const message of messages) this.#heldBytes += message.text.length;
    this.#held.push(...messages);
    if (this.#heldBytes <= maxHeldBytes || this.#holdUpTimer !== undefined) return;
    this.#holdUpTimer = new TimeLimit(() => this.#giveUp(), maxHoldUpMs).unref();
    this.#host.updatePause();
  }

  /** Requests of the session stay without an answer. It has all messages about them before (see `BackendEvents`). */
  noteUnanswered(...args: Parameters<BackendEvents['onUnanswered']>): void {
    if (this.hasLeft) return;
    if (this.#held.length > 0) this.#unanswered.push(args);
    else this.receiver.onUnanswered(...args);
  }

  /** The process has ended. */
  end(end: BackendEnd): void {
    if (this.hasLeft) return;
    this.#isPaused = false;
    this.#flush();
    this.hasLeft = true;
    this.receiver.onEnd(end);
  }

  /** The session leaves the process. It gets nothing more. */
  leave(): void {
    if (this.hasLeft) return;
    this.hasLeft = true;
    this.#forgetHeld();
    this.#host.leave(this);
  }

  /** Detaches the session from a process that others need. A session that is alone delays nobody, and stays. */
  #giveUp(): void {
    if (this.hasLeft) return;
    if (this.#host.size === 1) {
      this.#holdUpTimer = undefined;
      return this.#host.updatePause();
    }
    this.leave();
    this.receiver.onEnd(tooSlow);
  }

  #flush(): void {
    const messages = this.#held;
    const unanswered = this.#unanswered;
    this.#forgetHeld();
    if (messages.length > 0) this.receiver.onMessages(messages);
    for (const args of unanswered) this.receiver.onUnanswered(...args);
  }

  #forgetHeld(): void {
    this.#holdUpTimer?.clear();
    this.#holdUpTimer = undefined;
    this.#held = [];
    this.#heldBytes = 0;
    this.#unanswered = [];
  }
}
