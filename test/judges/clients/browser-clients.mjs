// Ways to connect published clients to a server: { command, args } for STDIO, or { url }. Each gives back
// { call(tool, args), close() }, where `call` resolves with the text of the answer.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { MCPClient } from '@mastra/mcp';
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { MCPServerStdio, MCPServerStreamableHttp } from '@openai/agents';

const clientInfo = { name: 'judge-client', version: '1.0.0' };
const env = { PATH: process.env.PATH };
const textOf = (content) => content.map(({ text = '' }) => text).join('\n');

async function connectSdk(client, transport, close = () => client.close()) {
  await client.connect(transport);
  const call = async (name, args) => textOf((await client.callTool({ name, arguments: args })).content);
  return { call, close };
}

const sdkV2 = (mode) => (server) => {
  const transport = server.url ? new HttpV2(new URL(server.url)) : new StdioV2({ ...server, env, stderr: 'ignore' });
  return connectSdk(new ClientV2(clientInfo, { versionNegotiation: { mode } }), transport);
};

function sdkV1(server) {
  const transport = server.url ? new HttpV1(new URL(server.url)) : new StdioV1({ ...server, env, stderr: 'ignore' });
  return connectSdk(new ClientV1(clientInfo), transport);
}

async function aiSdk(server) {
  const transport = server.url
    ? { type: 'http', url: server.url }
    : new Experimental_StdioMCPTransport({ ...server, env, stderr: 'ignore' });
  const client = await createMCPClient({ transport });
  const tools = await client.tools();
  const call = async (name, args) =>
    textOf((await tools[name].execute(args, { toolCallId: 'judge', messages: [] })).content);
  return { call, close: () => client.close() };
}

async function langChain(server) {
  const judged = server.url ? { transport: 'http', url: server.url } : { transport: 'stdio', ...server, env };
  const client = new MultiServerMCPClient({ mcpServers: { judged } });
  const tools = await client.getTools();
  const call = async (name, args) => {
    const answer = await tools.find((tool) => tool.name === name).invoke(args);
    return typeof answer === 'string' ? answer : textOf(answer);
  };
  return { call, close: () => client.close() };
}

// Its own limit of 5 s counts the start of the server, which takes longer on a busy machine.
async function openAiAgents(server) {
  const client = server.url
    ? new MCPServerStreamableHttp({ url: server.url, name: 'judged', clientSessionTimeoutSeconds: 60 })
    : new MCPServerStdio({ ...server, env, name: 'judged', clientSessionTimeoutSeconds: 60 });
  await client.connect();
  return { call: async (name, args) => textOf(await client.callTool(name, args)), close: () => client.close() };
}

async function mastra(server) {
  // Its own limit of 3 s counts the start of the server, and ends in a client without tools.
  const limits = { timeout: 60_000, connectTimeout: 60_000 };
  const judged = server.url ? { url: new URL(server.url), ...limits } : { ...server, env };
  // Mastra allows one client under an id.
  const client = new MCPClient({ id: randomUUID(), servers: { judged } });
  const tools = await client.listTools();
  const call = async (name, args) => textOf((await tools[`judged_${name}`].execute(args, {})).content);
  return { call, close: () => client.disconnect() };
}

function mcpRemote({ url }) {
  const program = fileURLToPath(new URL('node_modules/mcp-remote/dist/proxy.js', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'gangway-mcp-remote-'));
  const client = new ClientV1(clientInfo);
  const transport = new StdioV1({
    command: process.execPath,
    args: [program, url, '--transport', 'http-only'],
    env: { ...env, MCP_REMOTE_CONFIG_DIR: folder },
    stderr: 'ignore',
  });
  return connectSdk(client, transport, async () => {
    await client.close();
    rmSync(folder, { recursive: true });
  });
}

export const clients = {
  'SDK v2, `auto`': sdkV2('auto'),
  'SDK v2, pinned to 2026-07-28': sdkV2({ pin: '2026-07-28' }),
  'SDK v2, `legacy`': sdkV2('legacy'),
  'SDK v1': sdkV1,
  'AI SDK': aiSdk,
  LangChain: langChain,
  '@openai/agents': openAiAgents,
  Mastra: mastra,
  'mcp-remote': mcpRemote,
};
