import type { ConsoleHost } from '../host.ts';

/** A line that a process of a server wrote to stderr. */
export interface StderrLine {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly pid: number | undefined;
  readonly line: string;
}

/** The number of lines that are kept for each server (P8), and their length. */
const maxKept = 20;
const maxLength = 500;

/** Keeps the last stderr lines of each server, for a person who asks why it does not work. */
export class StderrLines {
  readonly #byServer = new Map<string, StderrLine[]>();
  readonly #host: Pick<ConsoleHost, 'redact'>;

  constructor(host: Pick<ConsoleHost, 'redact'>) {
    this.#host = host;
  }

  add(server: string, line: string, pid: number | undefined): void {
    const lines = this.#byServer.get(server) ?? [];
    this.#byServer.set(server, lines);
    lines.push({ at: Date.now(), pid, line: line.slice(0, maxLength) });
    if (lines.length > maxKept) lines.shift();
  }

  /** Returns the lines of a server, oldest first, with likely credentials redacted. */
  of(server: string): readonly StderrLine[] {
    return (this.#byServer.get(server) ?? []).map(({ line, ...of }) => ({ ...of, line: this.#host.redact(line) }));
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }
}
