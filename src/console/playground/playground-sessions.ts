import type { ServerResponse } from 'node:http';
import type { SessionName } from '../../session/session-observer.ts';
import { backendOwnerKey } from '../record/backend-owner.ts';

/** How it is known that a page is gone, and what is done then. */
export interface PlaygroundSessionsOptions {
  /** So long a page may be without any request of a session. */
  readonly awayMs: number;
  /** The page of this session is gone. Nothing may be left of the session itself. */
  onGone(name: SessionName): void;
}

/** A session that the playground has opened. */
interface Played {
  /** Requests that are not over. */
  open: number;
  /** True once the endpoint has let in who uses it: others cannot end it (P11). */
  isTheirs: boolean;
  away: NodeJS.Timeout | undefined;
}

/**
 * Ends the sessions of pages that are gone, also of those that could not say so. A page listens all the time, as clients do, so
 * that one without any open request is gone, or in a network that has broken, from which it comes back.
 */
export class PlaygroundSessions {
  readonly #options: PlaygroundSessionsOptions;
  readonly #played = new Map<string, Played>();

  constructor(options: PlaygroundSessionsOptions) {
    this.#options = options;
  }

  /** A request of the playground is about to be answered, which names this session. */
  hear(name: SessionName, outgoing: ServerResponse): void {
    const key = backendOwnerKey(name);
    const played = this.#played.get(key) ?? { open: 0, isTheirs: false, away: undefined };
    this.#played.set(key, played);
    clearTimeout(played.away);
    played.open += 1;
    outgoing.once('close', () => {
      played.open -= 1;
      if (outgoing.headersSent && outgoing.statusCode < 300) played.isTheirs = true;
      if (played.open > 0) return;
      if (!played.isTheirs) this.#played.delete(key);
      else played.away = setTimeout(() => this.#gone(key, name), this.#options.awayMs).unref();
    });
  }

  /** Forgets them all. */
  close(): void {
    for (const { away } of this.#played.values()) clearTimeout(away);
    this.#played.clear();
  }

  #gone(key: string, name: SessionName): void {
    this.#played.delete(key);
    this.#options.onGone(name);
  }
}
