import type { RequestListener } from 'node:http';
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
import type { ModernServer } from '../modern/modern-server.ts';
import type { ServerHealth, ServerStatus } from '../ops/health/server-health.ts';
import type { Readiness } from '../registry/readiness.ts';
import type { Sessions } from '../registry/sessions.ts';
import type { Store } from '../store/store.ts';
import type { RunningServer } from './servers/run-server.ts';
import { version } from './version.ts';

/** A configured server in use. */
export interface ConsoleServer {
  readonly running: RunningServer;
  readonly modern: ModernServer;
}

/** What the status page of a gateway is put together from. */
export interface GatewayConsoleParts {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly record: ConsoleRecord;
  readonly health: ServerHealth;
  readonly store: Store;
  readonly sessions: Sessions;
  /** As `/readyz` has it. */
  readiness(): Readiness;
  /** Finds out who asks; undefined where the gateway does no authentication. */
  readonly operators: Authenticate | undefined;
  /** The word of this start. */
  readonly word: string;
  /** `http://127.0.0.1:8080` */
  readonly base: string;
  servers(): readonly ConsoleServer[];
  /** Where clients reach a server. */
  pathOf(server: ServerConfig): string;
  /** Answers requests of the playground as those of clients. */
  readonly playground: RequestListener;
  drain(): void;
}

/** The status page of a gateway; see `createStatusPage`. */
export function createGatewayConsole(parts: GatewayConsoleParts): StatusPage {
  const { config, logger, record, health, store, sessions, base, readiness, servers, pathOf, playground, drain } =
    parts;
  const onFailed = (cause: unknown): void => logger.debug({ err: cause }, 'cannot send an event to the status page');
  const memory = new ProcessMemory(usageOf, onFailed);
  const named = (name: string): ConsoleServer | undefined =>
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
    access: doorOf(parts),
    changes: config.redis === undefined ? undefined : store.changes,
    sessions: () => sessions.all,
    endableSessions: () => sessions.all,
    servers() {
      const inFlight = new Map(servers().map(({ running, modern }) => [running.config.name, modern.inFlight]));
      return health.statuses.map((status) => lookedAt(status, inFlight.get(status.server)));
    },
    memoryOf: (pids) => memory.of(pids),
    renewSpares: (server) => named(server)?.running.pool.renew(),
    about: () => ({
      servers: servers().map(({ running: { config: own } }) => ({ name: own.name, url: base + pathOf(own) })),
      needsToken: hasAuthentication(config),
      inspects: config.inspect,
    }),
    listener: playground,
    placeOf(name) {
      const server = named(name);
      return server && { path: pathOf(server.running.config), host: new URL(base).host };
    },
  });
}

/** A server as it does, with what modern clients have in flight at it. */
function lookedAt(status: ServerStatus, shared = { calls: 0, streams: 0 }): ServerState {
  const { server: name, transport, era = 'unknown' } = status;
  return { name, transport, era, shared, health: healthOf(status) };
}

/** The newest that is known: what the probe says, else what came of the last try to use it. */
function healthOf({ last, probe }: ServerStatus): ServerHealthView {
  const found = last === undefined ? undefined : last.state === 'started' ? 'up' : 'down';
  return {
    state: probe ?? found ?? 'unknown',
    said: last?.state === 'failed' ? [last.why, last.help ?? ''].join(' ').trimEnd() : undefined,
    at: last?.at.getTime(),
  };
}

/**
 * With authentication, operators show a key or token on every address: servers, and clients through the tools of servers,
 * reach a loopback port as well (docs/decisions/0065). Without, they show the word of the printed URL, on this machine alone.
 */
function doorOf({ config, operators, word }: GatewayConsoleParts): AccessPolicy {
  if (operators !== undefined) return requireScope(operators);
  return isLoopback(config.adminHost) ? requireStartToken(word) : denyAll;
}
