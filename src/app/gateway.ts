// src/app: composes a gateway from a configuration, and runs the commands of the program.

import { hasAuthentication, strangersOf } from '../config/access/authentication-config.ts';
import type { GatewayConfig, ServerConfig } from '../config/config.ts';
import { CredentialWatch } from '../core/auth/credential-watch.ts';
import { createOriginRules, isLoopback } from '../core/auth/origin-rules.ts';
import { createAddressReader, createProxyCheck } from '../core/auth/sender-address.ts';
import { longestLineBytes } from '../core/backend/backend.ts';
import { OfferedNames } from '../core/backend/offered-names.ts';
import { withCors } from '../core/http/cors.ts';
import type { Endpoint } from '../core/http/http-context.ts';
import { createHttpServer } from '../core/http/http-server.ts';
import { withoutSlash } from '../core/http/router.ts';
import { CredentialMarks } from '../core/keys/credential-marks.ts';
import { configuredKeys, type StateKeys, storedKeys } from '../core/keys/state-keys.ts';
import type { StoreState } from '../core/ops/console-hook.ts';
import { readinessReport } from '../core/ops/health/readiness-report.ts';
import { ServerHealth } from '../core/ops/health/server-health.ts';
import type { Log } from '../core/ops/log/log.ts';
import { logRequests } from '../core/ops/log/request-log.ts';
import { Sessions } from '../core/registry/sessions.ts';
import type { Store } from '../core/store/store.ts';
import { ClientAccess } from './access/create-access.ts';
import { createAuthentication, createLocalClients } from './access/create-authentication.ts';
import { quotasOf } from './access/create-quotas.ts';
import { describeSharing, warnOfExpiry, warnOfExposure } from './access/exposure.ts';
import { explainListenFailure, linkPort, listen, tryAddress } from './addresses/listen.ts';
import { publicBaseUrl } from './addresses/public-base-url.ts';
import { changedUrls, type ServerUrls, serverUrls } from './addresses/server-urls.ts';
import { createRoutes, type RouteParts } from './create-routes.ts';
import { createConnectedStore, createStore, storeStateOf } from './create-store.ts';
import { createTelemetry } from './create-telemetry.ts';
import type { GatewaySetup } from './features/gateway-features.ts';
import type { Otlp } from './features/telemetry.ts';
import { watchFiles } from './file-watch.ts';
import { openOperatorPort } from './operator/open-operator-port.ts';
import { readCertificateNow, watchCertificate } from './reload/certificate-watch.ts';
import { type ConfigurationReload, type ConfigurationSource, createReloader } from './reload/configuration-reload.ts';
import { describePackage, needsInstallation, packagesFolder } from './servers/package-server.ts';
import { ServerSet } from './servers/server-set.ts';
import { readClientCertificates } from './tls-files.ts';
import { version } from './version.ts';

/** The keys that instances share: the configured keys, else one that the store keeps. */
function sharedKeysOf({ cluster }: GatewayConfig, store: Store): StateKeys {
  const [newest, ...older] = cluster.stateKeys;
  return newest === undefined ? storedKeys(store) : configuredKeys([newest, ...older]);
}

/** The parts that a gateway starts with. */
export interface GatewayParts extends GatewaySetup {
  /** The source of the configuration, from which a reload reads it again. */
  readonly source: ConfigurationSource;
  readonly log: Log;
  /** The export to an OpenTelemetry collector; undefined without one. */
  readonly otlp?: Otlp | undefined;
  /** The only server ended right after its start, so the gateway is useless. The message is for the operator. */
  onUseless(message: string): void;
  /** An authorized operator requests a graceful shutdown, as at SIGTERM. */
  onDrain(): void;
}

/** A running gateway. */
export interface Gateway {
  /** The current endpoints of each server. */
  readonly urls: readonly ServerUrls[];
  /** The file of the certificate, if no authority has signed it and clients must be told to trust it. */
  readonly ca: string | undefined;
  /** The base URL for a proxy on this machine, if clients use another one. */
  readonly localUrl: string | undefined;
  /** The URL of the status page with its secret token, for the operator only. Undefined if there is no page. */
  readonly statusPage: string | undefined;
  /** The directory of the sessions; undefined if they are kept in memory or in Redis. */
  readonly storeDirectory: string | undefined;
  /** The folder of installed packages; undefined if no server is a package. */
  readonly packagesFolder: string | undefined;
  /** One sentence: which clients share server processes. */
  readonly sharing: string;
  /** Reads configuration, keys and certificates again, and reopens the audit file. */
  reload(): void;
  /** Shuts down gracefully (P9). Resolves when no session, no process and no connection is left. */
  close(): Promise<void>;
}

/**
 * A stream between two instances that breaks is read on with within this time, on top of a lease. By then, an instance
 * that does not come back is lost.
 */
const unreadMarginMs = 2_000;

/** The part of the drain time that is reserved for the end of sockets and the store, and the exit itself. */
const exitMarginMs = 500;

/** The time for connections to end gracefully once no session is left. */
const connectionGraceMs = 250;

/** How long the exit waits for the collector: within the drain time, but for a moment that a collector nearby needs. */
const maxFlushMs = 3_000;
const minFlushMs = 250;

const originOptionsOf = ({ listen }: GatewayConfig) => ({
  host: listen.host,
  publicUrl: listen.publicUrl,
  allowOrigin: listen.allowedOrigins,
  allowHost: listen.allowedHosts,
});

/** Starts a gateway. Rejects with an error for the operator if it cannot listen or its only server cannot start. */
export async function startGateway(parts: GatewayParts): Promise<Gateway> {
  const { config, features, source, environment, log, otlp } = parts;
  // An installation takes long, and what is wrong with the port should be said before.
  if (config.servers.some((server) => needsInstallation(server, parts))) await tryAddress(config.listen);
  const watch = new CredentialWatch();
  const authentication = createAuthentication(config, watch, log.auth);
  const { identityHeaders } = authentication;
  const { localClients, knownUsers } = createLocalClients(config, log.app);
  const health = new ServerHealth();
  // With OTLP, the SDK is loaded by now.
  const tracing = await features.tracing?.load(version);
  const names = new OfferedNames();
  const consoleHook =
    config.listen.adminPort === 0
      ? undefined
      : await features.console?.connect({ inspects: config.observe.showContents, names });
  const telemetry = createTelemetry(parts, log, {
    health,
    traceBackends: tracing?.traceBackends,
    consoleHook,
    otlp,
    names,
  });
  const { emit, calls, metrics, meterOf } = telemetry;
  const { limits, timeouts, sse, derived } = config;
  const opened = await createStore(parts, log.store, telemetry);
  const { store, shared, lasting } = opened;
  const keys = sharedKeysOf(config, store);
  // Recognises the credentials of clients for their servers.
  const marks = new CredentialMarks(keys);
  const cluster =
    lasting &&
    features.cluster?.connect({
      config,
      environment,
      store: lasting,
      // Only instances that share the store ask each other.
      secrets: shared && keys,
      limits: { ...timeouts, ...sse, ...derived, leaseMs: config.cluster.leaseMs },
      emit,
      onUnable: (detail) => log.app.warn({ detail }, 'instances on this host cannot use sockets'),
    });
  const connectedStore = createConnectedStore(config);
  const reportStoreFailure = (cause: unknown): void => emit({ type: 'store-failed', cause });
  const eras = features.eras?.connect({
    config,
    version,
    keys,
    marks,
    store,
    shared,
    lasting,
    emit,
    onFailed: reportStoreFailure,
  });
  const quotas = quotasOf(config, store.rates, reportStoreFailure);
  const sessions = new Sessions({
    ...timeouts,
    ...sse,
    ...config.calls,
    ...derived,
    maxSessions: limits.total.sessions,
    maxCalls: limits.session.requests,
    cluster,
    unreadMs: cluster && cluster.leaseMs + unreadMarginMs,
    store,
    telemetry: telemetry.sessions,
    quotas,
    connections: { store: connectedStore, maxEventBytes: longestLineBytes },
    groupRules: eras?.groupRules,
    formerServer: (name, digest) => set.former(name, digest),
    currentServer: (name) => set.serverOf(name),
  });

  const tasks = features.tasks?.create({
    values: store.values,
    changes: store.changes,
    reservations: store.reservations,
    instances: {
      current: () => sessions.cluster?.lease.name ?? '',
      isAlive: async (instance) => (await sessions.cluster?.directory.isAlive(instance)) ?? false,
    },
    ttlMs: config.tasks.ttlMs,
    maxRunMs: timeouts.requestTotalMs,
    maxTextBytes: derived.maxEventBytes,
    onTask: (task) => emit({ type: 'task', ...task }),
    onFailed: reportStoreFailure,
  });

  const packageOf = (server: ServerConfig): string | undefined => describePackage(server, parts);
  const set: ServerSet = await ServerSet.start({
    setup: parts,
    telemetry,
    eras,
    sessions,
    knownUsers,
    health,
    logger: log.server,
    emit,
    keys,
    values: store.values,
    rates: store.rates,
    onStoreFailure: reportStoreFailure,
    clientInterceptors: telemetry.clientInterceptors,
    onUseless: parts.onUseless,
    onGone(server) {
      route();
      log.app.info({ server: server.name }, 'the old configuration of the server is no longer used');
    },
  });
  const closeParts = async (): Promise<void> => {
    eras?.close();
    await tasks?.close();
    await Promise.all([set.close(), store.close(), connectedStore.close()]);
  };

  const originRules = createOriginRules(originOptionsOf(config));
  const storeItself = storeStateOf(opened);
  const storeState = (): StoreState => {
    const unreachable = sessions.cluster?.peers?.unreachable.map(({ address }) => address) ?? [];
    const waiting = Math.max(0, (opened.countInFiles?.() ?? 0) - sessions.resumableCount);
    return { ...storeItself(), ...(unreachable.length > 0 && { unreachable }), ...(waiting > 0 && { waiting }) };
  };
  const readinessNow = () => {
    const { kind, isUp } = storeState();
    return readinessReport(sessions.readiness, health.statuses, sessions.cluster?.peers, kind !== 'files' || isUp);
  };
  const secrets = { keys, store: shared };
  const access = await ClientAccess.create(parts, authentication.authenticators, localClients, secrets, log.auth);
  const routeParts: RouteParts = {
    sessions,
    marks,
    originRules,
    identityHeaders,
    quotas,
    watch,
    tasks,
    isShared: shared !== undefined,
    calls,
    emit,
    addressOf: createAddressReader(config.auth.proxy.addresses),
    isOfProxy: createProxyCheck(config.auth.proxy.addresses),
    connectionMetersOf: (server) =>
      meterOf && { streams: meterOf('streams', server), webSockets: meterOf('webSockets', server) },
    tracePosts: tracing?.tracePosts,
    access,
    health: { readiness: readinessNow, servers: health, showsServers: !hasAuthentication(config) },
  };
  const webSockets = features.webSocket?.createEndpoint({
    ...timeouts,
    ...sse,
    ...derived,
    maxBodyBytes: limits.request.bodyBytes,
    sessions,
    watch,
    calls,
    tracePosts: tracing?.tracePosts,
    initializeTimeoutMs: derived.bodyTimeoutMs,
  });
  let routes = createRoutes(set.config, features, set.reachable, routeParts);
  const route = (): void => {
    routes = createRoutes(set.config, features, set.reachable, routeParts);
    webSockets?.route(routes.onWebSocket);
  };
  webSockets?.route(routes.onWebSocket);
  const certificate = readCertificateNow(config.listen.tls);
  const answer = withCors(originRules, (context) => routes.http.answer(context));
  const logged = (from?: string): Endpoint =>
    logRequests(answer, {
      logger: log.http,
      paths: { has: (path) => routes.http.has(withoutSlash(path)) },
      ...(from && { from }),
    });
  const clientCertificates = readClientCertificates(config);
  const onFlooded = (maxRequests: number): void => emit({ type: 'connection-flooded', maxRequests });
  const web = createHttpServer({ ...timeouts, ...derived, certificate, clientCertificates, onFlooded }, logged());
  webSockets?.attach(web.server);
  web.server.on('drop', () => emit({ type: 'connection-dropped', maxConnections: derived.maxConnections }));
  const listenForPeers = async (): Promise<void> => {
    await sessions.cluster?.listen().catch((cause: unknown) => {
      throw new Error(explainListenFailure(cause, config.cluster.link, linkPort), { cause });
    });
  };
  const listenForAll = async (): Promise<number> => {
    await listenForPeers();
    return listen(web.server, config.listen);
  };
  const port = await listenForAll().catch(async (error: unknown) => {
    await closeParts();
    throw error;
  });

  warnOfExposure(config, log.app);
  if (certificate !== undefined) warnOfExpiry(certificate, Date.now(), log.app);
  const publicBase = publicBaseUrl(
    { ...originOptionsOf(config), port, rules: originRules, certificate },
    config.listen.tls.cert,
  );
  const base = publicBase.url;
  const urls = (): ServerUrls[] =>
    set.current.map((served) =>
      serverUrls(served, set.config, base, parts.file !== undefined, health, packageOf(served.config)),
    );
  const replace: ConfigurationReload['replace'] = (servers) => {
    const before = urls();
    const changes = set.replace(servers);
    telemetry.useServers(servers);
    route();
    return { ...changes, urls: changedUrls(before, urls(), changes.changed) };
  };
  const configuration = createReloader({ source, started: config, replace, log, emit });
  const { admin, page } = await openOperatorPort({
    config,
    features,
    environment,
    file: parts.file,
    certificate,
    logger: log.app,
    metrics,
    consoleHook,
    operators: access.operators,
    sessions,
    set,
    tasks,
    health,
    web: web.server,
    base,
    shared,
    storeState,
    configuration,
    playground: logged('playground'),
    readinessNow,
    drain: parts.onDrain,
  });
  const certificateWatch =
    certificate &&
    watchCertificate({
      current: certificate,
      files: config.listen.tls,
      logger: log.app,
      renew(renewed) {
        web.renew(renewed);
        admin?.renew(renewed);
      },
    });
  const file = watchFiles(source.files, configuration.reload, source.states);
  return {
    ca: publicBase.ca,
    localUrl: publicBase.local,
    sharing: describeSharing(config.servers, knownUsers(), isLoopback(config.listen.host), strangersOf(config)),
    storeDirectory: opened.directory,
    packagesFolder: config.servers.some((server) => packageOf(server) !== undefined)
      ? packagesFolder(parts)
      : undefined,
    statusPage: admin && page?.secretUrlAt(admin.url),
    get urls() {
      return urls();
    },
    reload() {
      authentication.reload?.();
      certificateWatch?.check();
      telemetry.reopen();
      configuration.reload();
    },
    async close() {
      file.stop();
      certificateWatch?.stop();
      tasks?.leave();
      const begunAt = performance.now();
      const graceMs = Math.max(0, config.timeouts.drainMs - set.longestEndMs - exitMarginMs);
      const drainedBy = begunAt + graceMs;
      await set.drain(graceMs, () => sessions.drain(graceMs));
      await web.finish(Math.max(0, drainedBy - performance.now()));
      await closeParts();
      watch.close();
      authentication.close();
      await Promise.all([webSockets?.close(connectionGraceMs), web.close(connectionGraceMs)]);
      await page?.close();
      await Promise.all([telemetry.close(), admin?.close(connectionGraceMs), tracing?.flush()]);
      const leftMs = begunAt + config.timeouts.drainMs - performance.now();
      await otlp?.flush(Math.min(maxFlushMs, Math.max(minFlushMs, leftMs)));
    },
  };
}
