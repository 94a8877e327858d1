import type { GlobalOptions, ServerOptions } from './options/options.ts';

/** The paths of one server's endpoints. */
export interface EndpointPaths {
  /** Streamable HTTP. */
  readonly mcp: string;
  /** WebSocket; undefined where that is turned off. */
  readonly ws: string | undefined;
  /** HTTP+SSE of 2024-11-05; undefined where that is turned off. */
  readonly legacySse: { readonly stream: string; readonly messages: string } | undefined;
}

/** What paths depend on. */
interface Paths extends Pick<GlobalOptions, 'path' | 'ssePath' | 'messagesPath' | 'wsPath'> {
  readonly servers: readonly Named[];
  readonly firstServer?: string | undefined;
}

type Named = Pick<ServerOptions, 'sse' | 'ws'> & { readonly name: string };

/** Where a server is reached: behind its name; a single one also, and first, without it. */
export function endpointPathsOf(
  { path, ssePath, messagesPath, wsPath, servers, firstServer }: Paths,
  { name, sse, ws }: Named,
): readonly [EndpointPaths, ...EndpointPaths[]] {
  const behind = (prefix: string): EndpointPaths => ({
    mcp: prefix + path,
    ws: ws ? prefix + wsPath : undefined,
    legacySse: sse ? { stream: prefix + ssePath, messages: prefix + messagesPath } : undefined,
  });
  if (servers.length === 1) return [behind(''), behind(`/${name}`)];
  return name === firstServer ? [behind(`/${name}`), behind('')] : [behind(`/${name}`)];
}

/** True if two endpoints would have one path. */
export function hasDoublePath(config: Paths): boolean {
  const all = config.servers.flatMap((server) =>
    endpointPathsOf(config, server).flatMap(({ mcp, ws, legacySse: old }) => [mcp, ws, old?.stream, old?.messages]),
  );
  const paths = all.filter((path) => path !== undefined);
  return new Set(paths).size < paths.length;
}
