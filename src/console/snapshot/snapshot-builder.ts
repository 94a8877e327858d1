import type { Readiness } from '../../registry/readiness.ts';
import { type BackendOwner, backendOwnerKey } from '../record/backend-owner.ts';
import type { ConsoleRecord } from '../record/console-record.ts';
import type { Gauges } from '../record/history.ts';
import type { InstanceSummary, KnownInstances } from './known-instances.ts';
import { byTrouble, findCondition, isFailing } from './server-condition.ts';
import {
  type ChildView,
  type RecordOf,
  type ServerHealthView,
  type ServerView,
  type SessionQuery,
  type SessionState,
  type SessionView,
  type Snapshot,
  showChildren,
  showSession,
  showSessions,
} from './snapshot.ts';

/** The state of a server that the record does not have. */
export interface ServerState {
  readonly name: string;
  readonly transport: string;
  readonly era: string;
  readonly health: ServerHealthView;
  /** The calls and subscription streams in flight at the process that modern clients share. */
  readonly shared: { readonly calls: number; readonly streams: number };
}

/** How old the memory of processes may be: for an open page, and for the history while no page is open. */
const maxAgeSeenMs = 3_000;
const maxAgeUnseenMs = 20_000;

/** The sources of a snapshot. */
export interface SnapshotSources {
  readonly record: ConsoleRecord;
  /** The name of this instance. It is not secret, and clients do not need it. */
  readonly name: string;
  readonly version: string;
  readonly maxSessions: number;
  readiness(): Readiness;
  sessions(): readonly SessionState[];
  servers(): readonly ServerState[];
  /**
   * Returns the memory of these processes and their children, in bytes, as measured at most `maxAgeMs` ago or soon
   * after. Unknown processes are left out.
   */
  memoryOf(pids: ReadonlySet<number>, maxAgeMs: number): ReadonlyMap<number, number>;
}

/** Builds snapshots of the gateway for the page. Nothing is kept between two snapshots. */
export class SnapshotBuilder {
  readonly #sources: SnapshotSources;

  constructor(sources: SnapshotSources) {
    this.#sources = sources;
  }

  /** The summary that other instances receive. */
  summary(): InstanceSummary {
    const { name, version, readiness, sessions, servers } = this.#sources;
    const all = sessions();
    const streams = all.reduce((sum, { snapshot }) => sum + snapshot.streams, 0);
    const shared = servers().reduce((sum, server) => sum + server.shared.streams, 0);
    return { name, version, readiness: readiness(), sessions: all.length, streams: streams + shared };
  }

  /** The state of the instance for the history. */
  gauges(): Gauges {
    const { sessions, streams } = this.summary();
    return { sessions, streams, memoryBytes: process.memoryUsage.rss(), childBytes: this.#childBytes() };
  }

  /** Builds a snapshot with the sessions that match the query. */
  snapshot(query: SessionQuery, instances: KnownInstances): Snapshot {
    const { record, maxSessions, sessions } = this.#sources;
    const all = sessions();
    const recent = record.rates.recent();
    const servers = this.#servers(all);
    return {
      instance: {
        ...this.summary(),
        ...recent,
        isFailing: isFailing(recent),
        maxSessions,
        inFlight: total(servers.map(({ inFlight }) => inFlight)),
        memoryBytes: process.memoryUsage.rss(),
        childBytes: total(servers.map(({ childBytes }) => childBytes)),
        upMs: Math.round(process.uptime() * 1_000),
      },
      servers: byTrouble(servers),
      sessions: showSessions(all, query, this.#recordOf()),
      instances: instances.list(),
    };
  }

  /** Returns one session; undefined if it is not on this instance. */
  session({ server, session }: BackendOwner): SessionView | undefined {
    const found = this.#sources.sessions().find(({ name }) => name.server === server && name.session === session);
    return found && showSession(found, this.#recordOf());
  }

  #recordOf(): RecordOf {
    const { backends, failures } = this.#sources.record;
    const pids = new Map(Array.from(backends.live(), (owner) => [backendOwnerKey(owner), owner.pid]));
    return (name) => ({
      messages: backends.countsOf(name)?.messages ?? 0,
      pid: pids.get(backendOwnerKey(name)),
      failures: failures.of(name),
    });
  }

  #servers(sessions: readonly SessionState[]): ServerView[] {
    const { record } = this.#sources;
    const counts = countsByServer(sessions);
    const children = this.#children();
    return this.#sources.servers().map(({ name, transport, era, health, shared }) => {
      const own = children.get(name) ?? [];
      const count = counts.get(name);
      const recent = record.rates.recent(name);
      const incidents = record.incidents.of(name);
      return {
        name,
        transport,
        era,
        health,
        condition: findCondition(health.state, recent, incidents),
        sessions: count?.sessions ?? 0,
        streams: (count?.streams ?? 0) + shared.streams,
        inFlight: (count?.calls ?? 0) + shared.calls,
        recent,
        isFailing: isFailing(recent),
        children: showChildren(own),
        childCount: own.length,
        childBytes: total(own.map(({ memoryBytes = 0 }) => memoryBytes)),
        restarts: total(own.map(({ restarts }) => restarts)),
        stderr: record.stderr.of(name),
        noise: incidents.noiseLines,
      };
    });
  }

  #childBytes(): number {
    const pids = new Set<number>();
    for (const { pid } of this.#sources.record.backends.live()) if (pid !== undefined) pids.add(pid);
    return total([...this.#sources.memoryOf(pids, maxAgeUnseenMs).values()]);
  }

  #children(): ReadonlyMap<string, ChildView[]> {
    const now = performance.now();
    const byServer = new Map<string, ChildView[]>();
    const live = [...this.#sources.record.backends.live()];
    const pids = new Set(live.map(({ pid }) => pid).filter((pid) => pid !== undefined));
    const memory = this.#sources.memoryOf(pids, maxAgeSeenMs);
    for (const { server, session, pid, restarts, openedAt } of live) {
      if (pid === undefined) continue;
      const own = byServer.get(server) ?? [];
      byServer.set(server, own);
      own.push({ pid, memoryBytes: memory.get(pid), restarts, session, upMs: Math.round(now - openedAt) });
    }
    return byServer;
  }
}

const total = (numbers: readonly number[]): number => numbers.reduce((sum, value) => sum + value, 0);

interface Counts {
  sessions: number;
  streams: number;
  calls: number;
}

function countsByServer(sessions: readonly SessionState[]): ReadonlyMap<string, Counts> {
  const counts = new Map<string, Counts>();
  for (const { name, snapshot } of sessions) {
    const count = counts.get(name.server) ?? { sessions: 0, streams: 0, calls: 0 };
    counts.set(name.server, count);
    count.sessions += 1;
    count.streams += snapshot.streams;
    count.calls += snapshot.calls;
  }
  return counts;
}
