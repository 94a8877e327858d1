import { redactCredentials } from './redacted-content.ts';

/** The span in which an incident makes a server degraded, in milliseconds. */
export const incidentSpanMs = 300_000;

/** The number of exits and of noise lines that are kept for each server, and the length of a line (P8). */
const maxExits = 100;
const maxLines = 5;
const maxLineBytes = 500;

/** The incidents of one server within `incidentSpanMs`. */
export interface Incidents {
  /** How often a process or connection of the server was lost. */
  readonly exits: number;
  /** How many lines on stdout were not messages. */
  readonly noise: number;
  /** The last of these lines, oldest first, with likely credentials redacted. They are kept after the span. */
  readonly noiseLines: readonly string[];
}

interface ServerLog {
  exitTimes: number[];
  noise: number;
  noiseAt: number;
  readonly noiseLines: string[];
}

/** Records the lost backends and the stdout noise of servers: a server that answers can still be in trouble. */
export class ServerIncidents {
  readonly #byServer = new Map<string, ServerLog>();
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  addExit(server: string): void {
    const { exitTimes } = this.#logOf(server);
    exitTimes.push(this.#now());
    if (exitTimes.length > maxExits) exitTimes.shift();
  }

  /** Records a line on stdout that is not a message. */
  addNoise(server: string, line: Uint8Array = Buffer.alloc(0)): void {
    const log = this.#logOf(server);
    if (!this.#isRecent(log.noiseAt)) log.noise = 0;
    log.noise += 1;
    log.noiseAt = this.#now();
    log.noiseLines.push(Buffer.from(line.subarray(0, maxLineBytes)).toString());
    if (log.noiseLines.length > maxLines) log.noiseLines.shift();
  }

  of(server: string): Incidents {
    const log = this.#byServer.get(server);
    if (log === undefined) return { exits: 0, noise: 0, noiseLines: [] };
    log.exitTimes = log.exitTimes.filter((at) => this.#isRecent(at));
    return {
      exits: log.exitTimes.length,
      noise: this.#isRecent(log.noiseAt) ? log.noise : 0,
      noiseLines: log.noiseLines.map(redactCredentials),
    };
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }

  #isRecent(at: number): boolean {
    return this.#now() - at < incidentSpanMs;
  }

  #logOf(server: string): ServerLog {
    const known = this.#byServer.get(server);
    if (known !== undefined) return known;
    const created = { exitTimes: [], noise: 0, noiseAt: Number.NEGATIVE_INFINITY, noiseLines: [] };
    this.#byServer.set(server, created);
    return created;
  }
}
