import type { Readiness } from '../../../registry/readiness.ts';
import type { MailboxBacklog } from '../../../store/instances.ts';
import { StoreUnavailable } from '../../../store/store-unavailable.ts';
import type { ServerStatus } from '../../health/server-health.ts';
import type { MetricKey } from '../catalogue.ts';
import type { Metrics } from '../metrics.ts';

/** What can be looked at of a running gateway. */
export interface InstanceState {
  readonly version: string;
  readonly maxSessions: number;
  /** The names of the configured servers as they are now: each has its numbers from then on. */
  servers(): readonly string[];
  readiness(): Readiness;
  /** What probes say of the servers; undefined of one that is not probed, or has not been yet. */
  probes(): Iterable<Pick<ServerStatus, 'server' | 'probe'>>;
  /** Its sessions. */
  sessions(): Iterable<{ readonly name: { readonly server: string }; readonly snapshot: { readonly calls: number } }>;
  /** Connections of clients that are open. */
  connections(): Promise<number>;
  /** What came of reading the configuration, at the start or last; `succeededAtMs` since the epoch. */
  lastReload(): { readonly isSuccessful: boolean; readonly succeededAtMs: number };
  /** Whether Redis answers; undefined where there is none. */
  isStoreUp(): boolean | undefined;
  /** What others have sent to this instance; undefined where there are none. May reject while the store is away. */
  waitingMail(): Promise<MailboxBacklog> | undefined;
}

const states: readonly Readiness[] = ['ready', 'degraded', 'unavailable', 'draining'];

/** Looks at a gateway whenever its metrics are asked for. */
export function watchInstance(metrics: Metrics, state: InstanceState): void {
  const set = (key: MetricKey, value: number, ...labels: string[]): void => {
    metrics.tallies(key).of(...labels).value = value;
  };
  /** Those that were configured once, too: what is not there any more has none. */
  const known = new Set<string>();
  const serversNow = (): Iterable<string> => {
    const news = state.servers().filter((server) => !known.has(server));
    if (news.length > 0) metrics.begin(news);
    for (const server of news) known.add(server);
    return known;
  };
  serversNow();
  set('info', 1, state.version, process.version);
  set('sessionsMax', state.maxSessions);
  metrics.onRefresh(async () => {
    const readiness = state.readiness();
    for (const one of states) set('readiness', Number(one === readiness), one);
    metrics.tallies('probeUp').clear(); // of a server that was taken out, or is not probed any more, nothing is said
    for (const { server, probe } of state.probes()) {
      if (probe !== undefined) set('probeUp', Number(probe === 'up'), server);
    }
    const counts = new Map(Array.from(serversNow(), (server) => [server, { sessions: 0, calls: 0 }]));
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
    const isUp = state.isStoreUp();
    if (isUp !== undefined) set('redisUp', Number(isUp));
    const [connections, mail] = await Promise.all([state.connections(), lookAtMail(state)]);
    set('connections', connections);
    if (mail === undefined) return;
    set('mailboxBytes', mail.bytes);
    set('mailboxOldest', mail.oldestMs / 1_000);
  });
}

/** Undefined while it cannot be known: the last numbers stay, and others say that the store is away. */
async function lookAtMail({ waitingMail }: InstanceState): Promise<MailboxBacklog | undefined> {
  try {
    return await waitingMail();
  } catch (cause) {
    if (cause instanceof StoreUnavailable) return undefined;
    throw cause;
  }
}
