import type { GlobalOptions, ServerOptions } from './options.ts';

/** The paths of one server's endpoints. */
export interface EndpointPaths {
  /** Streamable HTTP. */
  readonly mcp: string;
  /** HTTP+SSE of 2024-11-05; undefined where that is turned off. */
  readonly old: { readonly stream: string; readonly messages: string } | undefined;
}

/** What paths depend on. */
interface Paths extends Pick<GlobalOptions, 'path' | 'ssePath' | 'messagesPath'> {
  readonly servers: readonly Named[];
}

type Named = Pick<ServerOptions, 'sse'> & { readonly name: string };

/** Where a server is reached: behind its name; a single one also, and first, without it. */
export function endpointPathsOf(
  { path, ssePath, messagesPath, servers }: Paths,
  { name, sse }: Named,
): readonly [EndpointPaths, ...EndpointPaths[]] {
  const behind = (prefix: string): EndpointPaths => ({
    mcp: prefix + path,
    old: sse ? { stream: prefix + ssePath, messages: prefix + messagesPath } : undefined,
  });
  return servers.length === 1 ? [behind(''), behind(`/${name}`)] : [behind(`/${name}`)];
}

/** True if two endpoints would have one path. */
export function hasDoublePath(config: Paths): boolean {
  const all = config.servers.flatMap((server) =>
    endpointPathsOf(config, server).flatMap(({ mcp, old }) => [mcp, ...(old ? [old.stream, old.messages] : [])]),
  );
  return new Set(all).size < all.length;
}
