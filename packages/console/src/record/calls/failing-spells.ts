import { isFailing, type RecentCalls, slotCount, slotMs } from './call-rates.ts';

/** A spell ends when the calls have not been failing for the span of the rates, in milliseconds. */
const gapMs = slotCount * slotMs;

interface Spell {
  /** In milliseconds since 1970. */
  readonly since: number;
  /** When the calls were last failing, on the monotonic clock. */
  seenAt: number;
}

/** Remembers since when the calls of a server fail. */
export class FailingSpells {
  readonly #byServer = new Map<string, Spell>();
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Records the rates of a server with new calls. */
  record(server: string, recent: Pick<RecentCalls, 'calls' | 'failures'>): void {
    if (!isFailing(recent)) return;
    const now = this.#now();
    const spell = this.#byServer.get(server);
    if (spell !== undefined && now - spell.seenAt < gapMs) spell.seenAt = now;
    else this.#byServer.set(server, { since: Date.now(), seenAt: now });
  }

  /** Returns the beginning of the newest spell, in milliseconds since 1970. */
  since(server: string): number | undefined {
    return this.#byServer.get(server)?.since;
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }
}
