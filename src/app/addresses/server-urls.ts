import type { GatewayConfig } from '../../config/config.ts';
import { endpointPathsOf } from '../../config/endpoint-paths.ts';
import type { ServerHealth } from '../../ops/health/server-health.ts';
import type { Era } from '../../protocol/revisions.ts';
import type { ServedServer } from '../servers/served-server.ts';
import type { ServerChanges } from '../servers/server-set.ts';

/** Where a server can be reached. */
export interface ServerUrls {
  readonly server: string;
  readonly url: string;
  /** The same behind its name, for a server that has a path without and was named by the operator. */
  readonly named?: string;
  /** What the server is known to speak; a server of an unknown era takes `initialize`, too. */
  readonly era: Era;
  /** For HTTP+SSE clients (2024-11-05). */
  readonly sse?: string;
  readonly ws?: string;
  /** What is wrong with its server, as far as that is known, and what to do. */
  readonly failure?: string;
}

/**
 * The URLs of a server, and what is known to be wrong with it.
 * @param base scheme, host and port
 * @param isNamed the operator has named it: its path with the name is told, too
 */
export function serverUrls(
  { config: own, modern: { era = 'legacy' } }: ServedServer,
  config: GatewayConfig,
  base: string,
  isNamed: boolean,
  health: ServerHealth,
): ServerUrls {
  const [{ mcp, ws, legacySse: old }, other] = endpointPathsOf(config, own);
  const onWs = ws && { ws: base.replace('http', 'ws') + ws };
  const named = isNamed && other !== undefined && { named: base + other.mcp };
  const { why, help = '' } = health.lastFailureOf(own.name) ?? {};
  const failure = why && { failure: `${why} ${help}`.trimEnd() };
  return {
    server: own.name,
    url: base + mcp,
    ...named,
    era,
    ...(old && { sse: base + old.stream }),
    ...onWs,
    ...failure,
  };
}

/** URLs that came, that lead to something else, and that went. */
export type ChangedUrls = Readonly<Record<keyof ServerChanges, readonly string[]>>;

/**
 * What a new configuration is to those who have URLs of servers.
 * @param changed the servers that are configured in another way
 */
export function changedUrls(
  before: readonly ServerUrls[],
  now: readonly ServerUrls[],
  changed: readonly string[],
): ChangedUrls {
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
