import type { SessionSnapshot } from '../host.ts';

/** A user with one client, and the number of their sessions. */
export interface SessionUser {
  /** The user; undefined without authentication. */
  readonly user: string | undefined;
  /** The name and version that the client gave itself; empty if it gave none. */
  readonly client: string;
  readonly sessions: number;
}

/** The number of users that are shown for each server (P8). */
const maxUsers = 3;

/** Counts the sessions of a server by user and client. */
export class SessionUsers {
  readonly #byUser = new Map<string, Map<string, number>>();

  add({ principal, client }: Pick<SessionSnapshot, 'principal' | 'client'>): void {
    const clients = this.#byUser.get(principal.subject) ?? new Map<string, number>();
    this.#byUser.set(principal.subject, clients);
    clients.set(client, (clients.get(client) ?? 0) + 1);
  }

  /** Returns those with the most sessions. */
  list(): readonly SessionUser[] {
    return [...this.#byUser]
      .flatMap(([user, clients]) =>
        Array.from(clients, ([client, sessions]) => ({ user: user || undefined, client, sessions })),
      )
      .sort((a, b) => b.sessions - a.sessions)
      .slice(0, maxUsers);
  }
}
