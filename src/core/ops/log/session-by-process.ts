import type { SessionName } from '../../session/session-events.ts';

/**
 * Finds the session of a process, for logs of what a process does. Sessions have their short names, which give no
 * access (P12).
 */
export class SessionByProcess {
  readonly #byPid = new Map<number, string>();
  readonly #pids = new Map<string, number>();

  /** Records the process of a session; undefined if the server is not a local process. */
  set({ session }: SessionName, pid: number | undefined): void {
    this.forget({ session });
    if (pid === undefined) return;
    this.#byPid.set(pid, session);
    this.#pids.set(session, pid);
  }

  /** Forgets the process of a session that has ended or hibernates. */
  forget({ session }: Pick<SessionName, 'session'>): void {
    const pid = this.#pids.get(session);
    this.#pids.delete(session);
    // The operating system may have reused the number for the process of another session.
    if (pid !== undefined && this.#byPid.get(pid) === session) this.#byPid.delete(pid);
  }

  /** Returns the session of a process; undefined if no session has it, or none yet. */
  sessionOf(pid: number | undefined): string | undefined {
    return pid === undefined ? undefined : this.#byPid.get(pid);
  }
}
