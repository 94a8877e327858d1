import { redactCredentials } from './redacted-content.ts';

/** A line that a process of a server wrote to stderr. */
export interface StderrLine {
  readonly pid: number | undefined;
  readonly line: string;
}

/** So many lines of each server are kept (P8); each is cut where it is read. */
const maxKept = 20;
const maxLength = 500;

/** The last lines of each server, for a person who asks why it does not work. */
export class StderrLines {
  readonly #byServer = new Map<string, StderrLine[]>();

  add(server: string, line: string, pid: number | undefined): void {
    const lines = this.#byServer.get(server) ?? [];
    this.#byServer.set(server, lines);
    lines.push({ pid, line: line.slice(0, maxLength) });
    if (lines.length > maxKept) lines.shift();
  }

  /** Oldest first, without what looks like a credential. */
  of(server: string): readonly StderrLine[] {
    return (this.#byServer.get(server) ?? []).map(({ pid, line }) => ({ pid, line: redactCredentials(line) }));
  }

  /** A server is not configured any more. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }
}
