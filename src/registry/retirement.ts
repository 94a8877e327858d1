import { setTimeout as delay } from 'node:timers/promises';
import type { Server } from '../server/server.ts';
import type { SessionEndReason } from '../session/end-reason.ts';
import type { Session } from '../session/session.ts';
import { detach } from '../util/boundary.ts';

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
export async function endInOrder(
  session: Session,
  reason: SessionEndReason,
  deadline: Promise<unknown>,
): Promise<void> {
  await Promise.race([session.whenIdle(), deadline]);
  if (reason === 'released' && session.hasUnresumableClients) await deadline;
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
  readonly #isShared: boolean;
  /** Until when sessions of a server may go on that nobody uses, on the monotonic clock. */
  readonly #lingerUntil = new WeakMap<object, number>();
  #isClosed = false;

  /**
   * @param sessions where those of this instance are, as they come and go
   * @param isShared others have sessions too, which may have to be taken over
   */
  constructor(sessions: readonly SessionSource[], isShared: boolean) {
    this.#sessions = sessions;
    this.#isShared = isShared;
  }

  /** True for a server whose sessions are not opened any more. */
  includes(server: object): boolean {
    return this.#lingerUntil.has(server);
  }

  /** Resolves when nothing of the server's sessions is left and none can come, or all sessions are being ended. */
  async retire(server: Server, { lingerMs, graceMs }: Retirement): Promise<void> {
    this.#lingerUntil.set(server, performance.now() + lingerMs);
    const left = (): Session[] =>
      this.#sessions.flatMap((some) => [...some.values()]).filter((session) => session.server === server);
    detach(
      'session',
      Promise.all(left().map((session) => session.isOfGroup && endInOrder(session, 'reconfigured', after(graceMs)))),
    );
    const mayGoOn = (): boolean => !this.#isClosed && performance.now() < (this.#lingerUntil.get(server) ?? 0);
    while (mayGoOn() && (this.#isShared || left().length > 0)) await after(lookMs);
    const deadline = after(graceMs);
    while (!this.#isClosed && left().length > 0)
      await Promise.all(left().map((session) => endInOrder(session, 'reconfigured', deadline)));
  }

  /** Sessions of a retired server that nobody uses end now. */
  hurry(server: Server): void {
    this.#lingerUntil.set(server, 0);
  }

  /** All sessions of the instance are being ended, by whoever says so. */
  close(): void {
    this.#isClosed = true;
  }
}

/** Does not keep the process. */
const after = (ms: number): Promise<void> => delay(ms, undefined, { ref: false });
