import type { SessionName } from '../../session/session-observer.ts';

/** Which session has which process, for whoever logs what a process does: by their short names, which open nothing (P12). */
export class SessionByProcess {
  readonly #byPid = new Map<number, string>();
  readonly #pids = new Map<string, number>();

  /** The process of this session is this one from now on; undefined for a server that is none of the gateway's processes. */
  set({ session }: SessionName, pid: number | undefined): void {
    this.forget({ session });
    if (pid === undefined) return;
    this.#byPid.set(pid, session);
    this.#pids.set(session, pid);
  }

  /** The session has ended. */
  forget({ session }: Pick<SessionName, 'session'>): void {
    const pid = this.#pids.get(session);
    this.#pids.delete(session);
    // Its number may be another session's process by now.
    if (pid !== undefined && this.#byPid.get(pid) === session) this.#byPid.delete(pid);
  }

  /** The session that has a process; undefined for one that no session has, or not yet. */
  sessionOf(pid: number | undefined): string | undefined {
    return pid === undefined ? undefined : this.#byPid.get(pid);
  }
}
