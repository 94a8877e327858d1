import { anonymous, type Principal } from '../../core/protocol/principal.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';

/** A server does not get another chance to delay its users before this time is over. */
const absenceMs = 30_000;

/** How many absences are remembered (P8). After more, a session may wait for a server once more. */
const maxAbsences = 10_000;

/** What a server was asked for in vain: the answer to `initialize`, or a list. */
export type Awaited = 'start' | 'lists';

/**
 * The servers of a view that were silent or slow to fail. Clients that open a session for each call would wait for such
 * a server in each session. Each user has own absences, because a server may be silent to one of them only (P11).
 */
export class Absences {
  /** The end of each absence, on the monotonic clock. */
  readonly #untilMs = new BoundedMap<string, number>(maxAbsences);
  readonly #now: () => number;

  /** @param now milliseconds of the monotonic clock */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** The absences for one user. */
  of({ issuer, subject, client }: Principal = anonymous): UserAbsences {
    return new UserAbsences(this.#untilMs, this.#now, [issuer, subject, client]);
  }
}

/** The absences of the servers of a view, as the sessions of one user see them. */
export class UserAbsences {
  readonly #untilMs: BoundedMap<string, number>;
  readonly #now: () => number;
  readonly #user: readonly string[];

  constructor(untilMs: BoundedMap<string, number>, now: () => number, user: readonly string[]) {
    this.#untilMs = untilMs;
    this.#now = now;
    this.#user = user;
  }

  /** A server has kept a session of this user waiting. */
  note(member: string, awaited: Awaited): void {
    this.#untilMs.set(this.#keyOf(member, awaited), this.#now() + absenceMs);
  }

  /** A server is there again. */
  forget(member: string, awaited: Awaited): void {
    if (this.#untilMs.size > 0) this.#untilMs.delete(this.#keyOf(member, awaited));
  }

  /** True if the sessions of this user do not wait for a server now. */
  has(member: string, awaited: Awaited): boolean {
    return this.#untilMs.size > 0 && (this.#untilMs.get(this.#keyOf(member, awaited)) ?? 0) > this.#now();
  }

  #keyOf(member: string, awaited: Awaited): string {
    return JSON.stringify([...this.#user, member, awaited]);
  }
}
