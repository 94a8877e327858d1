import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import { usesClientCredentials } from '../../config/options/client-credential-options.ts';
import {
  canKeepProcesses,
  isolationOf,
  isRemote,
  isServedOverHttp,
  type KnownUsers,
  modernIsolationOf,
  reuseOf,
  sharedByOf,
} from '../../config/servers/process-sharing.ts';
import { isView } from '../../config/servers/views.ts';
import { minute } from '../../config/units.ts';
import type { OpenBackend } from '../../core/backend/backend.ts';
import { type CreateInterceptor, type InterceptorsOf, linkBackends } from '../../core/backend/link/link.ts';
import { anonymous } from '../../core/protocol/principal.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Sessions } from '../../core/registry/sessions.ts';
import type { Server } from '../../core/server/server.ts';
import type { LegacyProcesses } from '../../core/server/share.ts';
import type { ServerEvent } from '../../core/server/server-events.ts';
import type { SharedServerEvent, UnusedOption } from '../../core/server/shared-server-events.ts';
import type { ClusterStore, Store } from '../../core/store/store.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import { openEitherEra } from '../../features/eras/legacy-on-modern/open-either-era.ts';
import { Translator } from '../../features/eras/legacy-on-modern/translator.ts';
import { ListCache } from '../../features/eras/modern/list-cache.ts';
import { ModernServer } from '../../features/eras/modern/modern-server.ts';
import { Groups } from '../../features/eras/modern-on-legacy/groups.ts';
import type { Features } from '../features/features.ts';
import type { ProcessKeeper } from '../features/servers.ts';
import type { StateSealing } from '../access/create-state-sealing.ts';
import { version } from '../version.ts';
import type { RunningServer } from './run-server.ts';

/** A configured server, ready for clients of both eras. */
export interface ServedServer {
  readonly config: ServerConfig;
  readonly running: RunningServer;
  /** The server for legacy sessions. */
  readonly server: Server;
  readonly modern: ModernServer;
  readonly groups: Groups;
  /** The lists that are kept for modern clients. */
  readonly lists: ListCache;
  /** The processes of ended sessions; undefined if sessions of this server never share one. */
  readonly kept: ProcessKeeper | undefined;
}

/** The parts that all servers of a gateway share. */
export interface ServingParts {
  readonly config: GatewayConfig;
  readonly features: Features;
  readonly sessions: Sessions;
  readonly store: Store;
  /** The store if other instances share it. */
  readonly shared: ClusterStore | undefined;
  /** The store if it can outlive this process. */
  readonly lasting: ClusterStore | undefined;
  readonly stateSealing: StateSealing;
  /** What the gateway knows of its users now. */
  readonly knownUsers: () => KnownUsers;
  readonly emit: Emit<ServerEvent | SharedServerEvent>;
  /** Of the backends that sessions open, and of those that modern clients share. */
  readonly clientInterceptors: InterceptorsOf;
}

/**
 * Makes a server available to clients of both eras.
 * @param startAheadMs after this time the shared process starts without a client
 */
export function serve(running: RunningServer, parts: ServingParts, startAheadMs = 0): ServedServer {
  const { config: gateway, features, sessions, store, stateSealing, emit, clientInterceptors } = parts;
  const lists = new ListCache({ isOn: true, legacyTtlMs: running.config.lists.ttlMs });
  const { share } = running.config;
  const lingerMs = Math.min(longestKeepMs, gateway.timeouts.sessionIdleMs);
  // Credentials of clients tell users apart, even without authentication.
  const hasCredentials = share === 'user' && usesClientCredentials(running.config);
  const knownUsers = hasCredentials ? (): KnownUsers => 'users' : parts.knownUsers;
  const { config } = running;
  const modern = runModern(running, parts, lists, startAheadMs, () => kept?.running);
  const onLegacy = (): void => emit({ type: 'era-seen', server: config.name, era: 'legacy' });
  const maxKept = Math.max(minKept, Math.ceil(gateway.limits.total.sessions / 10));
  const keeping = {
    open: running.server.open,
    reuse: () => reuseOf(share, knownUsers()),
    sharedBy: sharedByOf(config),
    affinity: running.server.affinity,
    poolMax: config.poolMax,
    cancelGraceMs: gateway.timeouts.graceMs,
    onDropped: () => emit({ type: 'shared-output-dropped', server: config.name }),
    onOnlyProcess: () => emit({ type: 'only-process', server: config.name }),
    onPingUnknown: () => emit({ type: 'ping-unknown', server: config.name }),
    startTimeoutMs: config.timeouts.startMs,
    lingerMs,
    maxKept,
  };
  const kept = canKeepProcesses(config) ? features.sharing?.keep(keeping) : undefined;
  const direct = kept?.open ?? running.server.open;
  const forSessions = openForSessions(running, direct, modern, gateway, onLegacy);
  const open = linkIfAny(forSessions, [...clientInterceptors(config.name), ...lists.watch(true)]);
  const keeps = {
    keepsProcesses: kept !== undefined,
    ...(kept && { homeOf: kept.homeOf.bind(kept) }),
    canMoveSessions: (): boolean => kept !== undefined && keeping.reuse() !== 'none',
  };
  // The servers of a view keep its processes.
  const server: Server = { ...running.server, open, ...(isView(config) ? undefined : keeps) };
  const groups = new Groups({
    sessions,
    records: store.sessions,
    changes: store.changes,
    values: store.values,
    server,
    version,
    ...stateSealing,
    isolation: () => isolationOf(share, knownUsers()),
    poolMax: config.poolMax,
    requestIdleMs: gateway.timeouts.requestIdleMs,
    settleMs: config.timeouts.startMs,
    maxListeners: gateway.derived.maxSharedCalls,
    onFailed: (cause) => emit({ type: 'shared-server-failed', server: config.name, cause }),
    onIsolatedCall() {
      // With any other value of `share`, the operator has decided this.
      if (share === 'auto') emit({ type: 'process-per-request', server: config.name });
    },
  });
  return { config, running, server, modern, groups, lists, kept };
}

/** A client that opens a session for each call does so again within minutes, or its user has left. */
const longestKeepMs = 5 * minute;

/** Even a gateway for few sessions keeps this many processes of ended sessions. */
const minKept = 4;

/** The sharing options that have no effect on a server of this era. An option that never has one is refused before. */
function unusedOptions({ share, sessionless, affinity, address }: ServerConfig, era: Era): readonly UnusedOption[] {
  const sharesSessions = share === 'all' || share === 'user';
  if (era === 'legacy') return isRemote(address) && sharesSessions ? ['share-of-sessions'] : [];
  const ignoresShare = isServedOverHttp(address) && share !== 'auto' && sessionless !== 'serve';
  return [...(ignoresShare ? (['share'] as const) : []), ...(affinity === undefined ? [] : (['affinity'] as const))];
}

/** Creates the server for modern clients. */
function runModern(
  { config, server, modern: access }: RunningServer,
  { config: gateway, sessions: room, shared, lasting, knownUsers, emit, clientInterceptors }: ServingParts,
  lists: ListCache,
  startAheadMs: number,
  legacy: () => LegacyProcesses | undefined,
): ModernServer {
  const common = {
    version,
    limits: { ...gateway.timeouts, ...gateway.derived },
    emit,
    changes: shared?.changes,
    values: lasting?.values,
  };
  const reportUnused = (era: Era): void => {
    for (const option of unusedOptions(config, era)) emit({ type: 'option-unused', server: config.name, option });
  };
  if (access === undefined) {
    reportUnused('legacy');
    return new ModernServer({ ...common, server, era: 'legacy', openForProbe: server.open });
  }
  const { open: openShared, ...how } = access;
  const open = linkIfAny(openShared, [...clientInterceptors(config.name), ...lists.watch()]);
  const emitWithUnused: Emit<SharedServerEvent> = (event) => {
    emit(event);
    if (event.type === 'era-found') reportUnused(event.era);
  };
  const sharing = {
    isolation: modernIsolationOf(config, knownUsers()),
    isOfOneUser: () => knownUsers() === 'local',
    idleMs: config.hibernateAfterMs || gateway.timeouts.sessionIdleMs,
  };
  const modern = new ModernServer({
    ...common,
    ...how,
    ...sharing,
    legacy,
    room,
    emit: emitWithUnused,
    server: { ...server, open },
    era: config.era,
  });
  // A server that needs client credentials may not answer without a client.
  if (!usesClientCredentials(config)) setTimeout(() => modern.start(), startAheadMs).unref();
  return modern;
}

/** What is opened here has links already: nothing is added where nobody looks. */
const linkIfAny = (open: OpenBackend, interceptors: readonly CreateInterceptor[]): OpenBackend =>
  interceptors.length === 0 ? open : linkBackends(open, interceptors);

/** The opener with which legacy sessions reach the server, whatever its era is. */
function openForSessions(
  { config, modern: access }: RunningServer,
  direct: OpenBackend,
  modern: ModernServer,
  gateway: GatewayConfig,
  onLegacy: () => void,
): OpenBackend {
  if (access === undefined) return direct;
  const { isOverHttp } = access;
  const { maxQueuedBytes } = gateway.derived;
  const translated: OpenBackend = (events, opening) => {
    const side = modern.forSession({ principal: opening?.principal ?? anonymous });
    return new Translator({ server: side, isOverHttp, maxQueuedBytes }, events, opening);
  };
  const silentMs = Math.ceil(config.timeouts.startMs / 3);
  return openEitherEra({ direct, translated, era: modern.serverEra, isOverHttp, onLegacy, silentMs });
}
