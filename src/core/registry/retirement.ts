import { setTimeout as delay } from 'node:timers/promises';
import type { Server } from '../server/server.ts';
import type { SessionEndReason } from '../session/end-reason.ts';
import type { Session } from '../session/session.ts';
import { detach } from '../util/boundary.ts';

/** How long the sessions of a removed or reconfigured server may go on, in milliseconds. */
export interface Retirement {
  /**
   * How long unused sessions are kept for their clients. Sessions of groups end at once, since groups reopen them by
   * themselves.
   */
  readonly lingerMs: number;
  /** How long requests in flight may go on after that. */
  readonly graceMs: number;
}

/** The interval of the check for remaining sessions. */
const pollMs = 250;

/**
 * Ends a session when no request of it is in flight, or at the deadline with an error for what waits (P9).
 * @param reason replaced by `draining` if the session is not open yet, since no other instance could continue it
 */
export async function endInOrder(
  session: Session,
  reason: SessionEndReason,
  deadline: Promise<unknown>,
): Promise<void> {
  await Promise.race([session.whenIdle(), deadline]);
  if (reason === 'released' && session.log.streams.hasUnresumableClients) await deadline;
  await session.end(session.isReady ? reason : 'draining');
}

/**
 * Servers that have been removed or reconfigured. Their sessions are no longer opened, and open ones end when their
 * time is up.
 */
export class Retirements {
  readonly #sessions: () => readonly Session[];
  readonly #isShared: boolean;
  /** When unused sessions of a server have to end, on the monotonic clock. */
  readonly #lingerUntil = new WeakMap<object, number>();
  #isClosed = false;

  /**
   * @param sessions all sessions of this instance, also those that are ending
   * @param isShared true if other instances have sessions too, which may have to be taken over
   */
  constructor(sessions: () => readonly Session[], isShared: boolean) {
    this.#sessions = sessions;
    this.#isShared = isShared;
  }

  /** True for a server whose sessions are no longer opened. */
  includes(server: object): boolean {
    return this.#lingerUntil.has(server);
  }

  /** Resolves when the server has no session left and none can come, or once `close` was called. */
  async retire(server: Server, { lingerMs, graceMs }: Retirement): Promise<void> {
    this.#lingerUntil.set(server, performance.now() + lingerMs);
    const remainingSessions = (): Session[] => this.#sessions().filter((session) => session.server === server);
    detach(
      'session',
      Promise.all(
        remainingSessions().map(
          (session) => session.client.isGroup && endInOrder(session, 'reconfigured', pause(graceMs)),
        ),
      ),
    );
    const mayGoOn = (): boolean => !this.#isClosed && performance.now() < (this.#lingerUntil.get(server) ?? 0);
    while (mayGoOn() && (this.#isShared || remainingSessions().length > 0)) await pause(pollMs);
    const deadline = pause(graceMs);
    while (!this.#isClosed && remainingSessions().length > 0)
      await Promise.all(remainingSessions().map((session) => endInOrder(session, 'reconfigured', deadline)));
  }

  /** Ends the unused sessions of a retired server now. */
  hurry(server: Server): void {
    this.#lingerUntil.set(server, 0);
  }

  /** Stops the retirements: the caller ends all sessions of the instance. */
  close(): void {
    this.#isClosed = true;
  }
}

/** The timer does not keep the process alive. */
const pause = (ms: number): Promise<void> => delay(ms, undefined, { ref: false });
