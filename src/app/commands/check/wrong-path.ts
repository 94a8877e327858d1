import type { ServerAddress } from '../../../config/server-url.ts';

/** The usual paths of MCP endpoints, the most likely one first. */
const usualPaths = { http: ['/mcp'], sse: ['/sse'], auto: ['/mcp', '/sse'], ws: ['/ws'] } as const;

/**
 * Explains a status that says that there is no endpoint at the path of a server's URL, with the URLs that are likely
 * right; undefined for any other status. Only for the operator who runs `check`: a path can hold a secret, so no log has
 * it.
 */
export function explainWrongPath(address: ServerAddress | undefined, status: number | undefined): string | undefined {
  if (status !== 404 && status !== 405) return undefined;
  if (address === undefined || !('url' in address)) return undefined;
  const { origin, pathname } = address.url;
  const [usual, ...others] = usualPaths[address.transport];
  // A gateway for several servers has the endpoint of each below its name.
  const below = pathname.replace(/\/(?:(?:mcp|sse|ws)\/?)?$/, '') + usual;
  const likely = new Set([usual, below, ...others]);
  likely.delete(pathname);
  const urls = [...likely].map((path) => origin + path);
  const tries = urls.length === 0 ? '' : `try ${urls.join(', ')}, or `;
  const advice = `${tries}look for the path in the documentation of the server`;
  return `${origin} has no MCP server at the path ${pathname} (${status}). Correct the URL: ${advice}.`;
}
