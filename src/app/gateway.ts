import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import type { OpenBackend } from '../backend/backend.ts';
import { Groups } from '../era/groups/groups.ts';
import { openEitherEra } from '../era/open-either-era.ts';
import { Translator } from '../era/translator.ts';
import type { AdmissionOptions } from '../http/admission.ts';
import { createHttpApp, createListener } from '../http/app.ts';
import { CredentialWatch } from '../http/auth/credential-watch.ts';
import { addResourceMetadata } from '../http/auth/oauth/metadata-routes.ts';
import { createCors } from '../http/cors.ts';
import { createEndpoint, type Endpoint } from '../http/endpoint.ts';
import { createOriginRules } from '../http/origin.ts';
import { createMessagesEndpoint, createSseStream } from '../http/sse-face.ts';
import { createWebServer, type ServerCertificate, type WebServer } from '../http/web-server.ts';
import { createWebSocketFace, webSocketOnly } from '../http/websocket/face.ts';
import { ModernServer } from '../modern/modern-server.ts';
import type { ModernObserver } from '../modern/observer.ts';
import { addHealth } from '../ops/health.ts';
import type { Log } from '../ops/log.ts';
import { logRequests } from '../ops/request-log.ts';
import { Sessions } from '../session/sessions.ts';
import { anyChange, ChangeTeller } from '../store/change-teller.ts';
import type { Changes } from '../store/changes.ts';
import { createAccess } from './access.ts';
import { startAdmin } from './admin.ts';
import { createAuthentication } from './authentication.ts';
import type { Urls } from './banner.ts';
import { type CertificateWatch, watchCertificate } from './certificate-watch.ts';
import { hasAuthentication, isolationOf } from './configuration/authentication.ts';
import { readCertificate } from './configuration/certificate.ts';
import type { GatewayConfig } from './configuration/config.ts';
import { asksClients } from './configuration/credentials.ts';
import { endpointPathsOf } from './configuration/endpoint-paths.ts';
import type { Environment } from './configuration/environment.ts';
import { flagOf } from './configuration/option-names.ts';
import { createKeyed } from './create-keyed.ts';
import { createConnectedStore, createStore } from './create-store.ts';
import { warnOfExpiry, warnOfExposure } from './exposure.ts';
import { displayHost, explainListenFailure } from './listen-address.ts';
import { createObservers, type Observers } from './observers.ts';
import { quotasOf } from './quotas.ts';
import { missingCommand, type RunningServer, runServer } from './servers.ts';
import { awaitStart, probeMs } from './start-probe.ts';
import { loadTracing } from './tracing.ts';
import { version } from './version.ts';

/** What a gateway is started with. */
export interface GatewayParts {
  readonly config: GatewayConfig;
  readonly environment: Environment;
  readonly log: Log;
  /** The only server does not start; the gateway is of no use. One clear sentence. */
  onUseless(message: string): void;
}

/** A running gateway. */
export interface Gateway {
  /** The endpoints, by server. */
  readonly urls: readonly Urls[];
  /** Reads the files again that may change while it runs; undefined if there are none. */
  readonly reload: (() => void) | undefined;
  /** Ends everything in order (P9): resolves when no session, no process and no connection is left. */
  close(): Promise<void>;
}

/** Kept free before the drain's deadline for what comes after the sessions: sockets, the store, the exit itself. */
const exitMarginMs = 500;

/** How long connections may take to end in order once no session is left. */
const connectionGraceMs = 250;

/** Starts a gateway. Rejects with an error for the operator if it cannot listen, or if its only server cannot be started. */
export async function startGateway({ config, environment, log, onUseless }: GatewayParts): Promise<Gateway> {
  const { host, port } = config;
  const isAuthenticated = hasAuthentication(config);
  const watch = new CredentialWatch();
  const authentication = createAuthentication(config, watch, log.auth);
  const { identityHeaders } = authentication;
  const observers = createObservers(config, log);
  const { sessions: observer, modern: modernObserver, calls, audit, metrics } = observers;
  const store = await createStore(config, log.store, metrics);
  const storeWaitMs = config.redisWaitMs;
  const cluster = config.redis === undefined ? undefined : { ...config, storeWaitMs };
  const connectedStore = createConnectedStore(config);
  const teller = new ChangeTeller(store.changes, (cause) => observer.clusterFailed(cause));
  const onGroupChange = (topic: string, text = anyChange): void => teller.tell(topic, text);
  const quotas = quotasOf(config, store.rates, (cause) => observer.clusterFailed(cause));
  const sessions = new Sessions({ ...config, storeWaitMs, cluster, store, observer, onGroupChange, quotas });
  const started = await startServers({ config, environment, log, onUseless }, observers);
  const tracing = await loadTracing(version);
  const servers = tracing === undefined ? started : started.map(tracing.traceServer);
  const tracePosts = tracing?.tracePosts;
  const closeParts = async (): Promise<void> => {
    await Promise.all(servers.map(({ pool }) => pool.close()));
    await Promise.all([store.close(), connectedStore.close()]);
  };

  // Whoever uses the process of an only server excuses its end: before it is proven, only a client does.
  const startAheadMs = servers.length === 1 ? probeMs : 0;
  const changes = config.redis === undefined ? undefined : store.changes;
  const modernServers = new Map(
    servers.map((running) => [running, runModern(running, config, modernObserver, startAheadMs, changes)]),
  );
  const keyed = createKeyed(config, store);
  const allGroups: Groups[] = [];
  const originRules = createOriginRules(config);
  const endpoints = new Map<string, Endpoint>();
  const onWebSocket = new Map<string, AdmissionOptions>();
  const access = await createAccess(config, authentication.authenticators, log.auth);
  for (const [running, modern] of modernServers) {
    const own = running.config;
    const server = { ...running.server, open: openForSessions(running, modern, config) };
    const groups = new Groups({
      ...{ sessions, records: store.sessions, changes: store.changes, outcomes: store.outcomes, server, version },
      ...keyed,
      ...{ isolation: isolationOf(own.isolation, isAuthenticated), poolMax: own.poolMax },
      requestIdleMs: config.requestIdleMs,
      settleMs: own.startTimeoutMs,
      maxListeners: config.maxSharedCalls,
      onFailed: (cause) => modernObserver.failed(own.name, cause),
    });
    allGroups.push(groups);
    const { marks } = keyed;
    const traffic = observers.trafficOf(own.name);
    const heard = { calls, tracePosts, traffic };
    const doors = { originRules, identityHeaders, marks, quotas, watch, ...heard, ...access.of(own) };
    const { sessionless } = own;
    const options = { ...config, server, sessions, modern, groups, sessionless, ...doors };
    const endpoint = createEndpoint(options);
    for (const { mcp, ws, old } of endpointPathsOf(config, own)) {
      endpoints.set(mcp, endpoint);
      if (ws !== undefined) {
        endpoints.set(ws, webSocketOnly);
        onWebSocket.set(ws, options);
      }
      if (old === undefined) continue;
      const face = { ...options, messagesPath: old.messages };
      endpoints.set(old.stream, createSseStream(face));
      endpoints.set(old.messages, createMessagesEndpoint(face));
    }
  }
  const app = createHttpApp(endpoints);
  addResourceMetadata(app, access.metadata);
  const readiness = () => sessions.readiness;
  addHealth(app, { readiness });

  const listener = logRequests(createListener(app, endpoints, createCors(originRules)), {
    logger: log.http,
    paths: new Set([...endpoints.keys(), ...access.metadata.keys(), '/healthz', '/readyz']),
  });
  const certificate = certificateOf(config);
  const web = createWebServer({ ...config, certificate }, listener);
  const http = web.server;
  const webSockets = createWebSocketFace({
    ...config,
    servers: onWebSocket,
    sessions,
    store: connectedStore,
    ...{ watch, calls, tracePosts },
    maxEventBytes: config.maxLineBytes,
    initializeTimeoutMs: config.bodyTimeoutMs,
  });
  webSockets.attach(http);
  http.on('drop', () =>
    log.http.warn({ maxConnections: config.maxConnections }, 'closed a connection: too many are open'),
  );
  try {
    http.listen(port, host);
    await once(http, 'listening');
  } catch (cause) {
    await closeParts();
    throw new Error(explainListenFailure(cause, config), { cause });
  }

  warnOfExposure(config, log.app);
  if (certificate !== undefined) warnOfExpiry(certificate, Date.now(), log.app);
  const certificateWatch = watchFor(certificate, config, web, log.app);
  const readAgain = [authentication.reload, certificateWatch?.look, audit?.reopen].filter((read) => read !== undefined);
  const state = {
    ...{ version, maxSessions: config.maxSessions, servers: config.servers.map(({ name }) => name), readiness },
    sessions: () => sessions.all,
    waitingMail: sessions.waitingMail,
    connections: () => promisify(http.getConnections.bind(http))(),
    isStoreUp: () => (config.redis === undefined ? undefined : store.healthyForMs() > 0),
  };
  const admin = metrics && (await startAdmin({ config, logger: log.app, metrics, state, readiness }));
  const base = `${certificate === undefined ? 'http' : 'https'}://${displayHost(host)}:${(http.address() as AddressInfo).port}`;
  return {
    urls: [...modernServers].map(([{ config: own }, { era = 'legacy' }]) => {
      const [{ mcp, ws, old }] = endpointPathsOf(config, own);
      const onWs = ws && { ws: base.replace('http', 'ws') + ws };
      return { server: own.name, url: base + mcp, era, ...(old && { sse: base + old.stream }), ...onWs };
    }),
    reload: readAgain.length === 0 ? undefined : () => void readAgain.map((read) => read()),
    async close() {
      certificateWatch?.stop();
      const endMs = Math.max(...servers.map(({ config: c }) => c.stdinCloseGraceMs + c.terminateGraceMs));
      const graceMs = Math.max(0, config.drainMs - endMs - exitMarginMs);
      for (const groups of allGroups) groups.close();
      const sessionsEnded = sessions.drain(graceMs);
      await Promise.all([
        sessionsEnded,
        ...[...modernServers.values()].map((modern) => modern.drain(graceMs, sessionsEnded)),
      ]);
      await closeParts();
      watch.close();
      authentication.close();
      await Promise.all([webSockets.close(connectionGraceMs), web.close(connectionGraceMs)]);
      await Promise.all([audit?.close(), admin?.close(connectionGraceMs), tracing?.flush()]);
    },
  };
}

/** A server as clients of the modern era meet it. */
function runModern(
  { config, server, modern: access }: RunningServer,
  gateway: GatewayConfig,
  observer: ModernObserver,
  startAheadMs: number,
  changes: Changes | undefined,
): ModernServer {
  const common = { version, limits: gateway, observer, changes };
  if (access === undefined) return new ModernServer({ ...common, server, era: 'legacy', openSibling: server.open });
  const { open, ...how } = access;
  const modern = new ModernServer({ ...common, ...how, server: { ...server, open }, era: config.era });
  // One that is to get something of its clients may answer nobody without.
  if (!asksClients(config)) setTimeout(() => modern.start(), startAheadMs).unref();
  return modern;
}

/** How sessions of the legacy era open the server, of whichever era it is. */
function openForSessions(
  { config, server, modern: access }: RunningServer,
  modern: ModernServer,
  gateway: GatewayConfig,
): OpenBackend {
  if (access === undefined || config.era === 'legacy') return server.open;
  const { isOverHttp } = access;
  const options = { server: modern, isOverHttp, maxQueuedBytes: gateway.maxQueuedBytes };
  const translated: OpenBackend = (events, opening) => new Translator(options, events, opening);
  if (config.era === 'modern') return translated;
  const silentMs = Math.ceil(config.startTimeoutMs / 3);
  return openEitherEra({ direct: server.open, translated, eras: modern, isOverHttp, silentMs });
}

async function startServers(
  { config, environment, log, onUseless }: GatewayParts,
  { listenersOf }: Observers,
): Promise<RunningServer[]> {
  const [only, ...others] = config.servers;
  // A server that is to get something of its clients may want it from the first connection on: it cannot be tried without.
  if (only !== undefined && others.length === 0 && !asksClients(only)) {
    const listeners = listenersOf(only.name);
    return [await awaitStart({ config: only, gateway: config, environment, listeners, onUseless })];
  }
  return config.servers.map((server) => {
    const missing = missingCommand(server, environment);
    if (missing !== undefined)
      log.server.warn({ server: server.name, detail: missing }, 'server cannot be started; its sessions will fail');
    return runServer(server, config, environment, listenersOf(server.name));
  });
}

/** Throws an error for the operator if the files changed since the configuration was read, and not for the better. */
function certificateOf(config: GatewayConfig): ServerCertificate | undefined {
  const read = readCertificate(config, (path) => readFileSync(path, 'utf8'));
  if (!read.ok) throw new Error(`${flagOf(read.option)} ${read.message}.`);
  return read.certificate;
}

function watchFor(
  current: ServerCertificate | undefined,
  files: GatewayConfig,
  web: WebServer,
  logger: Logger,
): CertificateWatch | undefined {
  if (current === undefined) return undefined;
  return watchCertificate({
    files,
    current,
    onRenewed(certificate) {
      web.renew(certificate);
      logger.info('new connections get the renewed certificate');
      warnOfExpiry(certificate, Date.now(), logger);
    },
    onRefused: (detail) =>
      logger.warn({ detail }, 'kept the certificate in use: its files have changed, and are of no use'),
  });
}
