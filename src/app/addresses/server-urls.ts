// src/app/addresses: where the gateway listens, and the URLs that it prints.

import type { GatewayConfig } from '../../config/config.ts';
import { endpointPathsOf } from '../../config/endpoint-paths.ts';
import type { ServerHealth } from '../../core/ops/health/server-health.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { ServedServer } from '../servers/served-server.ts';
import type { ServerChanges } from '../servers/server-set.ts';

/** The URLs of a server. */
export interface ServerUrls {
  readonly server: string;
  readonly url: string;
  /** The same endpoint with the server's name in its path, if the operator chose that name. */
  readonly named?: string;
  /** The era of the server; `legacy` while it is unknown, because such a server accepts `initialize` too. */
  readonly era: Era;
  /** The URL for HTTP+SSE clients (2024-11-05). */
  readonly sse?: string;
  readonly ws?: string;
  /** The package that contains the server, with its version. */
  readonly package?: string;
  /** The known failure of the server and its remedy. */
  readonly failure?: string;
}

/**
 * The URLs of a server and its known failure.
 * @param base scheme, host and port
 * @param isNamed true if the operator chose the name, so that the path with the name is shown too
 * @param itsPackage the package that contains the server, with its version
 */
export function serverUrls(
  { config: own, eras }: Pick<ServedServer, 'config' | 'eras'>,
  config: GatewayConfig,
  base: string,
  isNamed: boolean,
  health: ServerHealth,
  itsPackage?: string,
): ServerUrls {
  const [{ mcp, ws, legacySse }, other] = endpointPathsOf(config, own);
  const onWs = ws && { ws: base.replace('http', 'ws') + ws };
  const named = isNamed && other !== undefined && { named: base + other.mcp };
  const { why, help = '' } = health.lastFailureOf(own.name) ?? {};
  const failure = why && { failure: `${why} ${help}`.trimEnd() };
  return {
    server: own.name,
    url: base + mcp,
    ...named,
    era: eras?.era ?? 'legacy',
    ...(legacySse && { sse: base + legacySse.stream }),
    ...onWs,
    ...(itsPackage !== undefined && { package: itsPackage }),
    ...failure,
  };
}

/**
 * Compares the URLs before and after a reload. Returns those that it adds, changes and removes.
 * @param changed the servers with a changed configuration
 */
export function changedUrls(
  before: readonly ServerUrls[],
  now: readonly ServerUrls[],
  changed: readonly string[],
): ServerChanges {
  const byUrl = (all: readonly ServerUrls[]): Map<string, string> =>
    new Map(all.flatMap(({ server, url, named }) => [url, named ?? url].map((each) => [each, server])));
  const [old, current] = [byUrl(before), byUrl(now)];
  const isOther = (url: string): boolean =>
    old.get(url) !== current.get(url) || changed.includes(current.get(url) ?? '');
  return {
    added: [...current.keys()].filter((url) => !old.has(url)),
    changed: [...current.keys()].filter((url) => old.has(url) && isOther(url)),
    removed: [...old.keys()].filter((url) => !current.has(url)),
  };
}
