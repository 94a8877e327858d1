import { legacyRevisions } from '../protocol/revisions.ts';

/** Where a server can be reached. */
export interface Urls {
  readonly server: string;
  readonly url: string;
  /** For clients that speak only HTTP+SSE (2024-11-05). */
  readonly sse?: string;
  readonly ws?: string;
}

/**
 * What is printed when the gateway is ready: where it is, and a line that tries it.
 * @param needsKey its clients have to show who they are
 */
export function renderBanner(urls: readonly Urls[], needsKey: boolean): string {
  const width = Math.max(...urls.map(({ server }) => server.length));
  const row = (server: string, url: string): string => `  ${server.padEnd(width)}  ${url}\n`;
  const endpoints = urls.map(({ server, url }) => row(server, url)).join('');
  const others = (title: string, key: 'sse' | 'ws'): string => {
    const rows = urls.map((of) => (of[key] === undefined ? '' : row(of.server, of[key]))).join('');
    return rows && `${title}:\n${rows}`;
  };
  const older = others('For clients that speak only HTTP+SSE', 'sse');
  const sockets = others('For clients on WebSocket', 'ws');
  return `Ready:\n${endpoints}${older}${sockets}Try it:\n  ${curlLine(urls[0]?.url ?? '', needsKey)}\n`;
}

/** A command that opens a session; what it prints shows that the gateway and the server behind it work. */
function curlLine(url: string, needsKey: boolean): string {
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: legacyRevisions.at(-1),
      capabilities: {},
      clientInfo: { name: 'curl', version: '1' },
    },
  };
  return `curl -i -X POST ${url} -H 'Content-Type: application/json'${needsKey ? " -H 'Authorization: Bearer KEY'" : ''} -d '${JSON.stringify(initialize)}'`;
}
