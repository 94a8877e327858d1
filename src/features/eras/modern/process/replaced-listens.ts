import type { Message } from '../../../../core/protocol/message/message.ts';
import { isChange, keyOfChange } from '../../../../core/protocol/modern/subscription-filter.ts';
import type { SharedCall, SharedCalls } from './shared-calls.ts';

/** A subscriber has got a change of a kind under its own number: the server has not replaced its subscription. */
const kept = 'kept';

/**
 * Servers with the SDK of Go keep one subscription for each kind of change and connection: a second one replaces the
 * first. Several clients share the connection to a process, so each of them would lose its changes to the next one.
 *
 * A change that names the newest subscription is therefore one for the older subscribers, too, until the server shows
 * that it keeps theirs. If an older one's own copy comes after that, it is a repeat. So the order in which a server
 * sends the copies does not matter.
 */
export class ReplacedListens {
  readonly #calls: SharedCalls;
  /**
   * By subscriber and kind of change: how many copies of its own would be repeats. Only kinds of the acknowledged filter
   * have an entry (P8).
   */
  #states = new WeakMap<SharedCall, Map<string, typeof kept | number>>();

  constructor(calls: SharedCalls) {
    this.#calls = calls;
  }

  /** A subscription was acknowledged: from now on the server may have replaced all older ones. */
  noteAcknowledged(): void {
    for (const call of this.#calls.subscriptions) {
      const states = this.#states.get(call);
      for (const [kind, state] of states ?? []) if (state === kept) states?.delete(kind);
    }
  }

  /** A new process does not know what the one before has sent. */
  clear(): void {
    this.#states = new WeakMap();
  }

  /** The subscribers that get a notification which names the subscription of one of them. */
  subscribersOf(call: SharedCall, notification: Message): readonly SharedCall[] {
    if (!isChange(notification)) return [call];
    const kind = keyOfChange(notification) ?? '';
    const subscribers = [...this.#calls.subscribersTo(notification)].filter((each) => each !== call);
    if (subscribers.length === 0) return [call];
    const state = this.#states.get(call)?.get(kind);
    if (typeof state === 'number') {
      this.#set(call, kind, state > 1 ? state - 1 : kept);
      return [];
    }
    if (subscribers.some(({ id }) => id > call.id)) {
      this.#set(call, kind, kept);
      return [call];
    }
    const replaced = subscribers.filter((each) => this.#states.get(each)?.get(kind) !== kept);
    for (const each of replaced) {
      const repeats = this.#states.get(each)?.get(kind);
      this.#set(each, kind, typeof repeats === 'number' ? repeats + 1 : 1);
    }
    return [call, ...replaced];
  }

  #set(call: SharedCall, kind: string, state: typeof kept | number): void {
    const states = this.#states.get(call) ?? new Map<string, typeof kept | number>();
    this.#states.set(call, states.set(kind, state));
  }
}
