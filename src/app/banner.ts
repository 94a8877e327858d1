import { legacyRevisions } from '../protocol/revisions.ts';

/** What is printed when the gateway is ready: where it is, and a line that tries it. */
export function renderBanner(urls: readonly { readonly server: string; readonly url: string }[]): string {
  const width = Math.max(...urls.map(({ server }) => server.length));
  const endpoints = urls.map(({ server, url }) => `  ${server.padEnd(width)}  ${url}\n`).join('');
  return `Ready:\n${endpoints}Try it:\n  ${curlLine(urls[0]?.url ?? '')}\n`;
}

/** A command that opens a session; what it prints shows that the gateway and the server behind it work. */
function curlLine(url: string): string {
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
  return `curl -i -X POST ${url} -H 'Content-Type: application/json' -d '${JSON.stringify(initialize)}'`;
}
