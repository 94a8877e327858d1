import { randomBytes } from 'node:crypto';
import type { Reason } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Quotas, SessionUse } from '../quota/quotas.ts';
import type { Reply } from '../reply/reply.ts';
import type { SessionEndReason } from '../session/end-reason.ts';
import type { SessionLookup } from '../session/lookup.ts';
import { Session } from '../session/session.ts';
import { keyFromId } from '../session/session-key.ts';
import type { SessionObserver } from '../session/session-observer.ts';
import { type SessionOptions, type SessionParts, singleInstance } from '../session/session-options.ts';
import type { Store } from '../store/store.ts';

/** What sessions of connections need of those around them. */
export interface ConnectionSessionsOptions {
  readonly options: SessionOptions;
  readonly observer: SessionObserver;
  readonly storeSignal: AbortSignal;
  readonly quotas: Quotas;
  /** Why no session more is opened, if it is not. */
  refuses(of: SessionUse, initialize: Message): Reason | undefined;
}

/** Where a session of a connection is kept, and who is told of its end. */
export interface ConnectionSessionHome {
  /** Of this instance alone. */
  readonly store: Store;
  /** The most bytes of one event: nobody has to keep it for a client that comes back. */
  readonly maxEventBytes: number;
  /** The session ends; what it still says to its client comes after. */
  onEnding(reason: SessionEndReason): void;
}

/**
 * Sessions that live and die with one connection of their client (docs/decisions/0019). No other instance and no shared
 * store knows of them, nobody can ask for one, and who has the connection ends the session with it.
 */
export class ConnectionSessions {
  readonly #options: ConnectionSessionsOptions;
  readonly #sessions = new Set<Session>();
  readonly #ending = new Set<Session>();

  constructor(options: ConnectionSessionsOptions) {
    this.#options = options;
  }

  /** How many there are, with those that are ending. */
  get size(): number {
    return this.#sessions.size + this.#ending.size;
  }

  /** Those that can be used. */
  values(): Iterable<Session> {
    return this.#sessions;
  }

  /** Those whose backend is still ending. */
  ending(): Iterable<Session> {
    return this.#ending;
  }

  /**
   * Opens a session whose client hears everything, this answer too, on its one stream. The reply is `accepted` when the
   * session is there to be listened to.
   * @returns undefined if it was refused, which the reply says
   */
  open(
    { server, principal }: Pick<SessionLookup, 'server' | 'principal'>,
    initialize: Message,
    reply: Reply,
    { store, maxEventBytes, onEnding }: ConnectionSessionHome,
  ): Session | undefined {
    const { options, observer, storeSignal, quotas, refuses } = this.#options;
    const refused = refuses({ server, principal }, initialize);
    if (refused !== undefined) {
      reply.fault(refused, initialize.id ?? null);
      return undefined;
    }
    const seat = quotas.acquireSession({ server, principal });
    const parts: SessionParts = {
      key: keyFromId(randomBytes(32).toString('base64url')),
      server,
      principal,
      instance: () => singleInstance,
      store,
      storeSignal,
      options: { ...options, maxEventBytes },
      observer,
      onStart: seat.started,
      onReady: () => undefined,
      onEnding: (reason) => {
        this.#sessions.delete(session);
        this.#ending.add(session);
        seat.ending();
        onEnding(reason);
      },
      onEnded: () => {
        this.#ending.delete(session);
        seat.ended();
      },
    };
    const start = { epoch: Date.now(), initialize: initialize.text, isOneStream: true };
    const session: Session = new Session(parts, start);
    this.#sessions.add(session);
    session.start(reply);
    return session;
  }
}
