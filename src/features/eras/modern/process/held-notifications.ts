import type { ForwardedHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';

/** A notification of a client. */
interface HeldNotification {
  readonly message: Message;
  readonly headers: ForwardedHeaders;
  /** The number of the newest call when the notification came. */
  readonly after: number;
}

/** Client notifications that wait for a process to start, in the order in which they came. */
export class HeldNotifications {
  #held: HeldNotification[] = [];
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  add(notification: HeldNotification): void {
    this.#held.push(notification);
    this.#bytes += notification.message.text.length;
  }

  /** Removes and returns the notifications that came before the call with this number. */
  takeBefore(call: number): readonly HeldNotification[] {
    const first = this.#held.findIndex(({ after }) => after >= call);
    const taken = this.#held.splice(0, first < 0 ? this.#held.length : first);
    for (const { message } of taken) this.#bytes -= message.text.length;
    return taken;
  }
}
