/**
 * The bytes of messages that the gateway holds for servers that do not read them, or have not started (gate 2 of
 * docs/hardening.md). Each queue and table has a limit of its own, for one session. A client can open many sessions, and
 * leave its requests behind. So admission also asks for the bytes of all of them (P8).
 */

interface Count {
  bytes: number;
}

let all = 0;

/** A session that was dropped with what it held counts no more once its memory is free. */
const dropped = new FinalizationRegistry<Count>((count) => {
  all -= count.bytes;
});

/** The bytes of one queue or table. They count towards those of all. */
export class HeldBytes {
  /** Undefined until something is held: most queues of an idle session never hold anything. */
  #count: Count | undefined;

  get bytes(): number {
    return this.#count?.bytes ?? 0;
  }

  set bytes(bytes: number) {
    if (this.#count === undefined) {
      if (bytes === 0) return;
      this.#count = { bytes: 0 };
      dropped.register(this, this.#count);
    }
    all += bytes - this.#count.bytes;
    this.#count.bytes = bytes;
  }
}

/** The bytes of all queues and tables of this gateway. */
export const allHeldBytes = (): number => all;
