// Playground: sessions that a person opens on the status page to try a server.

import type { ServerResponse } from 'node:http';
import type { SessionName } from './host.ts';
import { backendOwnerKey } from './host.ts';

/** The settings of the playground sessions. */
export interface PlaygroundSessionsOptions<Sender> {
  /** How long a session may be without an open request before its page counts as gone. */
  readonly awayMs: number;
  /**
   * Called when the page of a session is gone. The session itself may have ended already.
   * @param sender who has used the session. Nobody may end the session of another user (P11)
   */
  onGone(name: SessionName, sender: Sender): void;
}

/** A session of the playground. */
interface PlaygroundSession<Sender> {
  /** The number of open requests. */
  openRequests: number;
  /** Who has used the session: set when the endpoint has accepted a request for it. */
  sender: Sender | undefined;
  goneTimer: NodeJS.Timeout | undefined;
}

/**
 * Ends the sessions of pages that are gone, including pages that could not end theirs. A page keeps a request open all
 * the time, as clients do. A session without one has a page that is gone or whose network is broken.
 */
export class PlaygroundSessions<Sender> {
  readonly #options: PlaygroundSessionsOptions<Sender>;
  readonly #sessions = new Map<string, PlaygroundSession<Sender>>();

  constructor(options: PlaygroundSessionsOptions<Sender>) {
    this.#options = options;
  }

  /**
   * Tracks a request of the playground that names this session, until its response ends.
   * @param senderOf the sender, if the endpoint has taken the request for one of this session
   */
  trackRequest(name: SessionName, outgoing: ServerResponse, senderOf: () => Sender | undefined): void {
    const key = backendOwnerKey(name);
    const session: PlaygroundSession<Sender> = this.#sessions.get(key) ?? {
      openRequests: 0,
      sender: undefined,
      goneTimer: undefined,
    };
    this.#sessions.set(key, session);
    clearTimeout(session.goneTimer);
    session.openRequests += 1;
    outgoing.once('close', () => {
      session.openRequests -= 1;
      if (outgoing.headersSent && outgoing.statusCode < 300) session.sender ??= senderOf();
      const { sender } = session;
      if (session.openRequests > 0) return;
      if (sender === undefined) this.#sessions.delete(key);
      else session.goneTimer = setTimeout(() => this.#reportGone(key, name, sender), this.#options.awayMs).unref();
    });
  }

  /** Forgets all sessions. */
  close(): void {
    for (const { goneTimer } of this.#sessions.values()) clearTimeout(goneTimer);
    this.#sessions.clear();
  }

  #reportGone(key: string, name: SessionName, sender: Sender): void {
    this.#sessions.delete(key);
    this.#options.onGone(name, sender);
  }
}
