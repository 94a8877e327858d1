import type { GatewayOptions, ServerOptions } from './options/options.ts';

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
interface PathConfig {
  readonly listen: Pick<GatewayOptions['listen'], 'path'>;
  readonly servers: readonly NamedServer[];
  readonly firstServer?: string | undefined;
}

/**
 * The last parts of the other paths. Nobody needs other ones: a client gets the URL from its user, and an event stream
 * announces the path for messages. A proxy can serve any other path.
 */
const fixedPaths = { ws: '/ws', stream: '/sse', messages: '/messages' } as const;

type NamedServer = Pick<ServerOptions, 'sse' | 'ws'> & { readonly name: string };

/**
 * The endpoint paths of a server, the preferred ones first. Each server has paths below its name. A single server, and
 * the one that was single at the start, also has paths without its name.
 */
export function endpointPathsOf(
  { listen, servers, firstServer }: PathConfig,
  { name, sse, ws }: NamedServer,
): readonly [EndpointPaths, ...EndpointPaths[]] {
  const pathsBelow = (prefix: string): EndpointPaths => ({
    mcp: prefix + listen.path,
    ws: ws ? prefix + fixedPaths.ws : undefined,
    legacySse: sse ? { stream: prefix + fixedPaths.stream, messages: prefix + fixedPaths.messages } : undefined,
  });
  if (servers.length === 1) return [pathsBelow(''), pathsBelow(`/${name}`)];
  return name === firstServer ? [pathsBelow(`/${name}`), pathsBelow('')] : [pathsBelow(`/${name}`)];
}

/**
 * The path of the protected resource for each path of a server's endpoints. For the POST endpoint of HTTP+SSE, it is the
 * stream's.
 */
export const resourcePathsOf = (config: PathConfig, server: NamedServer): Map<string, string> =>
  new Map(
    endpointPathsOf(config, server).flatMap(({ mcp, ws, legacySse }) => [
      [mcp, mcp] as const,
      ...(ws === undefined ? [] : [[ws, ws] as const]),
      ...(legacySse === undefined
        ? []
        : [[legacySse.stream, legacySse.stream] as const, [legacySse.messages, legacySse.stream] as const]),
    ]),
  );

/** The first path of an endpoint that another endpoint has as well. */
export function findDuplicatePath(config: PathConfig): string | undefined {
  const paths = config.servers
    .flatMap((server) => endpointPathsOf(config, server))
    .flatMap(({ mcp, ws, legacySse }) => [mcp, ws, legacySse?.stream, legacySse?.messages])
    .filter((path) => path !== undefined);
  return paths.find((path, index) => paths.indexOf(path) < index);
}
