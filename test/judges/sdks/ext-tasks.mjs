// A client of `@modelcontextprotocol/ext-tasks` (2026-07-28), copied to where that is installed. Arguments: the URL, and the
// tools to call. It answers the questions of tasks, and prints a line of JSON for each tool.
import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';

const [url, ...tools] = process.argv.slice(2);
const protocolVersion = '2026-07-28';
const clientInfo = { name: 'ext-tasks', version: '1' };
const clientCapabilities = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };
const client = new Client(clientInfo, {
  capabilities: clientCapabilities,
  versionNegotiation: { mode: { pin: protocolVersion } },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

/** The package leaves the requests of tasks to its user. */
const rawDispatch = async (request, { signal, context } = {}) => {
  const id = randomUUID();
  const name = request.params?.name ?? request.params?.taskId;
  const headers = new Headers({
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': protocolVersion,
    'mcp-method': request.method,
    ...(name && { 'mcp-name': name }),
  });
  for (const [key, value] of Object.entries(context?.headers ?? {})) headers.set(key, value);
  const response = await fetch(url, {
    method: 'POST',
    signal,
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id, ...request }),
  });
  const text = await response.text();
  const lines = text.startsWith('{')
    ? [text]
    : text.split('\n').flatMap((line) => /^data: (\{.*)/.exec(line)?.[1] ?? []);
  const message = lines.map((line) => JSON.parse(line)).find((each) => each.id === id);
  return message.error ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result };
};

const session = createTaskSessionFromClient(client, {
  endpointId: 'gateway',
  rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  onInputRequest: async () => ({ action: 'accept', content: { confirm: true } }),
});
for (const tool of tools) {
  const told = await session
    .callTool(tool, {})
    .then((execution) => execution.settle())
    .then(
      ({ outcome }) => outcome,
      (error) => ({ error: error.message }),
    );
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
await session.close();
await client.close();
