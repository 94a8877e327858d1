import type { BackendEnd } from '../backend/backend.ts';

/** What is told of a server's processes outside of sessions. */
export interface ServerListeners {
  /** A process of the server runs, or a connection to it stands. */
  onStarted?(): void;
  /** A line of its stderr, cut, escaped and rate-limited. */
  onStderr?(line: string, pid: number | undefined): void;
  /** A remote server did not take a message: one sentence, and how many notifications and answers were lost so in all. */
  onPostFailed?(detail: string, dropped: number): void;
  /** A spare ended before anybody used it. */
  onSpareEnd?(end: BackendEnd): void;
}
