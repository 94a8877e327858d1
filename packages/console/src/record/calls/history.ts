import { type AnswerTimes, CallCounts } from './call-counts.ts';

/** The ranges of the plots: the length of a step, and the number of steps that are kept. */
export const historyRanges = {
  '5m': { stepMs: 1_000, steps: 300 },
  '1h': { stepMs: 10_000, steps: 360 },
  '24h': { stepMs: 240_000, steps: 360 },
} as const;

export type HistoryRange = keyof typeof historyRanges;

/**
 * The limit for servers with plots of their own (P8). One server costs 24 KiB (1,020 steps of 6 numbers of 4 bytes), the
 * instance costs 48 KiB, and all of it at most 816 KiB.
 */
const maxServers = 32;

/** The state of the instance at one moment. */
export interface Gauges {
  readonly sessions: number;
  readonly streams: number;
  readonly memoryBytes: number;
  readonly childBytes: number;
  /** The memory of the processes of each server that has some. */
  readonly bytesByServer: ReadonlyMap<string, number>;
}

/** What is plotted for each server, and for the instance. Rates are per second. */
const callSeries = ['calls', 'failures', 'p50Ms', 'p95Ms', 'p99Ms'] as const;
const serverSeries = [...callSeries, 'memoryBytes'] as const;
const instanceSeries = [
  ...callSeries,
  'sessions',
  'streams',
  'memoryBytes',
  'childBytes',
  'events',
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

/** What a person compares the present numbers of the instance with. Undefined while too little is known. */
export interface UsualNumbers {
  /** The median of the sessions over the last 24 hours, or over the time that is known. */
  readonly sessions: number | undefined;
  readonly sessionsSpanMs: number;
  /** How much the memory of the gateway and its servers grew within the last hour, or the time that is known. */
  readonly grownBytes: number | undefined;
  readonly grownSpanMs: number;
  /** The server whose memory grew most in this time. */
  readonly mostGrown: { readonly name: string; readonly bytes: number } | undefined;
}

/** So many steps are needed for a comparison. */
const minSteps = 6;

/**
 * Returns the response times of the last minute, of a server or of all. A second has too few calls for quantiles, so the
 * steps that are shorter than a minute show those of the minute before.
 */
export type TimesOfMinute = (server?: string) => AnswerTimes;

const minuteMs = 60_000;

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

  /** Returns the known values of a series, oldest first. */
  known(name: string, newest: number): number[] {
    const ring = this.#rings.get(name) as Float32Array;
    return Array.from(ring, (_, index) => ring[(newest + 1 + index) % this.#steps] as number).filter(
      (value) => !Number.isNaN(value),
    );
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
  readonly #timesOf: TimesOfMinute | undefined;
  readonly instance: Track;
  readonly servers = new Map<string, Track>();
  /** How many resumes, takeovers and events to clients the open step has. */
  readonly counts = { resumes: 0, takeovers: 0, events: 0 };
  /** The number of the step that is open now. */
  #open: number;

  constructor(
    { stepMs, steps }: { readonly stepMs: number; readonly steps: number },
    now: number,
    timesOf: TimesOfMinute,
  ) {
    this.stepMs = stepMs;
    this.steps = steps;
    this.#timesOf = stepMs < minuteMs ? timesOf : undefined;
    this.instance = new Track(instanceSeries, steps);
    this.#open = Math.floor(now / stepMs);
  }

  /** Returns the open counts of a server; undefined if there are too many servers. */
  openOf(server: string): CallCounts | undefined {
    const known = this.servers.get(server);
    if (known !== undefined) return known.open;
    if (this.servers.size >= maxServers) return undefined;
    const created = new Track(serverSeries, this.steps);
    this.servers.set(server, created);
    return created.open;
  }

  /** Ends the open step if its time is over. Steps that were missed, as by a gateway that hung, have no values. */
  advanceTo(now: number, gauges: () => Gauges): void {
    const current = Math.floor(now / this.stepMs);
    if (current === this.#open) return;
    const { bytesByServer, ...measured } = gauges();
    for (const [name, track] of this.servers)
      track.close(this.#open, { ...this.#valuesOf(track.open, name), memoryBytes: bytesByServer.get(name) ?? null });
    const counts = { ...this.counts, events: this.counts.events / (this.stepMs / 1_000) };
    this.instance.close(this.#open, { ...this.#valuesOf(this.instance.open), ...measured, ...counts });
    this.counts.resumes = 0;
    this.counts.takeovers = 0;
    this.counts.events = 0;
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

  /** Returns the known values of a series of the instance, oldest first. */
  known(series: (typeof instanceSeries)[number]): number[] {
    return this.instance.known(series, this.#open - 1);
  }

  /** Returns the known memory of each server, oldest first. */
  memoryByServer(): (readonly [name: string, bytes: number[]])[] {
    return Array.from(this.servers, ([name, track]) => [name, track.known('memoryBytes', this.#open - 1)]);
  }

  #valuesOf(counts: CallCounts, server?: string): Record<string, number | null> {
    const seconds = this.stepMs / 1_000;
    const times = this.#timesOf?.(server) ?? counts.answerTimes;
    return { calls: counts.calls / seconds, failures: counts.failures / seconds, ...times };
  }
}

/**
 * Keeps the numbers of the last 24 hours for plots, in rings of fixed size. A coarse range has the sums of its steps for
 * calls, and the last value of each step for gauges.
 */
export class History {
  readonly #ranges: ReadonlyMap<string, Range>;
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(timesOf: TimesOfMinute, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#ranges = new Map(
      Object.entries(historyRanges).map(([name, range]) => [name, new Range(range, now(), timesOf)]),
    );
  }

  /** Adds the newest counts of a server to the open steps. */
  add(server: string, counts: CallCounts): void {
    for (const range of this.#ranges.values()) {
      range.openOf(server)?.add(counts);
      range.instance.open.add(counts);
    }
  }

  countResume(): void {
    for (const { counts } of this.#ranges.values()) counts.resumes += 1;
  }

  /** Counts events that clients received. */
  countEvents(events: number): void {
    for (const { counts } of this.#ranges.values()) counts.events += events;
  }

  countTakeover(): void {
    for (const { counts } of this.#ranges.values()) counts.takeovers += 1;
  }

  /** Ends the steps whose time is over. The gauges are read at most once. */
  tick(gauges: () => Gauges): void {
    const now = this.#now();
    let measured: Gauges | undefined;
    for (const range of this.#ranges.values())
      range.advanceTo(now, () => {
        measured ??= gauges();
        return measured;
      });
  }

  /** Returns the steps of a range after this step, for a page that has the earlier ones. */
  after(range: HistoryRange, step: number): HistoryPart {
    return (this.#ranges.get(range) as Range).after(step, this.#now());
  }

  /** Returns what the present numbers are compared with. It is for an open page: the rings are read as a whole. */
  usual(): UsualNumbers {
    const [hour, day] = (['1h', '24h'] as const).map((name) => this.#ranges.get(name) as Range) as [Range, Range];
    const range = day.known('sessions').length >= minSteps ? day : hour;
    const sessions = range.known('sessions');
    const servers = hour.known('childBytes');
    const memory = hour.known('memoryBytes').map((bytes, index) => bytes + (servers[index] as number));
    const [mostGrown] = hour
      .memoryByServer()
      .map(([name, values]) => ({ name, bytes: growthOf(values) ?? 0 }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes);
    return {
      sessions: sessions.length >= minSteps ? median(sessions) : undefined,
      sessionsSpanMs: sessions.length * range.stepMs,
      grownBytes: growthOf(memory),
      grownSpanMs: memory.length * hour.stepMs,
      mostGrown,
    };
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    for (const { servers } of this.#ranges.values()) servers.delete(server);
  }
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;

/** The difference between the newest and the oldest values; undefined while there are too few. */
const growthOf = (values: readonly number[]): number | undefined =>
  values.length >= 2 * minSteps ? median(values.slice(-minSteps)) - median(values.slice(0, minSteps)) : undefined;
