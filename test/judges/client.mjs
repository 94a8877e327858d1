// A client for the official conformance suite in the client role: node client.mjs <era> [--through <word> ...] <url>
//
// The suite starts this program with the URL of its mock server and the name of the scenario (MCP_CONFORMANCE_SCENARIO). The client makes
// the requests of that scenario, with the official SDK of its era. With --through, it first starts the built gateway in front of the
// mock server, with these words as options, and talks to the gateway.
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { startGateway } from './gateway-in-front.mjs';

const revision = '2026-07-28';
const clientInfo = { name: 'judge-client', version: '1.0.0' };

const callEach = async (client, names) => {
  for (const name of names) await client.callTool({ name, arguments: {} });
};

/** What a client does in each scenario. Without an entry, it lists the tools. */
const scenarios = {
  async tools_call(client) {
    await client.listTools();
    await client.callTool({ name: 'add_numbers', arguments: { a: 5, b: 3 } });
  },
  'elicitation-sep1034-client-defaults': (client) => callEach(client, ['test_client_elicitation_defaults']),
  'sse-retry': (client) => callEach(client, ['test_reconnection']),
  async 'json-schema-2020-12-preservation'(client) {
    const { tools } = await client.listTools();
    const { inputSchema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
    await client.callTool({ name: 'json_schema_echo', arguments: { schema: inputSchema } });
  },
  async 'sep-2322-client-request-state'(client) {
    await callEach(client, ['test_mrtr_echo_state', 'test_mrtr_no_state', 'test_mrtr_unrelated']);
    // The mock server breaks the specification here on purpose: clients may refuse the result, but must not ask again.
    await client.callTool({ name: 'test_mrtr_no_result_type', arguments: {} }).catch(() => undefined);
  },
  async 'http-standard-headers'(client) {
    const [tool] = (await client.listTools()).tools;
    await client.callTool({ name: tool.name, arguments: {} });
    const [resource] = (await client.listResources()).resources;
    await client.readResource({ uri: resource.uri });
    const [prompt] = (await client.listPrompts()).prompts;
    await client.getPrompt({ name: prompt.name, arguments: {} });
  },
  async 'http-custom-headers'(client) {
    await client.listTools();
    const { toolCalls = [] } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
    for (const call of toolCalls) await client.callTool(call);
  },
  async 'http-invalid-tool-headers'(client) {
    const { tools } = await client.listTools();
    for (const { name } of tools)
      await client.callTool({ name, arguments: { region: 'us-west1' } }).catch(() => undefined);
  },
};

const accept = () => ({
  action: 'accept',
  content: process.env.MCP_CONFORMANCE_SCENARIO === 'sep-2322-client-request-state' ? { confirmed: true } : {},
});

async function connectLegacy(url) {
  const capabilities = { elicitation: { form: { applyDefaults: true } }, roots: {}, sampling: {} };
  const client = new LegacyClient(clientInfo, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, accept);
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [] }));
  await client.connect(new LegacyTransport(new URL(url)));
  return client;
}

async function connectModern(url) {
  // request-metadata refuses the first request: only a client that negotiates goes on.
  const mode = process.env.MCP_CONFORMANCE_SCENARIO === 'request-metadata' ? 'auto' : { pin: revision };
  const capabilities = { elicitation: { form: { applyDefaults: true } }, roots: {}, sampling: {} };
  const client = new ModernClient(clientInfo, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', accept);
  client.setRequestHandler('roots/list', () => ({ roots: [] }));
  await client.connect(new ModernTransport(new URL(url)));
  return client;
}

const [era, ...words] = process.argv.slice(2);
const server = words.at(-1);
const gateway = words[0] === '--through' ? await startGateway(words.slice(1, -1), server) : undefined;
try {
  const client = await (era === 'modern' ? connectModern : connectLegacy)(gateway?.url ?? server);
  try {
    await (scenarios[process.env.MCP_CONFORMANCE_SCENARIO] ?? ((listing) => listing.listTools()))(client);
  } finally {
    await client.close();
  }
} finally {
  await gateway?.stop();
}
