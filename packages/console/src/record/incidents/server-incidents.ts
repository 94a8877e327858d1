import type { ConsoleHost } from '../../host.ts';
import { tellingLines } from '../telling-lines.ts';

/** The span in which an incident makes a server degraded, in milliseconds. */
export const incidentSpanMs = 300_000;

/** The number of exits and of noise lines that are kept for each server, and the length of a line (P8). */
const maxExits = 100;
const maxLines = 5;
const maxLineBytes = 500;
const maxWords = 3;

/** The incidents of one server within `incidentSpanMs`. */
export interface Incidents {
  /** How often a process or connection of the server was lost. */
  readonly exits: number;
  /** Why the last process or connection was lost; undefined without a loss. */
  readonly lastExit: string | undefined;
  /** The time since the first of the counted losses, in milliseconds. */
  readonly exitSpanMs?: number;
  /** The last distinct lines on stderr before the last loss, oldest first, with likely credentials redacted. */
  readonly lastWords?: readonly string[];
  /** How many lines on stdout were not messages. */
  readonly noise: number;
  /** When the losses or lines that go on began, in milliseconds since 1970; undefined without any. */
  readonly since: number | undefined;
  /** The last of these lines, oldest first, with likely credentials redacted. They are kept after the span. */
  readonly noiseLines: readonly string[];
}

interface ServerLog {
  exitTimes: number[];
  lastExit: string | undefined;
  lastWords: readonly string[];
  /** When the first of the losses was that followed each other within the span, on the monotonic clock. */
  exitsSince: number;
  noise: number;
  noiseAt: number;
  /** When the first of the counted lines was, on the monotonic clock. */
  noiseSince: number;
  readonly noiseLines: string[];
}

/** Records the lost backends and the stdout noise of servers: a server that answers can still be in trouble. */
export class ServerIncidents {
  readonly #byServer = new Map<string, ServerLog>();
  readonly #host: Pick<ConsoleHost, 'redact'>;
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(host: Pick<ConsoleHost, 'redact'>, now: () => number = () => performance.now()) {
    this.#host = host;
    this.#now = now;
  }

  /**
   * Records a lost process or connection.
   * @param detail why it was lost, in the gateway's own words
   * @param output the last lines that it wrote to stderr
   */
  addExit(server: string, detail: string, output: readonly string[] = []): void {
    const log = this.#logOf(server);
    if (!this.#isRecent(log.exitTimes.at(-1) ?? Number.NEGATIVE_INFINITY)) log.exitsSince = this.#now();
    log.exitTimes.push(this.#now());
    log.lastExit = detail;
    log.lastWords = tellingLines([...new Set(output)], maxWords).map((line) =>
      this.#host.redact(line.slice(0, maxLineBytes)),
    );
    if (log.exitTimes.length > maxExits) log.exitTimes.shift();
  }

  /** Records a line on stdout that is not a message, and `count - 1` others like it. */
  addNoise(server: string, line: Uint8Array = Buffer.alloc(0), count = 1): void {
    const log = this.#logOf(server);
    if (!this.#isRecent(log.noiseAt)) {
      log.noise = 0;
      log.noiseSince = this.#now();
    }
    log.noise += count;
    log.noiseAt = this.#now();
    log.noiseLines.push(Buffer.from(line.subarray(0, maxLineBytes)).toString());
    if (log.noiseLines.length > maxLines) log.noiseLines.shift();
  }

  of(server: string): Incidents {
    const log = this.#byServer.get(server);
    if (log === undefined) return { exits: 0, lastExit: undefined, noise: 0, since: undefined, noiseLines: [] };
    log.exitTimes = log.exitTimes.filter((at) => this.#isRecent(at));
    const isNoisy = this.#isRecent(log.noiseAt);
    const first = Math.min(
      log.exitTimes.length > 0 ? log.exitsSince : Number.POSITIVE_INFINITY,
      isNoisy ? log.noiseSince : Number.POSITIVE_INFINITY,
    );
    return {
      exits: log.exitTimes.length,
      lastExit: log.exitTimes.length === 0 ? undefined : log.lastExit,
      exitSpanMs: this.#now() - (log.exitTimes[0] ?? this.#now()),
      lastWords: log.exitTimes.length === 0 ? [] : log.lastWords,
      noise: isNoisy ? log.noise : 0,
      since: Number.isFinite(first) ? Date.now() - (this.#now() - first) : undefined,
      noiseLines: log.noiseLines.map((line) => this.#host.redact(line)),
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
    const created: ServerLog = {
      exitTimes: [],
      lastExit: undefined,
      lastWords: [],
      exitsSince: 0,
      noise: 0,
      noiseAt: Number.NEGATIVE_INFINITY,
      noiseSince: 0,
      noiseLines: [],
    };
    this.#byServer.set(server, created);
    return created;
  }
}
