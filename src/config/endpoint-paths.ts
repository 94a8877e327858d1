import type { GlobalOptions, ServerOptions } from './options/options.ts';

/** The paths of one server's endpoints. */
export interface EndpointPaths {
  /** Streamable HTTP. */
  readonly mcp: string;
  /** WebSocket; undefined where it is disabled. */
  readonly ws: string | undefined;
  /** HTTP+SSE of 2024-11-05; undefined where it is disabled. */
  readonly legacySse: { readonly stream: string; readonly messages: string } | undefined;
}

/** The part of the configuration that decides the paths. */
interface PathConfig extends Pick<GlobalOptions, 'path' | 'ssePath' | 'messagesPath' | 'wsPath'> {
  readonly servers: readonly NamedServer[];
  readonly firstServer?: string | undefined;
}

type NamedServer = Pick<ServerOptions, 'sse' | 'ws'> & { readonly name: string };

/**
 * The endpoint paths of a server, the preferred ones first. Each server has paths below its name. A single server, and
 * the one that was single at the start, also has paths without its name.
 */
export function endpointPathsOf(
  { path, ssePath, messagesPath, wsPath, servers, firstServer }: PathConfig,
  { name, sse, ws }: NamedServer,
): readonly [EndpointPaths, ...EndpointPaths[]] {
  const pathsBelow = (prefix: string): EndpointPaths => ({
    mcp: prefix + path,
    ws: ws ? prefix + wsPath : undefined,
    legacySse: sse ? { stream: prefix + ssePath, messages: prefix + messagesPath } : undefined,
  });
  if (servers.length === 1) return [pathsBelow(''), pathsBelow(`/${name}`)];
  return name === firstServer ? [pathsBelow(`/${name}`), pathsBelow('')] : [pathsBelow(`/${name}`)];
}

/** True if two endpoints would have the same path. */
export function hasDuplicatePath(config: PathConfig): boolean {
  const all = config.servers.flatMap((server) =>
    endpointPathsOf(config, server).flatMap(({ mcp, ws, legacySse }) => [
      mcp,
      ws,
      legacySse?.stream,
      legacySse?.messages,
    ]),
  );
  const paths = all.filter((path) => path !== undefined);
  return new Set(paths).size < paths.length;
}
