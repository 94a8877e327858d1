import type { ServerConfig } from '../../config/config.ts';
import { usesClientCredentials } from '../../config/options/client-credential-options.ts';
import { policySettings } from '../../config/options/policy-option.ts';
import { canKeepProcesses, type KnownUsers, reuseOf, sharedByOf } from '../../config/servers/process-sharing.ts';
import { cutsResults, isView, receiversIn } from '../../config/servers/views.ts';
import { minute } from '../../config/units.ts';
import { hasAllScopes } from '../../core/auth/scopes/authorization.ts';
import { ScopeRules } from '../../core/auth/scopes/scope-rules.ts';
import { type CreateInterceptor, type InterceptorsOf, linkIfAny } from '../../core/backend/link/link.ts';
import type { StateKeys } from '../../core/keys/state-keys.ts';
import type { ServerEvent } from '../../core/ops/server-events.ts';
import type { SharedServerEvent } from '../../core/ops/shared-server-events.ts';
import type { Sessions } from '../../core/registry/sessions.ts';
import type { Server } from '../../core/server/server.ts';
import type { Rates, Values } from '../../core/store/shared/shared-data.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import type { GatewayEras, ServedEras } from '../features/eras.ts';
import { type GatewaySetup, needed } from '../features/gateway-features.ts';
import type { ProcessKeeper } from '../features/servers.ts';
import type { RunningServer } from './run-server.ts';

/** A configured server, ready for clients. */
export interface ServedServer {
  readonly config: ServerConfig;
  readonly running: RunningServer;
  /** The server for sessions. */
  readonly server: Server;
  /** The server for clients of both eras; undefined if only sessions are served. */
  readonly eras: ServedEras | undefined;
  /** The processes of ended sessions; undefined if sessions of this server never share one. */
  readonly kept: ProcessKeeper | undefined;
}

/** The parts that all servers of a gateway share. */
export interface ServingParts {
  readonly setup: GatewaySetup;
  readonly eras: GatewayEras | undefined;
  readonly sessions: Sessions;
  /** What the gateway knows of its users now. */
  readonly knownUsers: () => KnownUsers;
  readonly emit: Emit<ServerEvent | SharedServerEvent>;
  /** Seal what clients bring back. */
  readonly keys: StateKeys;
  readonly values: Values;
  readonly rates: Rates;
  onStoreFailure(cause: unknown): void;
  /** Of the backends that sessions open, and of those that modern clients share. */
  readonly clientInterceptors: InterceptorsOf;
}

/**
 * Makes a server available to clients.
 * @param startAheadMs after this time the shared process starts without a client
 */
export function serve(running: RunningServer, parts: ServingParts, startAheadMs = 0): ServedServer {
  const { setup, sessions, emit, clientInterceptors } = parts;
  const { config: gateway, features } = setup;
  const { config } = running;
  const { share } = config;
  // Credentials of clients tell users apart, even without authentication.
  const isOfClients = usesClientCredentials(config) || receiversIn(config) !== undefined;
  const hasCredentials = share === 'user' && isOfClients;
  const knownUsers = hasCredentials ? (): KnownUsers => 'users' : parts.knownUsers;
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
    lingerMs: Math.min(longestKeepMs, gateway.timeouts.sessionIdleMs),
    maxKept: Math.max(minKept, Math.ceil(gateway.limits.total.sessions / 10)),
  };
  const kept = canKeepProcesses(config) ? features.sharing?.keep(keeping) : undefined;
  const direct = kept?.open ?? running.server.open;
  const interceptors = [
    ...policyInterceptors(config, parts),
    ...limitInterceptors(config, parts),
    ...searchInterceptors(config, parts),
    ...clientInterceptors(config.name),
  ];
  const eras = parts.eras?.serve({
    config,
    server: running.server,
    access: running.modern,
    direct,
    legacy: kept?.running,
    sessions,
    knownUsers: parts.knownUsers,
    knownUsersOfSessions: knownUsers,
    interceptors,
    startAheadMs,
  });
  const open = linkIfAny(eras?.open ?? direct, [...interceptors, ...(eras?.sessionInterceptors ?? [])]);
  const keeps = {
    keepsProcesses: kept !== undefined,
    ...(kept && { homeOf: kept.homeOf.bind(kept) }),
    canMoveSessions: (): boolean => kept !== undefined && keeping.reuse() !== 'none',
  };
  // The servers of a view keep its processes.
  const server: Server = { ...running.server, open, ...(isView(config) ? undefined : keeps) };
  eras?.join(server);
  return { config, running, server, eras, kept };
}

/** What asks the policy service of a server: next to the clients, whose processes it does not know. */
function policyInterceptors(
  { name: server, policy }: ServerConfig,
  { setup, keys, values, emit }: ServingParts,
): readonly CreateInterceptor[] {
  const settings = policySettings(policy);
  if (settings === undefined) return [];
  return [needed(setup.features.policy, '"policy" of a server').guard({ server, settings, keys, values, emit })];
}

/** What finds tools in a view: the last before its clients, whose calls have the names of the tools themselves. */
function searchInterceptors({ address, scopes }: ServerConfig, { setup }: ServingParts): readonly CreateInterceptor[] {
  if (address?.transport !== 'view' || !address.searchTools) return [];
  const { features, config } = setup;
  const rules = new ScopeRules({ requiredScopes: scopes.required, toolScopes: scopes.tools });
  return [
    needed(features.toolSearch, 'searchTools of a view').search({
      servers: address.members.map(({ name }) => name),
      mayCall: (tool, owned) =>
        !config.auth.filterLists || hasAllScopes({ scopes: owned && new Set(owned) }, rules.neededByTool(tool)),
    }),
  ];
}

/** What cuts long results: behind the policy, which sees them whole. A view only answers for the texts of its servers. */
function limitInterceptors(
  config: ServerConfig,
  { setup, values, rates, onStoreFailure }: ServingParts,
): readonly CreateInterceptor[] {
  const { resultBytes: maxBytes } = config.limits;
  if (isView(config) ? !cutsResults(config) : maxBytes === undefined) return [];
  const limits = needed(setup.features.resultLimits, '"limits.result" of a server');
  return [limits.limit({ maxBytes: isView(config) ? undefined : maxBytes, values, rates, onFailed: onStoreFailure })];
}

/** A client that opens a session for each call does so again within minutes, or its user has left. */
const longestKeepMs = 5 * minute;

/** Even a gateway for few sessions keeps this many processes of ended sessions. */
const minKept = 4;
