import type { Backend } from '../../../core/backend/backend.ts';
import { settlesWithin } from '../../../core/util/timing/within.ts';
import type { Metrics } from '../metrics.ts';

/** The resource usage of one process of a server. */
export interface MeasuredProcess {
  readonly group: number;
  readonly identity: string;
  readonly residentBytes: number;
  readonly cpuMs: number;
}

/** The sources of process metrics: the live backends by server, and the usage of their process groups. */
export interface ProcessSources {
  readonly live: ReadonlyMap<string, ReadonlySet<Pick<Backend, 'pid'>>>;
  usageOf(groups: Pick<ReadonlySet<number>, 'has'>): Promise<readonly MeasuredProcess[]>;
  /** The monotonic clock, in milliseconds. */
  now?(): number;
}

/** The longest time that a scrape waits for a measurement. After that the scrape gets the previous values. */
const maxWaitMs = 50;

/**
 * How long a measurement stays valid. It costs about 50 µs for each process of the machine, and several scrapers may
 * ask.
 */
const freshMs = 5_000;

/** Measures the processes of servers when metrics are refreshed, one measurement at a time. */
export function watchProcesses(
  metrics: Metrics,
  { live, usageOf, now = () => performance.now() }: ProcessSources,
): void {
  let measurement: Promise<void> | undefined;
  let measuredAt = Number.NEGATIVE_INFINITY;
  /** The processor time by process at the last measurement that found any. */
  let previousCpuMs = new Map<string, number>();

  const measure = async (): Promise<void> => {
    const serverOf = new Map<number, string>();
    for (const [server, backends] of live) {
      for (const { pid } of backends) if (pid !== undefined) serverOf.set(pid, server);
    }
    const found = await usageOf(serverOf);
    const sums = new Map(Array.from(live.keys(), (server) => [server, { processes: 0, bytes: 0 }]));
    const currentCpuMs = new Map<string, number>();
    for (const { group, identity, residentBytes, cpuMs } of found) {
      const server = serverOf.get(group) as string;
      const sum = sums.get(server) as { processes: number; bytes: number };
      sum.processes += 1;
      sum.bytes += residentBytes;
      currentCpuMs.set(identity, cpuMs);
      metrics.tallies('processCpu').of(server).value += Math.max(0, cpuMs - (previousCpuMs.get(identity) ?? 0)) / 1_000;
    }
    // Nothing is found if /proc cannot be read once. The time of the processes must not count again after that.
    if (found.length > 0) previousCpuMs = currentCpuMs;
    for (const [server, { processes, bytes }] of sums) {
      metrics.tallies('processes').of(server).value = processes;
      metrics.tallies('processMemory').of(server).value = bytes;
    }
  };

  metrics.onRefresh(async () => {
    if (measurement === undefined && now() - measuredAt < freshMs) return;
    measurement ??= measure().finally(() => {
      measurement = undefined;
      measuredAt = now();
    });
    await settlesWithin(measurement, maxWaitMs);
  });
}
