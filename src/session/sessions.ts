import { createHash, randomBytes } from 'node:crypto';
import type { Message } from '../protocol/message.ts';
import type { Principal, Store } from '../store/store.ts';
import type { SessionObserver } from './observer.ts';
import type { Reply } from './reply.ts';
import { Session } from './session.ts';
import type { Server, SessionOptions, SessionParts } from './session-parts.ts';

/** What the sessions of an instance share. */
export interface SessionsOptions extends SessionOptions {
  /** The name of this instance in records. */
  readonly instance: string;
  readonly store: Store;
  readonly observer: SessionObserver;
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
}

/** How often idle sessions and overdue calls are looked for, at least. */
const maxSweepMs = 30_000;

/** The sessions of one instance, by id. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #byId = new Map<string, Session>();
  /** Sessions that can no longer be used but whose backend may still be ending. */
  readonly #ending = new Set<Session>();
  readonly #sweep: NodeJS.Timeout;
  #isDraining = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
    const shortestMs = Math.min(options.sessionIdleMs, options.requestIdleMs, options.requestMaxMs);
    this.#sweep = setInterval(() => this.#endOverdue(), Math.min(maxSweepMs, Math.ceil(shortestMs / 4))).unref();
  }

  get size(): number {
    return this.#byId.size;
  }

  /** True once `drain` was called: no new sessions. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Opens a session for a client's `initialize` and answers it. */
  open(server: Server, principal: Principal, initialize: Message, reply: Reply): void {
    const { instance, store, observer, maxSessions } = this.#options;
    if (this.#isDraining) return reply.fault('draining', initialize.id ?? null);
    if (this.#byId.size + this.#ending.size >= maxSessions)
      return reply.fault('too_many_sessions', initialize.id ?? null);
    const id = randomBytes(32).toString('base64url');
    const key = createHash('sha256').update(id).digest('base64url');
    const parts: SessionParts = {
      id,
      key,
      server,
      principal,
      instance,
      store,
      options: this.#options,
      observer,
      onEnding: () => {
        this.#byId.delete(id);
        this.#ending.add(session);
      },
      onEnded: () => this.#ending.delete(session),
    };
    const session = new Session(parts, initialize);
    this.#byId.set(id, session);
    session.start(reply);
  }

  /** The session with this id, if it is of this server and this principal; to anyone else it does not exist (P11). */
  find(id: string, server: Server, principal: Principal): Session | undefined {
    const session = this.#byId.get(id);
    return session?.server === server && isSame(session.principal, principal) ? session : undefined;
  }

  /**
   * Ends all sessions (P9): each when no request of it is in flight, those that are still busy after `graceMs` with an
   * error for what they wait for. Resolves when no backend is left.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    clearInterval(this.#sweep);
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    await Promise.all(
      [...this.#byId.values()].map(async (session) => {
        await Promise.race([session.whenIdle(), deadline]);
        await session.end('draining');
      }),
    );
    clearTimeout(timer);
    await Promise.all([...this.#ending].map((session) => session.end('draining')));
  }

  #endOverdue(): void {
    for (const session of this.#byId.values()) {
      session.endOverdueCalls();
      if (session.isIdleSince(this.#options.sessionIdleMs)) void session.end('idle');
    }
  }
}

const isSame = (a: Principal, b: Principal): boolean =>
  a.issuer === b.issuer && a.subject === b.subject && a.client === b.client;
