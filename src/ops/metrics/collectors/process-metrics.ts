import type { Backend } from '../../../backend/backend.ts';
import type { Metrics } from '../metrics.ts';

/** What is known of one process of a server. */
export interface UsedByProcess {
  readonly group: number;
  readonly identity: string;
  readonly residentBytes: number;
  readonly cpuMs: number;
}

/** Where the processes of servers are found: the backends by server, and what the groups of those with a process use. */
export interface ProcessSources {
  readonly live: ReadonlyMap<string, ReadonlySet<Pick<Backend, 'pid'>>>;
  usageOf(groups: Pick<ReadonlySet<number>, 'has'>): Promise<readonly UsedByProcess[]>;
  /** The monotonic clock, in milliseconds. */
  now?(): number;
}

/** A scrape waits no longer for a look at all processes; it shows what the look before has seen then. */
const maxWaitMs = 50;

/** What was seen is good for so long: a look costs some 50 µs for each process of the machine, and others scrape, too. */
const freshMs = 5_000;

/** Looks at the processes of servers whenever metrics are asked for, one look at a time. */
export function watchProcesses(
  metrics: Metrics,
  { live, usageOf, now = () => performance.now() }: ProcessSources,
): void {
  let looking: Promise<void> | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** The processor time of those that were there at the last look. */
  let known = new Map<string, number>();

  const look = async (): Promise<void> => {
    const serverOf = new Map<number, string>();
    for (const [server, backends] of live) {
      for (const { pid } of backends) if (pid !== undefined) serverOf.set(pid, server);
    }
    const found = await usageOf(serverOf);
    const sums = new Map(Array.from(live.keys(), (server) => [server, { processes: 0, bytes: 0 }]));
    const seen = new Map<string, number>();
    for (const { group, identity, residentBytes, cpuMs } of found) {
      const server = serverOf.get(group) as string;
      const sum = sums.get(server) as { processes: number; bytes: number };
      sum.processes += 1;
      sum.bytes += residentBytes;
      seen.set(identity, cpuMs);
      metrics.tallies('processCpu').of(server).value += Math.max(0, cpuMs - (known.get(identity) ?? 0)) / 1_000;
    }
    known = seen;
    for (const [server, { processes, bytes }] of sums) {
      metrics.tallies('processes').of(server).value = processes;
      metrics.tallies('processMemory').of(server).value = bytes;
    }
  };

  metrics.onRefresh(async () => {
    if (looking === undefined && now() - lookedAt < freshMs) return;
    looking ??= look().finally(() => {
      looking = undefined;
      lookedAt = now();
    });
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, maxWaitMs);
    });
    await Promise.race([looking, enough]);
    clearTimeout(timer);
  });
}
