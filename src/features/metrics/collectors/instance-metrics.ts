import type { InstanceState } from '../../../app/features/telemetry.ts';
import type { MetricKey } from '../../../core/ops/metrics/catalogue.ts';
import type { Readiness } from '../../../core/registry/sessions.ts';
import type { Metrics } from '../metrics.ts';

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
    const peers = state.peers();
    if (peers !== undefined) {
      set('peers', peers.reachable, 'reachable');
      set('peers', peers.unreachable.length, 'unreachable');
    }
    set('connections', await state.connections());
  });
}
