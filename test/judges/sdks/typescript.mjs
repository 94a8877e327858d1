// A client of the SDK for TypeScript, told by lines on stdin what to do: connect, list, call, count, cancel. It prints a
// line of JSON for each. Arguments: `1`, `2` or `2-auto` for the version, `mcp` or `sse`, the URL, the key, its name.
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import * as two from '@modelcontextprotocol/client';
import { Client as ClientOne } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [, , version, endpoint, url, key, name] = process.argv;
/** Of a call; the SDK's own limit of 60 s is the same, but longer. */
const timeout = 15_000;
const one = { Client: ClientOne, SSEClientTransport, StreamableHTTPClientTransport };
const sdk = version === '1' ? one : two;
const Transport = endpoint === 'sse' ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport;
const transport = new Transport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
const client = new sdk.Client(
  { name, version: '1.0.0' },
  version === '2-auto' ? { versionNegotiation: { mode: 'auto' } } : {},
);

const callTool = (tool, options = {}) => {
  const params = { name: tool, arguments: { client: name } };
  return version === '1'
    ? client.callTool(params, undefined, { timeout, ...options })
    : client.callTool(params, { timeout, ...options });
};

const steps = {
  async connect() {
    let revision;
    const send = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (agreed) => {
      revision = agreed;
      send?.(agreed);
    };
    await client.connect(transport);
    return { revision: client.getNegotiatedProtocolVersion?.() ?? revision };
  },
  list: async () => ({ tools: (await client.listTools()).tools.length }),
  call: async () => ({ text: (await callTool('echo')).content[0].text }),
  async count() {
    let progress = 0;
    const onprogress = () => {
      progress += 1;
    };
    const { content } = await callTool('count', { onprogress });
    return { text: content[0].text, progress };
  },
  async cancel() {
    const stop = new AbortController();
    const called = callTool('hold', { signal: stop.signal });
    called.catch(() => undefined);
    await delay(500);
    stop.abort('no longer needed');
    await called.catch(() => undefined);
    return {};
  },
};

for await (const step of createInterface({ input: process.stdin })) {
  const answer = await steps[step]().catch((error) => ({ error: `${error.message}` }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
