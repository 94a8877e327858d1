import type { EndedCall } from '../../call/call-events.ts';
import { CallCounts } from './call-counts.ts';

/** The ranges of the plots: the length of a step, and the number of steps that are kept. */
export const historyRanges = {
  '5m': { stepMs: 1_000, steps: 300 },
  '1h': { stepMs: 10_000, steps: 360 },
  '24h': { stepMs: 240_000, steps: 360 },
} as const;

export type HistoryRange = keyof typeof historyRanges;

/**
 * The limit for servers with plots of their own (P8). One server costs 20 KiB (1,020 steps of 5 numbers of 4 bytes), the
 * instance costs 44 KiB, and all of it at most 0.7 MiB.
 */
const maxServers = 32;

/** The state of the instance at one moment. */
export interface Gauges {
  readonly sessions: number;
  readonly streams: number;
  readonly memoryBytes: number;
  readonly childBytes: number;
}

/** What is plotted for each server, and for the instance. Rates are per second. */
const callSeries = ['calls', 'failures', 'p50Ms', 'p95Ms', 'p99Ms'] as const;
const instanceSeries = [
  ...callSeries,
  'sessions',
  'streams',
  'memoryBytes',
  'childBytes',
  'resumes',
  'takeovers',
] as const;

/** The values of each series, oldest first; null for a step without a value. */
export type SeriesValues = Readonly<Record<string, readonly (number | null)[]>>;

/** The steps of a range that a page does not have yet. */
export interface HistoryPart {
  readonly stepMs: number;
  /** The number of steps in the whole range. */
  readonly steps: number;
  /** The number of the newest step; a page asks for those after it. */
  readonly newest: number;
  /** The end of the newest step, in milliseconds since 1970. */
  readonly endsAt: number;
  readonly instance: SeriesValues;
  readonly servers: Readonly<Record<string, SeriesValues>>;
}

/** The rings of one subject in one range, and the calls of its open step. */
class Track {
  readonly open = new CallCounts();
  readonly #rings: ReadonlyMap<string, Float32Array>;
  readonly #steps: number;

  constructor(series: readonly string[], steps: number) {
    this.#steps = steps;
    this.#rings = new Map(series.map((name) => [name, new Float32Array(steps).fill(Number.NaN)]));
  }

  /** Ends a step. Values that are not given stay unknown. */
  close(step: number, values: Readonly<Record<string, number | null>>): void {
    for (const [name, ring] of this.#rings) ring[step % this.#steps] = values[name] ?? Number.NaN;
    this.open.clear();
  }

  /** Returns the values of these steps, rounded to four digits. */
  values(from: number, to: number): SeriesValues {
    const read = (ring: Float32Array): (number | null)[] =>
      Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => {
        const value = ring[(from + index) % this.#steps] as number;
        return Number.isNaN(value) ? null : Number(value.toPrecision(4));
      });
    return Object.fromEntries(Array.from(this.#rings, ([name, ring]) => [name, read(ring)]));
  }
}

/** One range: the tracks of the instance and of its servers. */
class Range {
  readonly stepMs: number;
  readonly steps: number;
  readonly instance: Track;
  readonly servers = new Map<string, Track>();
  /** How many resumes and takeovers the open step has. */
  readonly counts = { resumes: 0, takeovers: 0 };
  /** The number of the step that is open now. */
  #open: number;

  constructor({ stepMs, steps }: { readonly stepMs: number; readonly steps: number }, now: number) {
    this.stepMs = stepMs;
    this.steps = steps;
    this.instance = new Track(instanceSeries, steps);
    this.#open = Math.floor(now / stepMs);
  }

  /** Returns the open counts of a server; undefined if there are too many servers. */
  openOf(server: string): CallCounts | undefined {
    const known = this.servers.get(server);
    if (known !== undefined) return known.open;
    if (this.servers.size >= maxServers) return undefined;
    const created = new Track(callSeries, this.steps);
    this.servers.set(server, created);
    return created.open;
  }

  /** Ends the open step if its time is over. Steps that were missed, as by a gateway that hung, have no values. */
  advanceTo(now: number, gauges: () => Gauges): void {
    const current = Math.floor(now / this.stepMs);
    if (current === this.#open) return;
    for (const track of this.servers.values()) track.close(this.#open, this.#valuesOf(track.open));
    this.instance.close(this.#open, { ...this.#valuesOf(this.instance.open), ...gauges(), ...this.counts });
    this.counts.resumes = 0;
    this.counts.takeovers = 0;
    const firstMissed = Math.max(this.#open + 1, current - this.steps);
    for (let step = firstMissed; step < current; step += 1)
      for (const track of [this.instance, ...this.servers.values()]) track.close(step, {});
    this.#open = current;
  }

  /** Returns the closed steps after this one. */
  after(step: number, now: number): HistoryPart {
    const newest = this.#open - 1;
    const from = Math.max(step + 1, newest - this.steps + 1, 0);
    return {
      stepMs: this.stepMs,
      steps: this.steps,
      newest,
      endsAt: Date.now() - (now - this.#open * this.stepMs),
      instance: this.instance.values(from, newest),
      servers: Object.fromEntries(Array.from(this.servers, ([name, track]) => [name, track.values(from, newest)])),
    };
  }

  #valuesOf({ calls, failures, answerTimes }: CallCounts): Record<string, number | null> {
    const seconds = this.stepMs / 1_000;
    return { calls: calls / seconds, failures: failures / seconds, ...answerTimes };
  }
}

/**
 * Keeps the numbers of the last 24 hours for plots, in rings of fixed size. A coarse range has the sums of its steps for
 * calls, and the last value of each step for gauges.
 */
export class History {
  readonly #ranges: ReadonlyMap<string, Range>;
  readonly #now: () => number;
  /** The calls since the last tick, so that a call is counted once and not once for each range. */
  readonly #sinceTick = new Map<string, CallCounts>();
  #gauges: (() => Gauges) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#ranges = new Map(Object.entries(historyRanges).map(([name, range]) => [name, new Range(range, now())]));
  }

  count(call: EndedCall): void {
    const { server } = call.origin;
    let counts = this.#sinceTick.get(server);
    if (counts === undefined) {
      counts = new CallCounts();
      this.#sinceTick.set(server, counts);
    }
    counts.count(call);
  }

  countResume(): void {
    for (const { counts } of this.#ranges.values()) counts.resumes += 1;
  }

  countTakeover(): void {
    for (const { counts } of this.#ranges.values()) counts.takeovers += 1;
  }

  /** Starts to record. Before, calls are only counted. */
  start(gauges: () => Gauges): void {
    this.#gauges = gauges;
    this.#timer ??= setInterval(() => this.tick(), 1_000).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Moves the calls since the last tick into the ranges, and ends the steps whose time is over. */
  tick(): void {
    const gauges = this.#gauges;
    if (gauges === undefined) return;
    let measured: Gauges | undefined;
    for (const range of this.#ranges.values()) {
      for (const [server, counts] of this.#sinceTick) {
        if (counts.calls === 0) continue;
        range.openOf(server)?.add(counts);
        range.instance.open.add(counts);
      }
      range.advanceTo(this.#now(), () => {
        measured ??= gauges();
        return measured;
      });
    }
    for (const counts of this.#sinceTick.values()) counts.clear();
  }

  /** Returns the steps of a range after this step, for a page that has the earlier ones. */
  after(range: HistoryRange, step: number): HistoryPart {
    return (this.#ranges.get(range) as Range).after(step, this.#now());
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#sinceTick.delete(server);
    for (const { servers } of this.#ranges.values()) servers.delete(server);
  }
}
