import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from './session.ts';
import type { SessionEnd } from './session-end.ts';
import type { Server } from './session-parts.ts';

/** How long what is left of a server may go on, in milliseconds. */
export interface Retirement {
  /** Sessions that nobody uses are kept for their clients so long; those of groups, which come about by themselves, are not. */
  readonly lingerMs: number;
  /** Requests in flight after that. */
  readonly graceMs: number;
}

/** How often it is looked whether sessions are left while they may go on. */
const lookMs = 250;

/**
 * Ends a session when no request of it is in flight, or at the deadline with an error for what waits (P9).
 * @param reason `draining` in its place where the session has not been opened yet, and nobody could go on with it
 */
export async function endInOrder(session: Session, reason: SessionEnd, deadline: Promise<unknown>): Promise<void> {
  await Promise.race([session.whenIdle(), deadline]);
  if (reason === 'released' && session.hasPlaceless) await deadline;
  await session.end(session.isReady ? reason : 'draining');
}

interface SessionSource {
  values(): Iterable<Session>;
}

/**
 * Servers that are configured in another way by now, or not at all: none of their sessions is opened any more, and those that
 * are open end when their time is up.
 */
export class Retirements {
  readonly #sessions: readonly SessionSource[];
  readonly #retired = new WeakSet<object>();
  #isClosed = false;

  /** @param sessions where those of this instance are, as they come and go */
  constructor(sessions: readonly SessionSource[]) {
    this.#sessions = sessions;
  }

  /** True for a server whose sessions are not opened any more. */
  includes(server: object): boolean {
    return this.#retired.has(server);
  }

  /** Resolves when nothing of the server's sessions is left, or all sessions of the instance are being ended. */
  async retire(server: Server, { lingerMs, graceMs }: Retirement): Promise<void> {
    this.#retired.add(server);
    const left = (): Session[] =>
      this.#sessions.flatMap((some) => [...some.values()]).filter((session) => session.server === server);
    const lingersUntil = performance.now() + lingerMs;
    void Promise.all(left().map((session) => session.isOfGroup && endInOrder(session, 'reconfigured', after(graceMs))));
    while (!this.#isClosed && left().length > 0 && performance.now() < lingersUntil) await after(lookMs);
    const deadline = after(graceMs);
    // Some may be taken over from an instance that is lost meanwhile.
    while (!this.#isClosed && left().length > 0)
      await Promise.all(left().map((session) => endInOrder(session, 'reconfigured', deadline)));
  }

  /** All sessions of the instance are being ended, by whoever says so. */
  close(): void {
    this.#isClosed = true;
  }
}

/** Does not keep the process. */
const after = (ms: number): Promise<void> => delay(ms, undefined, { ref: false });
