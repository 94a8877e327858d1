// A client of the SDK for TypeScript, told by lines on stdin what to do: connect, list, call, count, cancel, or ask with a
// request. It prints a line of JSON for each. Arguments: `1`, `2` or `2-auto` for the version; `mcp`, `sse` or `stdio`; the
// URL or the server's command; the key; its name.
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import * as two from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioTwo } from '@modelcontextprotocol/client/stdio';
import { Client as ClientOne } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport as StdioOne } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [, , version, endpoint, url, key, name] = process.argv;
/** Of a call; the SDK's own limit of 60 s is the same, but longer. */
const timeout = 15_000;
const one = { Client: ClientOne, SSEClientTransport, StreamableHTTPClientTransport };
const sdk = version === '1' ? one : two;
const Stdio = version === '1' ? StdioOne : StdioTwo;
const Http = endpoint === 'sse' ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport;
const [command, ...args] = url.split(' ');
const transport =
  endpoint === 'stdio'
    ? new Stdio({ command, args })
    : new Http(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
const client = new sdk.Client(
  { name, version: '1.0.0' },
  version === '2-auto' ? { versionNegotiation: { mode: 'auto' } } : {},
);

const callWith = (params, options = {}) =>
  version === '1'
    ? client.callTool(params, undefined, { timeout, ...options })
    : client.callTool(params, { timeout, ...options });
const callTool = (tool, options) => callWith({ name: tool, arguments: { client: name } }, options);

/** The methods that programs use for each request. */
const methods = {
  'tools/list': () => client.listTools(),
  'prompts/list': () => client.listPrompts(),
  'resources/list': () => client.listResources(),
  'resources/templates/list': () => client.listResourceTemplates(),
  'tools/call': callWith,
  'prompts/get': (params) => client.getPrompt(params),
  'resources/read': (params) => client.readResource(params),
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
  async ask(asked) {
    const { method, params } = JSON.parse(asked);
    return { result: await methods[method](params) };
  },
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

for await (const line of createInterface({ input: process.stdin })) {
  const [, step, asked] = /^(\w+) ?(.*)/.exec(line);
  const answer = await steps[step](asked).catch((error) => ({ error: `${error.message}` }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
