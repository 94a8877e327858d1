// src/app/operator: the operator port, with metrics, health and the console.

import type { Server } from 'node:net';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import type { Authenticate } from '../../auth/identity.ts';
import { isLoopback } from '../../auth/origin-rules.ts';
import { usageOf } from '../../backend/stdio/processes/process-usage.ts';
import type { GatewayConfig } from '../../config/config.ts';
import { endpointPathsOf } from '../../config/endpoint-paths.ts';
import type { Endpoint } from '../../http/http-context.ts';
import type { ServerCertificate } from '../../http/http-server.ts';
import type { AdminServer } from '../../ops/admin/admin-server.ts';
import type { ConsoleHook, ConsoleServer, StatusPage, StoreState } from '../../ops/admin/console-hook.ts';
import type { ReadinessReport } from '../../ops/health/readiness-report.ts';
import type { ServerHealth } from '../../ops/health/server-health.ts';
import type { Metrics } from '../../ops/metrics/metrics.ts';
import type { Sessions } from '../../registry/sessions.ts';
import { differsByClient } from '../../server/server.ts';
import type { ClusterStore } from '../../store/store.ts';
import { detach } from '../../util/boundary.ts';
import type { Reloader } from '../reload/configuration-reload.ts';
import type { ServedServer } from '../servers/served-server.ts';
import type { ServerSet } from '../servers/server-set.ts';
import { version } from '../version.ts';
import { startAdmin } from './start-admin.ts';

/** The parts of a gateway that its operator port shows and uses. */
export interface OperatorParts {
  readonly config: GatewayConfig;
  /** The certificate of the gateway, if it has one. */
  readonly certificate: ServerCertificate | undefined;
  readonly logger: Logger;
  /** Undefined without an operator port. */
  readonly metrics: Metrics | undefined;
  /** Undefined without a console. */
  readonly consoleHook: ConsoleHook | undefined;
  /** Authenticates operators; undefined without authentication. */
  readonly operators: Authenticate | undefined;
  readonly sessions: Sessions;
  readonly set: ServerSet;
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

/** Opens the operator port of a gateway that listens. */
export async function openOperatorPort(parts: OperatorParts): Promise<OperatorPort> {
  const { config, certificate, logger, metrics, sessions, set, health, readinessNow } = parts;
  const page = await openPage(parts);
  if (metrics === undefined) return { admin: undefined, page };
  const state = {
    version,
    maxSessions: config.limits.total.sessions,
    readiness: () => readinessNow().status,
    servers: () => set.current.map((served) => served.config.name),
    probes: () => health.statuses,
    sessions: () => sessions.all,
    mailboxBacklog: sessions.mailboxBacklog,
    peerLinks: () => sessions.peerLinks,
    connections: () => promisify(parts.web.getConnections.bind(parts.web))(),
    lastReload: () => parts.configuration.last,
    store: parts.storeState,
  };
  const healthOptions = { readiness: readinessNow, servers: health, showsServers: true };
  const admin = await startAdmin({ config, certificate, logger, metrics, state, page, ...healthOptions });
  return { admin, page };
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
    openStreams: () => metrics?.sumByServer(['streams', 'webSockets']) ?? new Map(),
    usageOf,
    playground: parts.playground,
    drain: parts.drain,
  });
}

const consoleServer = (
  { config: { name }, server, running, modern, kept }: ServedServer,
  path: string,
): ConsoleServer => ({
  takesTokens: server.authorizesClients === true || differsByClient(server),
  name,
  path,
  callsInFlight: modern.inFlight.calls,
  renewUnused() {
    kept?.clear();
    detach('background', running.pool.renew());
  },
});
