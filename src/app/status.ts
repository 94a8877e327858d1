import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { usageOf } from '../backend/stdio/usage.ts';
import { createAuthenticate } from '../http/auth/authenticate.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { isLoopback } from '../http/origin.ts';
import type { ModernServer } from '../modern/modern-server.ts';
import { ChildMemory } from '../ops/status/child-memory.ts';
import { closedDoor, type Door, guardedDoor, openDoor } from '../ops/status/door.ts';
import type { LookedAtServer } from '../ops/status/look.ts';
import type { StatusRecord } from '../ops/status/record.ts';
import { createStatusPage, type StatusPage } from '../ops/status/status-page.ts';
import type { Sessions } from '../session/sessions.ts';
import type { Store } from '../store/store.ts';
import type { Authentication } from './authentication.ts';
import { hasAuthentication } from './configuration/authentication.ts';
import type { GatewayConfig, ServerConfig } from './configuration/config.ts';
import { endpointPathsOf } from './configuration/endpoint-paths.ts';
import type { RunningServer } from './servers.ts';
import { version } from './version.ts';

/** A configured server in use. */
export interface StatusServer {
  readonly running: RunningServer;
  readonly modern: ModernServer;
}

/** What the status page of a gateway is put together from. */
export interface StatusParts {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly record: StatusRecord;
  readonly store: Store;
  readonly sessions: Sessions;
  readonly authentication: Authentication;
  /** `http://127.0.0.1:8080` */
  readonly base: string;
  servers(): readonly StatusServer[];
  endpointAt(path: string): Endpoint | undefined;
  drain(): void;
}

/** The status page of a gateway; see `createStatusPage`. */
export function createStatus(parts: StatusParts): StatusPage {
  const { config, logger, record, store, sessions, base, servers, endpointAt, drain } = parts;
  const onFailed = (cause: unknown): void =>
    logger.debug({ err: cause }, 'the status page could not be told something');
  const memory = new ChildMemory(usageOf, onFailed);
  const pathOf = (server: ServerConfig): string => endpointPathsOf(config, server)[0].mcp;
  const named = (name: string): StatusServer | undefined =>
    servers().find(({ running }) => running.config.name === name);
  return createStatusPage({
    ...{ record, logger, drain, onFailed, version, maxSessions: config.maxSessions },
    name: `${hostname()}:${process.pid}`,
    door: doorOf(parts),
    changes: config.redis === undefined ? undefined : store.changes,
    readiness: () => sessions.readiness,
    sessions: () => sessions.all,
    endableSessions: () => sessions.all,
    servers: () => servers().map(lookedAt),
    memoryOf: (pids) => memory.of(pids),
    renewSpares: (server) => named(server)?.running.pool.renew(),
    about: () => ({
      servers: servers().map(({ running: { config: own } }) => ({ name: own.name, url: base + pathOf(own) })),
      needsToken: hasAuthentication(config),
      inspects: config.inspect,
    }),
    endpointOf(name) {
      const server = named(name);
      if (server === undefined) return undefined;
      const path = pathOf(server.running.config);
      const endpoint = endpointAt(path);
      return endpoint && { endpoint, path, host: hostOf(config, base) };
    },
  });
}

function lookedAt({ running: { config }, modern }: StatusServer): LookedAtServer {
  const transport = config.address?.transport ?? 'stdio';
  const health = { state: 'unknown' } as const;
  return { name: config.name, transport, era: modern.era ?? 'unknown', health, shared: modern.inFlight };
}

/** Who reaches a loopback address is on this machine; who reaches another one has to show that they may. */
function doorOf({ config, authentication: { authenticators } }: StatusParts): Door {
  if (isLoopback(config.adminHost)) return openDoor;
  return authenticators.length === 0 ? closedDoor : guardedDoor(createAuthenticate({ authenticators }));
}

/** A name by which the endpoints may be called. */
const hostOf = ({ allowHost }: GatewayConfig, base: string): string =>
  allowHost.find((name) => name !== '*') ?? new URL(base).host;
