import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { Authenticate } from '../auth/identity.ts';
import { isLoopback } from '../auth/origin-rules.ts';
import { usageOf } from '../backend/stdio/processes/process-usage.ts';
import { hasAuthentication } from '../config/access/authentication-config.ts';
import type { GatewayConfig, ServerConfig } from '../config/config.ts';
import { type AccessPolicy, denyAll, requireScope, requireStartToken } from '../console/access-policy.ts';
import { createStatusPage, type StatusPage } from '../console/console.ts';
import type { ConsoleRecord } from '../console/record/console-record.ts';
import { ProcessMemory } from '../console/snapshot/process-memory.ts';
import type { ServerHealthView } from '../console/snapshot/snapshot.ts';
import type { ServerState } from '../console/snapshot/snapshot-builder.ts';
import type { Endpoint } from '../http/http-context.ts';
import type { ModernServer } from '../modern/modern-server.ts';
import type { ServerHealth, ServerStatus } from '../ops/health/server-health.ts';
import type { Readiness } from '../registry/readiness.ts';
import type { Sessions } from '../registry/sessions.ts';
import type { ClusterStore } from '../store/store.ts';
import type { RunningServer } from './servers/run-server.ts';
import { version } from './version.ts';

/** A configured server that is in use. */
export interface ConsoleServer {
  readonly running: RunningServer;
  readonly modern: ModernServer;
}

/** The parts of a gateway's status page. */
export interface GatewayConsoleParts {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly record: ConsoleRecord;
  readonly health: ServerHealth;
  /** The store if other instances share it. */
  readonly shared: ClusterStore | undefined;
  readonly sessions: Sessions;
  /** The readiness, as in `/readyz`. */
  readiness(): Readiness;
  /** Authenticates operators; undefined without authentication. */
  readonly operators: Authenticate | undefined;
  /** The secret token of this start, which is a part of the printed URL. */
  readonly startToken: string;
  /** `http://127.0.0.1:8080` */
  readonly base: string;
  servers(): readonly ConsoleServer[];
  /** The endpoint path of a server. */
  pathOf(server: ServerConfig): string;
  /** Answers requests of the playground like those of clients. */
  readonly playground: Endpoint;
  drain(): void;
}

/** Creates the status page of a gateway; see `createStatusPage`. */
export function createGatewayConsole(parts: GatewayConsoleParts): StatusPage {
  const { config, logger, record, health, shared, sessions, base, readiness, servers, pathOf, playground, drain } =
    parts;
  const onFailed = (cause: unknown): void => logger.debug({ err: cause }, 'cannot send an event to the status page');
  const memory = new ProcessMemory(usageOf, onFailed);
  const findServer = (name: string): ConsoleServer | undefined =>
    servers().find(({ running }) => running.config.name === name);
  return createStatusPage({
    record,
    logger,
    readiness,
    drain,
    onFailed,
    version,
    maxSessions: config.maxSessions,
    retryMs: config.retryMs,
    name: `${hostname()}:${process.pid}`,
    access: accessPolicyOf(parts),
    changes: shared?.changes,
    sessions: () => sessions.all,
    endableSessions: () => sessions.all,
    servers() {
      const inFlight = new Map(servers().map(({ running, modern }) => [running.config.name, modern.inFlight]));
      return health.statuses.map((status) => serverStateOf(status, inFlight.get(status.server)));
    },
    memoryOf: (pids) => memory.of(pids),
    renewSpares: (server) => findServer(server)?.running.pool.renew(),
    about: () => ({
      servers: servers().map(({ running: { config: own } }) => ({ name: own.name, url: base + pathOf(own) })),
      needsToken: hasAuthentication(config),
      inspects: config.inspect,
    }),
    listener: playground,
    addressOf(name) {
      const server = findServer(name);
      return server && { path: pathOf(server.running.config), host: new URL(base).host };
    },
  });
}

/** The state of a server, with the requests that modern clients have in flight. */
function serverStateOf(status: ServerStatus, shared = { calls: 0, streams: 0 }): ServerState {
  const { server: name, transport, era = 'unknown' } = status;
  return { name, transport, era, shared, health: healthOf(status) };
}

/** The health of a server: the result of the last probe, else of the last start. */
function healthOf({ last, probe }: ServerStatus): ServerHealthView {
  const found = last === undefined ? undefined : last.state === 'started' ? 'up' : 'down';
  return {
    state: probe ?? found ?? 'unknown',
    summary: last?.state === 'failed' ? [last.why, last.help ?? ''].join(' ').trimEnd() : undefined,
    at: last?.at.getTime(),
  };
}

/**
 * With authentication, operators need a key or token on every address: servers, and clients through tools, can reach a
 * loopback port too (docs/decisions/0065). Without authentication, the page needs the token of the printed URL and is
 * available on this machine only.
 */
function accessPolicyOf({ config, operators, startToken }: GatewayConsoleParts): AccessPolicy {
  if (operators !== undefined) return requireScope(operators);
  return isLoopback(config.adminHost) ? requireStartToken(startToken) : denyAll;
}
