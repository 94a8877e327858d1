import type { ErasOptions, ServedEras, ServeErasOptions } from '../../app/features/eras.ts';
import type { ServerConfig } from '../../config/config.ts';
import { usesClientCredentials } from '../../config/options/client-credential-options.ts';
import { isolationOf, isRemote, isServedOverHttp, modernIsolationOf } from '../../config/servers/process-sharing.ts';
import type { OpenBackend } from '../../core/backend/backend.ts';
import { linkIfAny } from '../../core/backend/link/link.ts';
import type { RequestStates } from '../../core/keys/request-state.ts';
import type { SharedServerEvent, UnusedOption } from '../../core/ops/shared-server-events.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import { discoverRequest } from '../../core/protocol/modern/envelope.ts';
import { anonymous } from '../../core/protocol/principal.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Server } from '../../core/server/server.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import { ModernEndpoint } from './endpoint/modern.ts';
import { SessionlessEndpoint } from './endpoint/sessionless.ts';
import { ToolHeaders } from './endpoint/tool-headers.ts';
import { openEitherEra } from './legacy-on-modern/open-either-era.ts';
import { Translator } from './legacy-on-modern/translator.ts';
import { ListCache } from './modern/list-cache.ts';
import { ModernServer } from './modern/modern-server.ts';
import { askShared } from './modern/process/shared-calls.ts';
import { Groups } from './modern-on-legacy/groups.ts';

/** Makes a server available to clients of both eras. */
export function serveEras(gateway: ErasOptions, states: RequestStates, options: ServeErasOptions): ServedEras {
  const { config } = options;
  const lists = new ListCache({ legacyTtlMs: config.lists.ttlMs, onChanged: () => tools.forget() });
  const modern = createModernServer(gateway, options, lists);
  let groups: Groups | undefined;
  const joined = (): Groups => {
    if (groups === undefined) throw new Error('the server is not ready');
    return groups;
  };
  const listing = (): ModernServer | Groups => (modern.era === 'legacy' ? joined() : modern);
  const tools = new ToolHeaders({
    get era() {
      return modern.era;
    },
    get distinguishesUsers() {
      return listing().distinguishesUsers;
    },
    listTools: (cursor, client) => listing().listTools(cursor, client),
  });
  return {
    open: openForSessions(gateway, options, modern),
    sessionInterceptors: lists.watch(true),
    get era() {
      return modern.era;
    },
    get callsInFlight() {
      return modern.callsInFlight;
    },
    join(server: Server) {
      const { store, version, marks, emit, config: all } = gateway;
      groups = new Groups({
        sessions: options.sessions,
        records: store.sessions,
        changes: store.changes,
        values: store.values,
        server,
        version,
        states,
        marks,
        isolation: () => isolationOf(config.share, options.knownUsersOfSessions()),
        poolMax: config.poolMax,
        requestIdleMs: all.timeouts.requestIdleMs,
        settleMs: config.timeouts.startMs,
        maxListeners: all.derived.maxSharedCalls,
        onFailed: (cause) => emit({ type: 'shared-server-failed', server: config.name, cause }),
        onIsolatedCall() {
          // With any other value of `share`, the operator has decided this.
          if (config.share === 'auto') emit({ type: 'process-per-request', server: config.name });
        },
      });
    },
    findEra: () => modern.findEra(undefined, undefined, true),
    get askShared() {
      return modern.isShared ? (timeoutMs: number) => probeShared(modern, gateway.version, timeoutMs) : undefined;
    },
    endpoints(endpoint) {
      const parts = { ...endpoint, modern, groups: joined(), lists, tools };
      return {
        modern: new ModernEndpoint(parts),
        sessionless: config.sessionless === 'serve' ? new SessionlessEndpoint(parts) : undefined,
      };
    },
    closeSubscriptions: () => groups?.close(),
    drain: (graceMs, sessionsEnded) => modern.drain(graceMs, sessionsEnded),
  };
}

/** The sharing options that have no effect on a server of this era. An option that never has one is refused before. */
function unusedOptions({ share, sessionless, affinity, address }: ServerConfig, era: Era): readonly UnusedOption[] {
  const sharesSessions = share === 'all' || share === 'user';
  if (era === 'legacy') return isRemote(address) && sharesSessions ? ['share-of-sessions'] : [];
  const ignoresShare = isServedOverHttp(address) && share !== 'auto' && sessionless !== 'serve';
  return [...(ignoresShare ? (['share'] as const) : []), ...(affinity === undefined ? [] : (['affinity'] as const))];
}

/** Creates the server for modern clients. */
function createModernServer(gateway: ErasOptions, options: ServeErasOptions, lists: ListCache): ModernServer {
  const { config, server, access, knownUsers, sessions: room, interceptors, startAheadMs } = options;
  const { version, shared, lasting, emit, config: all } = gateway;
  const common = {
    version,
    limits: { ...all.timeouts, ...all.derived },
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
  const open = linkIfAny(openShared, [...interceptors, ...lists.watch()]);
  const emitWithUnused: Emit<SharedServerEvent> = (event) => {
    emit(event);
    if (event.type === 'era-found') reportUnused(event.era);
  };
  const sharing = {
    isolation: modernIsolationOf(config, knownUsers()),
    isOfOneUser: () => knownUsers() === 'local',
    idleMs: config.hibernateAfterMs || all.timeouts.sessionIdleMs,
  };
  const modern = new ModernServer({
    ...common,
    ...how,
    ...sharing,
    legacy: () => options.legacy,
    room,
    emit: emitWithUnused,
    server: { ...server, open },
    era: config.era,
  });
  // A server that needs client credentials may not answer without a client.
  if (!usesClientCredentials(config)) setTimeout(() => modern.start(), startAheadMs).unref();
  return modern;
}

/** The opener with which legacy sessions reach the server, whatever its era is. */
function openForSessions(
  { config: { derived } }: ErasOptions,
  { config, access, direct }: ServeErasOptions,
  modern: ModernServer,
): OpenBackend {
  if (access === undefined) return direct;
  const { isOverHttp } = access;
  const { maxQueuedBytes } = derived;
  const translated: OpenBackend = (events, opening) => {
    const side = modern.forSession(opening?.principal ?? anonymous);
    return new Translator({ server: side, isOverHttp, maxQueuedBytes }, events, opening);
  };
  const silentMs = Math.ceil(config.timeouts.startMs / 3);
  return openEitherEra({ direct, translated, era: modern.serverEra, isOverHttp, silentMs });
}

/** Asks the process that all modern clients share. Rejects with the reason if it does not answer in time. */
async function probeShared(modern: ModernServer, version: string, timeoutMs: number): Promise<void> {
  const question = discoverRequest(nextOwnId(), { version, protocolVersion: modern.revision });
  const response = await askShared((answer) => modern.probe(question, answer), timeoutMs);
  if (typeof response !== 'object') throw new Error(response ?? 'the server did not answer in time');
}
