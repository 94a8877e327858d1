import type { PeerLinkCounts } from '../../../cluster/cluster.ts';
import type { Readiness } from '../../../registry/readiness.ts';
import type { MailboxBacklog } from '../../../store/instances.ts';
import { StoreUnavailable } from '../../../store/store-unavailable.ts';
import type { ServerStatus } from '../../health/server-health.ts';
import type { MetricKey } from '../catalogue.ts';
import type { Metrics } from '../metrics.ts';

/** The state of a running gateway that metrics read. */
export interface InstanceState {
  readonly version: string;
  readonly maxSessions: number;
  /** The names of the servers that are configured now. */
  servers(): readonly string[];
  readiness(): Readiness;
  /** The probe results of the servers; undefined without probes, or before the first result. */
  probes(): Iterable<Pick<ServerStatus, 'server' | 'probe'>>;
  /** The sessions of this instance. */
  sessions(): Iterable<{ readonly name: { readonly server: string }; readonly snapshot: { readonly calls: number } }>;
  /** The number of open client connections. */
  connections(): Promise<number>;
  /** The outcome of the latest reload, or of the start. `succeededAtMs` is since the epoch. */
  lastReload(): { readonly isSuccessful: boolean; readonly succeededAtMs: number };
  /** Where sessions are kept, and whether they can be. */
  store(): { readonly kind: 'memory' | 'files' | 'redis'; readonly isUp: boolean };
  /**
   * The messages from other instances that wait for this one; undefined without other instances. May reject while the
   * store is unavailable.
   */
  mailboxBacklog(): Promise<MailboxBacklog> | undefined;
  /** The other instances, by the way of the messages to them; undefined without direct links. */
  peerLinks(): PeerLinkCounts | undefined;
}

const states: readonly Readiness[] = ['ready', 'degraded', 'unavailable', 'draining'];

/** Reads the state of a gateway whenever metrics are refreshed. */
export function watchInstance(metrics: Metrics, state: InstanceState): void {
  const set = (key: MetricKey, value: number, ...labels: string[]): void => {
    metrics.tallies(key).of(...labels).value = value;
  };
  /**
   * All servers that were ever configured. The gauges of a removed server fall to zero instead of keeping their last
   * value.
   */
  const known = new Set<string>();
  const listServers = (): Iterable<string> => {
    const newServers = state.servers().filter((server) => !known.has(server));
    if (newServers.length > 0) metrics.createSeries(newServers);
    for (const server of newServers) known.add(server);
    return known;
  };
  listServers();
  set('info', 1, state.version, process.version);
  set('sessionsMax', state.maxSessions);
  metrics.onRefresh(async () => {
    const readiness = state.readiness();
    for (const each of states) set('readiness', Number(each === readiness), each);
    metrics.tallies('probeUp').clear(); // a removed or unprobed server has no number
    for (const { server, probe } of state.probes()) {
      if (probe !== undefined) set('probeUp', Number(probe === 'up'), server);
    }
    const counts = new Map(Array.from(listServers(), (server) => [server, { sessions: 0, calls: 0 }]));
    for (const { name, snapshot } of state.sessions()) {
      const count = counts.get(name.server);
      if (count === undefined) continue;
      count.sessions += 1;
      count.calls += snapshot.calls;
    }
    for (const [server, { sessions, calls }] of counts) {
      set('sessions', sessions, server);
      set('sessionCalls', calls, server);
    }
    const { isSuccessful, succeededAtMs } = state.lastReload();
    set('reloadSuccessful', Number(isSuccessful));
    set('reloadSuccessAt', succeededAtMs / 1_000);
    const { kind, isUp } = state.store();
    if (kind === 'redis') set('redisUp', Number(isUp));
    if (kind === 'files') set('fileStoreUp', Number(isUp));
    const peers = state.peerLinks();
    if (peers !== undefined) {
      set('peers', peers.direct, 'direct');
      set('peers', peers.store, 'redis');
    }
    const [connections, backlog] = await Promise.all([state.connections(), readBacklog(state)]);
    set('connections', connections);
    if (backlog === undefined) return;
    set('mailboxBytes', backlog.bytes);
    set('mailboxOldest', backlog.oldestMs / 1_000);
  });
}

/** Returns undefined while the store is unavailable. The last numbers stay, and other metrics report the outage. */
async function readBacklog({ mailboxBacklog }: InstanceState): Promise<MailboxBacklog | undefined> {
  try {
    return await mailboxBacklog();
  } catch (cause) {
    if (cause instanceof StoreUnavailable) return undefined;
    throw cause;
  }
}
