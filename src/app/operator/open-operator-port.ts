// src/app/operator: the operator port, with metrics, health and the console.

import type { Server } from 'node:net';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import { hasAuthentication } from '../../config/access/authentication-config.ts';
import type { GatewayConfig } from '../../config/config.ts';
import { endpointPathsOf } from '../../config/endpoint-paths.ts';
import type { Authenticate } from '../../core/auth/identity.ts';
import { createOriginRules, isLoopback } from '../../core/auth/origin-rules.ts';
import { usageOf } from '../../core/backend/stdio/processes/process-usage.ts';
import type { Endpoint } from '../../core/http/http-context.ts';
import type { ServerCertificate } from '../../core/http/http-server.ts';
import { textResponse } from '../../core/http/respond.ts';
import { type App, Routes } from '../../core/http/router.ts';
import type { ConsoleHook, ConsoleServer, StatusPage, StoreState } from '../../core/ops/console-hook.ts';
import { addHealthRoutes } from '../../core/ops/health/health-endpoints.ts';
import type { ReadinessReport } from '../../core/ops/health/readiness-report.ts';
import type { ServerHealth } from '../../core/ops/health/server-health.ts';
import type { Sessions } from '../../core/registry/sessions.ts';
import { differsByClient } from '../../core/server/server.ts';
import type { ClusterStore } from '../../core/store/store.ts';
import { detach } from '../../core/util/boundary.ts';
import { docsPage } from '../../core/util/docs-page.ts';
import { explainListenFailure, type PortOptions } from '../addresses/listen.ts';
import { publicBaseUrl } from '../addresses/public-base-url.ts';
import type { GatewayTaskSet } from '../features/eras.ts';
import type { GatewaySetup } from '../features/gateway-features.ts';
import type { AdminServer, GatewayMetrics, OperatorPortFeature } from '../features/telemetry.ts';
import type { Reloader } from '../reload/configuration-reload.ts';
import type { ServedServer } from '../servers/served-server.ts';
import type { ServerSet } from '../servers/server-set.ts';
import { version } from '../version.ts';

/** The parts of a gateway that its operator port shows and uses. */
export interface OperatorParts extends GatewaySetup {
  /** The certificate of the gateway, if it has one. */
  readonly certificate: ServerCertificate | undefined;
  readonly logger: Logger;
  /** Undefined if nobody reads metrics. */
  readonly metrics: GatewayMetrics | undefined;
  /** Undefined without a console. */
  readonly consoleHook: ConsoleHook | undefined;
  /** Authenticates operators; undefined without authentication. */
  readonly operators: Authenticate | undefined;
  readonly sessions: Sessions;
  readonly set: ServerSet;
  /** Undefined without tasks. */
  readonly tasks: Pick<GatewayTaskSet, 'list' | 'cancelByName'> | undefined;
  readonly health: ServerHealth;
  /** The server for clients. */
  readonly web: Server;
  /** The URL of the gateway for clients. */
  readonly base: string;
  /** The store in Redis; undefined if sessions are elsewhere. */
  readonly shared: ClusterStore | undefined;
  storeState(): StoreState;
  readonly configuration: Reloader;
  /** Answers requests of the playground like those of clients. */
  readonly playground: Endpoint;
  readinessNow(): ReadinessReport;
  drain(): void;
}

/** The operator port; its parts are undefined without one, or if it could not listen. */
export interface OperatorPort {
  readonly admin: AdminServer | undefined;
  readonly page: StatusPage | undefined;
}

const operatorPort: PortOptions = {
  host: 'listen.adminHost',
  port: 'listen.adminPort',
  zeroMeans: 'disables the operator port',
};

/** Opens the operator port of a gateway that listens. */
export async function openOperatorPort(parts: OperatorParts): Promise<OperatorPort> {
  const { config, metrics, sessions, set, health, readinessNow } = parts;
  const page = await openPage(parts);
  const { operatorPort } = parts.features;
  metrics?.watchInstance({
    version,
    maxSessions: config.limits.total.sessions,
    readiness: () => readinessNow().status,
    servers: () => set.current.map((served) => served.config.name),
    probes: () => health.statuses,
    sessions: () => sessions.all,
    peers: () => sessions.cluster?.peers,
    connections: () => promisify(parts.web.getConnections.bind(parts.web))(),
    lastReload: () => parts.configuration.last,
    store: parts.storeState,
  });
  if (config.listen.adminPort === 0 || operatorPort === undefined) return { admin: undefined, page };
  return { admin: await listenForOperators(parts, operatorPort, metrics, page), page };
}

/**
 * Listens. Returns undefined if that is not possible, and logs the remedy: a second gateway on a machine must start even
 * though the default port is in use.
 */
async function listenForOperators(
  { config, certificate, logger, health, readinessNow }: OperatorParts,
  feature: OperatorPortFeature,
  metrics: GatewayMetrics | undefined,
  page: StatusPage | undefined,
): Promise<AdminServer | undefined> {
  const { adminHost: host, adminPort: port } = config.listen;
  const routes = new Routes('admin', 'no_such_admin_path');
  addHealthRoutes(routes.app, { readiness: readinessNow, servers: health, showsServers: true });
  if (metrics !== undefined) addMetricsRoute(routes.app, metrics);
  page?.addRoutes(routes.app);
  try {
    // On loopback there is no network to protect, and the certificate is for another name.
    const own = isLoopback(host) ? undefined : certificate;
    // An allowed host with a port has the port for clients.
    const allowHost = isLoopback(host) ? [] : config.listen.allowedHosts.map((name) => name.replace(/:\d+$/, ''));
    const started = await feature.start({
      host,
      port,
      allowHost: config.listen.allowedHosts,
      certificate: own,
      endpoint: routes.answer,
      isPagePath: (path) => page?.has(path) ?? false,
    });
    const rules = createOriginRules({ host, allowOrigin: [], allowHost });
    const { url } = publicBaseUrl({
      host,
      port: Number(new URL(started.url).port),
      allowHost,
      rules,
      certificate: own,
    });
    const admin = { ...started, url };
    const statusPage = page?.urlAt(url);
    logger.info(
      { url: `${url}/metrics`, statusPage },
      statusPage === undefined ? 'metrics ready' : 'metrics and status page ready',
    );
    warnOfExposure(config, certificate !== undefined, logger);
    return admin;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    // Beside another gateway, nobody has done anything wrong.
    const level = code === 'EADDRINUSE' && !config.isAdminPortChosen ? 'warn' : 'error';
    logger[level](
      { host, port, detail: explainListenFailure(cause, { host, port }, operatorPort) },
      'cannot open the operator port: no metrics and no status page',
    );
    return undefined;
  }
}

async function openPage(parts: OperatorParts): Promise<StatusPage | undefined> {
  const { config, logger, metrics, sessions, set, health, shared, readinessNow } = parts;
  return parts.consoleHook?.open({
    logger,
    version,
    maxSessions: config.limits.total.sessions,
    retryMs: config.sse.reconnectDelayMs,
    operators: parts.operators,
    isOnLoopback: isLoopback(config.listen.adminHost),
    base: parts.base,
    changes: shared?.changes,
    readiness: () => readinessNow().status,
    store: parts.storeState,
    health: () => health.statuses,
    failureDetails: (server) => health.detailsOf(server),
    servers: () =>
      set.current.map((served) => consoleServer(served, endpointPathsOf(set.config, served.config)[0].mcp)),
    sessionCount: () => sessions.count,
    sessions: () => sessions.all,
    tasks: () => parts.tasks?.list() ?? [],
    cancelTask: (name) => parts.tasks?.cancelByName(name) ?? false,
    openStreams: () => metrics?.sumByServer(['streams', 'webSockets']) ?? new Map(),
    usageOf,
    playground: parts.playground,
    async check(server) {
      const { checkOneServer } = await import('../commands/check/check-one-server.ts');
      const servers = set.current.map((served) => served.config);
      return checkOneServer(server, { ...parts, config: { ...set.config, servers } });
    },
    drain: parts.drain,
  });
}

const consoleServer = (
  { config: { name }, server, running, eras, kept }: ServedServer,
  path: string,
): ConsoleServer => ({
  takesTokens: server.authorizesClients === true || differsByClient(server),
  name,
  path,
  callsInFlight: eras?.callsInFlight ?? 0,
  renewUnused() {
    kept?.clear();
    detach('background', running.pool.renew());
  },
});

function warnOfExposure(config: GatewayConfig, hasTls: boolean, logger: Logger): void {
  const { adminHost: host, adminPort: port } = config.listen;
  if (isLoopback(host)) return;
  if (hasAuthentication(config) && !hasTls)
    logger.warn(
      {
        host,
        port,
        detail: `Set --tls-cert and --tls-key (the operator port uses them too), or set --listen.adminHost to a loopback address and use a tunnel. See ${docsPage('status-page.md')}`,
      },
      'the operator port has no TLS: keys of operators can be read on the network',
    );
  const detail = `The metrics contain server names and usage numbers, but no ids, users or content. Allow only your monitoring system to reach this address. See ${docsPage('reference/metrics.md')}`;
  logger.warn({ host, port, detail }, 'anyone who can reach the operator port can read the metrics');
}

/** Adds `/metrics`, in Prometheus' text format. */
function addMetricsRoute(app: App, metrics: GatewayMetrics): void {
  app.get('/metrics', async () => {
    const exposition = await metrics.exposition();
    return textResponse(await exposition.render(), 200, { 'content-type': exposition.contentType });
  });
}
