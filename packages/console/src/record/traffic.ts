import type { Meter } from '../host.ts';

/** How fast the shared store answers. */
export interface StoreSpeed {
  /** The mean and the longest time of a command, in milliseconds. Undefined if no command was answered lately. */
  readonly meanMs: number | undefined;
  readonly longestMs: number | undefined;
}

/** Commands are summed in slots of this length; the last complete slot and the open one count. */
const slotMs = 30_000;

interface Slot {
  commands: number;
  totalMs: number;
  longestMs: number;
}

const emptySlot = (): Slot => ({ commands: 0, totalMs: 0, longestMs: 0 });

/** Counts the events that clients get, and times the commands of the store. Both cost an addition each. */
export class Traffic {
  #events = 0;
  #open = emptySlot();
  #previous = emptySlot();
  #openedAt: number;
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#openedAt = now();
  }

  /** Finds the meter for a metric that the console reads too; undefined for all other metrics. */
  readonly meter = (name: string): Meter | undefined => {
    if (name === 'eventsDelivered')
      return {
        add: (count) => {
          this.#events += count;
        },
      };
    if (name === 'redisSeconds') return { add: (seconds) => this.#addCommand(seconds * 1_000) };
    return undefined;
  };

  /** Returns the number of events since the last call. */
  takeEvents(): number {
    const events = this.#events;
    this.#events = 0;
    return events;
  }

  /** How fast the store has answered in the last 30 to 60 s. */
  get storeSpeed(): StoreSpeed {
    this.#turn();
    const slots = [this.#previous, this.#open];
    const commands = slots.reduce((sum, slot) => sum + slot.commands, 0);
    if (commands === 0) return { meanMs: undefined, longestMs: undefined };
    return {
      meanMs: slots.reduce((sum, { totalMs }) => sum + totalMs, 0) / commands,
      longestMs: Math.max(...slots.map(({ longestMs }) => longestMs)),
    };
  }

  #addCommand(ms: number): void {
    this.#turn();
    this.#open.commands += 1;
    this.#open.totalMs += ms;
    if (ms > this.#open.longestMs) this.#open.longestMs = ms;
  }

  #turn(): void {
    const passedMs = this.#now() - this.#openedAt;
    if (passedMs < slotMs) return;
    this.#previous = passedMs < 2 * slotMs ? this.#open : emptySlot();
    this.#open = emptySlot();
    this.#openedAt += Math.floor(passedMs / slotMs) * slotMs;
  }
}
