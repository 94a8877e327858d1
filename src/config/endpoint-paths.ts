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

/** Two options that give endpoints the same path. */
export interface DuplicatePath {
  readonly path: string;
  readonly options: readonly [keyof GlobalOptions, keyof GlobalOptions];
}

/** The first path that two endpoints would have, with the options that they come from. */
export function findDuplicatePath(config: PathConfig): DuplicatePath | undefined {
  const optionByPath = new Map<string, keyof GlobalOptions>();
  for (const server of config.servers) {
    for (const { mcp, ws, legacySse } of endpointPathsOf(config, server)) {
      const endpoints = [
        ['path', mcp],
        ['wsPath', ws],
        ['ssePath', legacySse?.stream],
        ['messagesPath', legacySse?.messages],
      ] as const;
      for (const [option, path] of endpoints) {
        if (path === undefined) continue;
        const other = optionByPath.get(path);
        if (other !== undefined) return { path, options: [other, option] };
        optionByPath.set(path, option);
      }
    }
  }
  return undefined;
}
