import {
  type BackendOwner,
  backendOwnerKey,
  type LiveBackend,
  type LiveBackends,
  type RunningTask,
  type SessionState,
  type StoreState,
} from '../host.ts';
import { isFailing, type RecentCalls } from '../record/calls/call-rates.ts';
import type { Gauges } from '../record/calls/history.ts';
import type { ConsoleRecord } from '../record/console-record.ts';
import type { ReportedSessions } from '../sessions/other-sessions.ts';
import type { OwnSessions } from '../sessions/session-answers.ts';
import { type SessionQuery, showSessions } from '../sessions/session-list.ts';
import { SessionUsers } from '../sessions/session-users.ts';
import { findSessions, type RecordOf, type SessionView, showSession } from '../sessions/session-view.ts';
import { maxReportedTasks, showTask, showTasks } from '../sessions/task-view.ts';
import { type InstanceSummary, type InstanceView, maxServersInSummary } from './known-instances.ts';
import { findCondition, medianOfOthers, type ServerCondition } from './server-condition.ts';
import {
  type ChildView,
  type ResumesView,
  type ServerHealthView,
  type ServerView,
  type Snapshot,
  showChildren,
} from './snapshot.ts';
import { rankOf, SteadyConditions } from './steady-conditions.ts';

/** The condition of a server of a view. */
interface MemberCondition {
  readonly name: string;
  readonly condition: ServerCondition;
  /** Why the server is down, if it is. */
  readonly why: string | undefined;
}

/** The state of a server that the record does not have. */
export interface ServerState {
  readonly name: string;
  readonly transport: string;
  /** The package that contains the server, with its version; undefined for any other server. */
  readonly package?: string | undefined;
  readonly era: string;
  readonly health: ServerHealthView;
  /** True if the health is the result of a probe, which says more than the processes that run. */
  readonly isProbed: boolean;
  /** The servers of a view; undefined for any other server. */
  readonly members?: readonly string[] | undefined;
  /** The calls in flight at the process that modern clients share. */
  readonly sharedCalls: number;
}

/** A process or connection that is open for this time counts as running. */
const runningMs = 2_000;

/** How old the memory of processes may be: for an open page, and for the history while no page is open. */
const maxAgeSeenMs = 3_000;
const maxAgeUnseenMs = 20_000;

/** The sources of a snapshot. */
export interface SnapshotSources {
  readonly record: ConsoleRecord;
  readonly backends: LiveBackends;
  /** The name of this instance. It is not secret, and clients do not need it. */
  readonly name: string;
  readonly version: string;
  readonly maxSessions: number;
  readiness(): string;
  /** The number of sessions. It is cheap, because the history asks for it every second. */
  sessionCount(): number;
  sessions(): readonly SessionState[];
  /** The running tasks, newest first. */
  tasks(): readonly RunningTask[];
  /** The open streams and WebSockets of clients by server. It is cheap, too. */
  openStreams(): ReadonlyMap<string, number>;
  servers(): readonly ServerState[];
  store(): StoreState;
  /**
   * Returns the memory of these processes and their children, in bytes, as measured at most `maxAgeMs` ago or soon
   * after. Unknown processes are left out.
   */
  memoryOf(pids: () => ReadonlySet<number>, maxAgeMs: number): ReadonlyMap<number, number>;
}

/** What this instance knows of the others. */
export interface OtherInstances {
  /** All known instances, this one first. */
  readonly instances: readonly InstanceView[];
  /** The sessions of other instances that match the query. */
  readonly sessions: readonly ReportedSessions[];
}

/** Builds snapshots of the gateway for the page. Only sums of the last measurement of memory are kept between two snapshots. */
export class SnapshotBuilder {
  readonly #sources: SnapshotSources;
  readonly #conditions = new SteadyConditions();
  /** The memory by server at the last measurement. */
  #summed: { readonly measured: ReadonlyMap<number, number>; readonly byServer: ReadonlyMap<string, number> } = {
    measured: new Map(),
    byServer: new Map(),
  };

  constructor(sources: SnapshotSources) {
    this.#sources = sources;
  }

  /** The summary that other instances receive. */
  summary(): InstanceSummary {
    const counts = countsByServer(this.#sources.sessions());
    const servers = Array.from(counts, ([server, { sessions, users }]) => ({ server, sessions, users: users.list() }));
    const all = this.#sources.tasks();
    const tasks = { total: all.length, newest: all.slice(0, maxReportedTasks).map(showTask) };
    return { ...this.#ownSummary(), servers: servers.slice(0, maxServersInSummary), tasks };
  }

  #ownSummary(): Omit<InstanceSummary, 'servers' | 'tasks'> {
    const { name, version, readiness } = this.#sources;
    return { name, version, readiness: readiness(), ...this.#openCounts() };
  }

  /** Notes the conditions of the servers, so that a page that opens later knows since when they last. */
  observe(): void {
    const servers = this.#sources.servers();
    this.#conditions.keep(new Set(servers.map(({ name }) => name)));
    this.#conditionsOf(servers);
  }

  /** The state of the instance for the history. */
  gauges(): Gauges {
    const bytesByServer = this.#bytesByServer();
    const childBytes = total([...bytesByServer.values()]);
    return { ...this.#openCounts(), memoryBytes: process.memoryUsage.rss(), childBytes, bytesByServer };
  }

  #openCounts(): { readonly sessions: number; readonly streams: number } {
    const { sessionCount, openStreams } = this.#sources;
    return { sessions: sessionCount(), streams: total([...openStreams().values()]) };
  }

  /** The newest sessions that match a search, for another instance. */
  ownSessions(search: string, limit: number): OwnSessions {
    const { name, sessionCount, sessions } = this.#sources;
    const found = findSessions(sessions(), search, name);
    const recordOf = this.#recordOf();
    return {
      total: sessionCount(),
      found: found.length,
      sessions: found.slice(0, limit).map((session) => showSession(session, recordOf)),
    };
  }

  /** Builds a snapshot with the sessions that match the query, and what other instances reported. */
  snapshot(query: SessionQuery, others: OtherInstances): Snapshot {
    const { record, name, maxSessions, sessions } = this.#sources;
    const all = sessions();
    record.fold();
    const recent = record.rates.recent();
    const servers = this.#servers(all, others.instances);
    return {
      instance: {
        ...this.#ownSummary(),
        ...recent,
        isFailing: isFailing(recent),
        maxSessions,
        oneStream: all.filter(({ snapshot }) => snapshot.kind === 'one stream').length,
        inFlight: total(servers.map(({ inFlight }) => inFlight)),
        memoryBytes: process.memoryUsage.rss(),
        childBytes: total(servers.map(({ childBytes }) => childBytes)),
        upMs: Math.round(process.uptime() * 1_000),
        usual: record.history.usual(),
        refusals: record.refusals.recent,
        resumes: this.#resumes(all),
        store: { ...this.#sources.store(), ...record.traffic.storeSpeed },
      },
      servers: this.#conditions.sort(servers),
      sessions: showSessions(
        { total: all.length, found: findSessions(all, query.search, name) },
        others.sessions,
        query,
        this.#recordOf(),
      ),
      tasks: showTasks(this.#sources.tasks(), others.instances),
      instances: others.instances.map(({ servers: _, tasks: __, ...instance }) => instance),
    };
  }

  /** Returns one session; undefined if it is not on this instance. */
  session({ server, session }: BackendOwner): SessionView | undefined {
    const found = this.#sources.sessions().find(({ name }) => name.server === server && name.session === session);
    return found && showSession(found, this.#recordOf());
  }

  /** The resumed streams, with the client and the user of the last one if its session is still here. */
  #resumes(sessions: readonly SessionState[]): ResumesView {
    const { recent } = this.#sources.record.resumes;
    const { server, session } = recent.last ?? {};
    const { snapshot } = sessions.find(({ name }) => name.server === server && name.session === session) ?? {};
    if (snapshot === undefined) return recent;
    return { ...recent, client: snapshot.client, user: snapshot.principal.subject || undefined };
  }

  #recordOf(): RecordOf {
    const { backends, record } = this.#sources;
    const pids = new Map(Array.from(backends.live(), (owner) => [backendOwnerKey(owner), owner.pid]));
    return (name) => {
      const { messages = 0, calls: totalCalls = 0 } = backends.countsOf(name) ?? {};
      return { messages, totalCalls, pid: pids.get(backendOwnerKey(name)), failures: record.failures.of(name) };
    };
  }

  #servers(sessions: readonly SessionState[], instances: readonly InstanceView[]): ServerView[] {
    const { record, servers, openStreams } = this.#sources;
    const counts = countsByServer(sessions);
    const streams = openStreams();
    const children = this.#children();
    const all = servers();
    const conditions = this.#conditionsOf(all);
    return all.map(({ name, transport, package: itsPackage, era, health, sharedCalls }) => {
      const own = children.get(name) ?? [];
      const count = counts.get(name);
      const recent = record.rates.recent(name);
      const incidents = record.incidents.of(name);
      const failingTool = record.tools.worstOf(name);
      return {
        name,
        transport,
        package: itsPackage,
        era,
        health,
        condition: conditions.get(name) as ServerCondition,
        sessions: count?.sessions ?? 0,
        streams: streams.get(name) ?? 0,
        inFlight: (count?.calls ?? 0) + sharedCalls,
        recent,
        isFailing: isFailing(recent),
        children: showChildren(own),
        childCount: own.length,
        childBytes: total(own.map(({ memoryBytes = 0 }) => memoryBytes)),
        restarts: total(own.map(({ restarts }) => restarts)),
        exits: incidents.exits,
        lastExit: incidents.lastExit,
        lastWords: incidents.lastWords ?? [],
        users: count?.users.list() ?? [],
        elsewhere: sessionsElsewhere(name, instances),
        failingTool,
        tools: record.tools.of(name),
        stderr: record.stderr.of(name),
        noise: incidents.noiseLines,
      };
    });
  }

  /** The conditions to show, by server. */
  #conditionsOf(servers: readonly ServerState[]): ReadonlyMap<string, ServerCondition> {
    const { record, backends } = this.#sources;
    const now = performance.now();
    const running = new Set<string>();
    for (const { server, openedAt } of backends.live()) if (now - openedAt >= runningMs) running.add(server);
    const recents = servers.map(({ name }) => record.rates.recent(name));
    const times = recents.map(({ p95Ms }) => p95Ms);
    const own = new Map(
      servers.map(({ name, health, isProbed, members }, index) => {
        // The health of a view is that of its servers, whose conditions say more.
        const found = findCondition(members ? 'unknown' : health.state, recents[index] as RecentCalls, {
          ...record.incidents.of(name),
          failingSince: record.failing.since(name),
          failingTool: record.tools.worstOf(name),
          downAt: health.at,
          isRunning: !isProbed && running.has(name),
          othersP95Ms: medianOfOthers(times, index),
        });
        return [name, this.#conditions.show(name, found)];
      }),
    );
    const known = new Map(
      servers.map(({ name, health }): [string, MemberCondition] => [
        name,
        { name, condition: own.get(name) as ServerCondition, why: health.why },
      ]),
    );
    return new Map(
      servers.map(({ name, members }) => {
        const condition = own.get(name) as ServerCondition;
        if (members === undefined) return [name, condition];
        return [
          name,
          conditionOfView(
            condition,
            members.flatMap((member) => known.get(member) ?? []),
          ),
        ];
      }),
    );
  }

  /** The memory of the processes of each server. The sums are made again only after a new measurement. */
  #bytesByServer(): ReadonlyMap<string, number> {
    const measured = this.#sources.memoryOf(() => this.#pids(), maxAgeUnseenMs);
    if (measured === this.#summed.measured) return this.#summed.byServer;
    const byServer = new Map<string, number>();
    for (const [pid, [{ server }]] of this.#processes()) {
      const bytes = measured.get(pid);
      if (bytes !== undefined) byServer.set(server, (byServer.get(server) ?? 0) + bytes);
    }
    this.#summed = { measured, byServer };
    return byServer;
  }

  #pids(): ReadonlySet<number> {
    return new Set(this.#processes().keys());
  }

  /** The processes, each with the backends of the sessions that use it. */
  #processes(): ReadonlyMap<number, [LiveBackend, ...LiveBackend[]]> {
    const processes = new Map<number, [LiveBackend, ...LiveBackend[]]>();
    for (const backend of this.#sources.backends.live()) {
      if (backend.pid === undefined) continue;
      const users = processes.get(backend.pid);
      if (users === undefined) processes.set(backend.pid, [backend]);
      else users.push(backend);
    }
    return processes;
  }

  #children(): ReadonlyMap<string, ChildView[]> {
    const now = performance.now();
    const byServer = new Map<string, ChildView[]>();
    const memory = this.#sources.memoryOf(() => this.#pids(), maxAgeSeenMs);
    for (const [pid, [first, ...others]] of this.#processes()) {
      const own = byServer.get(first.server) ?? [];
      byServer.set(first.server, own);
      const users = [first, ...others];
      own.push({
        pid,
        memoryBytes: memory.get(pid),
        restarts: Math.max(...users.map(({ restarts }) => restarts)),
        session: others.length === 0 ? first.session : undefined,
        sharedBy: users.length,
        upMs: Math.round(now - Math.min(...users.map(({ openedAt }) => openedAt))),
      });
    }
    return byServer;
  }
}

/** The number of other instances that are named for each server (P8). */
const maxElsewhere = 5;

const total = (numbers: readonly number[]): number => numbers.reduce((sum, value) => sum + value, 0);

interface Counts {
  sessions: number;
  calls: number;
  readonly users: SessionUsers;
}

function countsByServer(sessions: readonly SessionState[]): ReadonlyMap<string, Counts> {
  const counts = new Map<string, Counts>();
  for (const { name, snapshot } of sessions) {
    const count = counts.get(name.server) ?? { sessions: 0, calls: 0, users: new SessionUsers() };
    counts.set(name.server, count);
    count.sessions += 1;
    count.calls += snapshot.calls;
    count.users.add(snapshot);
  }
  return counts;
}

/** Whose sessions a server has on the other instances. */
function sessionsElsewhere(server: string, instances: readonly InstanceView[]): ServerView['elsewhere'] {
  return instances
    .filter(({ isThis }) => !isThis)
    .flatMap(({ name, servers = [] }) =>
      servers
        .filter((entry) => entry.server === server && entry.sessions > 0)
        .map(({ sessions, users }) => ({ instance: name, sessions, users })),
    )
    .slice(0, maxElsewhere);
}

/**
 * Determines the condition of a view: the worst of its own and those of its servers, whose reasons name the server. A
 * view answers without a server that is down, so it is down only if all of them are.
 */
export function conditionOfView(own: ServerCondition, members: readonly MemberCondition[]): ServerCondition {
  const down = members.filter(({ condition }) => condition.state === 'down');
  if (down.length > 0) {
    const times = down.flatMap(({ condition: { since } }) => since ?? []);
    return {
      state: down.length === members.length ? 'down' : 'degraded',
      reasons: down.map(({ name, why }) => `${name} is down${why === undefined ? '.' : `: ${why}`}`),
      since: times.length === 0 ? undefined : Math.min(...times),
    };
  }
  const named = members.map(({ name, condition }) => ({
    ...condition,
    reasons: condition.reasons.map((each) => `${name}: ${each}`),
  }));
  return [own, ...named].reduce((worst, each) => (rankOf(each) < rankOf(worst) ? each : worst));
}
