import { nobody } from '../../protocol/affinity.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { SessionCore } from '../session-core.ts';

/** How often a session that moves looks whether its earlier requests are answered. */
const pollMs = 10;

/**
 * The state that a session belongs to, if its requests name it in `_meta` (docs/decisions/0105). Hosted clients open a
 * session first, and say only with a call which conversation the call belongs to.
 */
export class StateAffinity {
  /** What the requests have named; undefined until one does. See `Affinity.readMeta`. */
  mark: string | undefined;
  readonly #session: SessionCore;
  #timer: NodeJS.Timeout | undefined;

  constructor(session: SessionCore) {
    this.#session = session;
  }

  /** The mark with which a message has to go to the server, if it is not that of the session; undefined otherwise. */
  moveFor(message: Message): string | undefined {
    const { parts, holder } = this.#session;
    const { affinity, canMoveSessions } = parts.server;
    const canMove = affinity?.readsMeta === true && holder !== undefined && canMoveSessions?.() === true;
    if (!canMove || message.kind !== 'request') return undefined;
    const mark = affinity.readMeta(message);
    if (mark === undefined || mark === this.mark) return undefined;
    // A session that belongs to a state goes on there.
    return mark === nobody && this.mark !== undefined ? undefined : mark;
  }

  /**
   * Calls back once the server owes the session nothing: a process must not change under a request.
   * @param isWaiting true for a request that was not sent to the server
   */
  whenIdle(isWaiting: (request: { readonly id: RequestId }) => boolean, onIdle: () => void): void {
    const { calls, serverRequests, limits } = this.#session;
    const isIdle = (): boolean =>
      calls.all().every(isWaiting) && serverRequests.size === 0 && !calls.tasks.areUnfinished(limits.requestTotalMs);
    const look = (): void => {
      if (isIdle()) return onIdle();
      this.#timer = setTimeout(look, pollMs);
    };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(look);
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
