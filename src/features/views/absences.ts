import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { anonymous, type Principal } from '../../core/protocol/principal.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import type { Member } from './member.ts';

/** A server does not get another chance to delay its users before this time is over. */
const absenceMs = 30_000;

/** How many absences are remembered (P8). After more, a session may wait for a server once more. */
const maxAbsences = 10_000;

/** What a server was asked for in vain: the answer to `initialize`, or a list. */
export type Awaited = 'start' | 'lists';

/** The absences of the servers of a view, as the sessions of one user see them. */
export interface UserAbsences {
  /** A server has kept a session of this user waiting. */
  note(member: string, awaited: Awaited): void;
  /** A server is there again. */
  forget(member: string, awaited: Awaited): void;
  /** True if the sessions of this user do not wait for a server now. */
  has(member: string, awaited: Awaited): boolean;
}

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
    const keyOf = (member: string, awaited: Awaited): string =>
      JSON.stringify([issuer, subject, client, member, awaited]);
    return {
      note: (member, awaited) => {
        this.#untilMs.set(keyOf(member, awaited), this.#now() + absenceMs);
      },
      forget: (member, awaited) => {
        if (this.#untilMs.size > 0) this.#untilMs.delete(keyOf(member, awaited));
      },
      has: (member, awaited) =>
        this.#untilMs.size > 0 && (this.#untilMs.get(keyOf(member, awaited)) ?? 0) > this.#now(),
    };
  }
}

/** A server that answers its lists too late again and again is announced only so often, or its clients read in a loop. */
const announceMs = 30_000;

/** Options of `LateLists`. */
export interface LateListsOptions {
  readonly absences: UserAbsences;
  /** A server that was left out of a list answers again. */
  onReturned(member: Member): void;
}

/**
 * The list requests that nobody waits for any more. Their answers show that a silent server is there again. Each server
 * has at most one such request (P8).
 */
export class LateLists {
  readonly #options: LateListsOptions;
  readonly #waiting = new Set<Member>();
  readonly #announcedAtMs = new Map<Member, number>();

  constructor(options: LateListsOptions) {
    this.#options = options;
  }

  /** True if no answer of this server is awaited here. */
  lacks(member: Member): boolean {
    return !this.#waiting.has(member);
  }

  /** Asks a server for a list without waiting for it. */
  ask(member: Member, request: Message, headers: ForwardedHeaders | undefined): void {
    if (!this.lacks(member)) return;
    this.expect(member);
    const sent = member.send(request, headers, (response) => this.settle(member, response));
    if (sent !== 'sent') this.#waiting.delete(member);
  }

  /** The answer of a server is late. */
  expect(member: Member): void {
    this.#waiting.add(member);
  }

  /** The late answer of a server; undefined if the server was lost. */
  settle(member: Member, response: Message | undefined): void {
    this.#waiting.delete(member);
    if (response === undefined) return;
    const { absences, onReturned } = this.#options;
    absences.forget(member.name, 'lists');
    const now = performance.now();
    if (now - (this.#announcedAtMs.get(member) ?? Number.NEGATIVE_INFINITY) < announceMs) return;
    this.#announcedAtMs.set(member, now);
    onReturned(member);
  }
}
