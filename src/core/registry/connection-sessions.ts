import { randomBytes } from 'node:crypto';
import type { Reason } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Quotas, QuotaUse } from '../quota/quotas.ts';
import { faultAnswer, type Reply } from '../reply/reply.ts';
import type { SessionEndReason } from '../session/end-reason.ts';
import type { SessionLookup } from '../session/lookup.ts';
import { Session, type SessionHost } from '../session/session.ts';
import type { SessionTelemetry } from '../session/session-events.ts';
import { keyFromId } from '../session/session-key.ts';
import { type SessionOptions, type SessionParts, singleInstance } from '../session/session-options.ts';
import type { Store } from '../store/store.ts';

const getSingleInstance: SessionParts['instance'] = () => singleInstance;

/** Options of `ConnectionSessions`. */
export interface ConnectionSessionsOptions {
  readonly options: SessionOptions;
  readonly home: ConnectionHome;
  readonly telemetry: SessionTelemetry;
  readonly storeSignal: AbortSignal;
  readonly quotas: Quotas;
  /** The reason to open no further session; undefined if one may be opened. */
  refuses(use: QuotaUse, initialize: Message): Reason | undefined;
}

/** Where the sessions of connections are kept. */
export interface ConnectionHome {
  /** A store that belongs to this instance alone. */
  readonly store: Store;
  /** The most bytes of one event. The log keeps no events for a reconnect here. */
  readonly maxEventBytes: number;
}

/**
 * Sessions that live and die with one connection of their client (docs/decisions/0195). No other instance and no shared
 * store knows them, and no request can name one. The holder of the connection ends the session with it.
 */
export class ConnectionSessions implements SessionHost {
  readonly #options: ConnectionSessionsOptions;
  readonly #sessions = new Map<Session, (reason: SessionEndReason) => void>();
  readonly #ending = new Set<Session>();

  constructor(options: ConnectionSessionsOptions) {
    this.#options = options;
  }

  /** The number of sessions, including those that are ending. */
  get size(): number {
    return this.#sessions.size + this.#ending.size;
  }

  /** The sessions that can be used. */
  values(): Iterable<Session> {
    return this.#sessions.keys();
  }

  /** The sessions whose backend is still ending. */
  ending(): Iterable<Session> {
    return this.#ending;
  }

  /**
   * Opens a session whose client gets everything, this answer too, on its one stream. The reply is `accepted` once the
   * session can be listened to.
   * @param onEnding called when the session is ending; its last messages to the client follow
   * @returns undefined if the session was refused; the reply then has the fault
   */
  open(
    { server, principal }: Pick<SessionLookup, 'server' | 'principal'>,
    initialize: Message,
    reply: Reply,
    onEnding: (reason: SessionEndReason) => void,
  ): Session | undefined {
    const { options, home, telemetry, storeSignal, quotas, refuses } = this.#options;
    const refusal = refuses({ server, principal }, initialize);
    if (refusal !== undefined) {
      reply.answer(faultAnswer(refusal, initialize.id ?? null));
      return undefined;
    }
    const { store, maxEventBytes } = home;
    const parts: SessionParts = {
      key: keyFromId(randomBytes(32).toString('base64url')),
      server,
      principal,
      instance: getSingleInstance,
      store,
      storeSignal,
      options: { ...options, maxEventBytes },
      telemetry,
      permit: quotas.acquire({ server, principal }),
    };
    const start = { epoch: Date.now(), initialize: initialize.text, isOneStream: true };
    const session = new Session(parts, start, this);
    this.#sessions.set(session, onEnding);
    session.start(reply);
    return session;
  }

  onReady(): void {
    // No request and no other instance can name the session.
  }

  onEnding(session: Session, reason: SessionEndReason): void {
    const onEnding = this.#sessions.get(session);
    this.#sessions.delete(session);
    this.#ending.add(session);
    session.parts.permit.ending();
    onEnding?.(reason);
  }

  onEnded(session: Session): void {
    this.#ending.delete(session);
    session.parts.permit.ended();
  }
}
