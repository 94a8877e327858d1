// The MCP client of LangChain: node langchain.mjs <url>. Prints the answers by step.
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { printSteps } from './print-steps.mjs';

const client = new MultiServerMCPClient({ mcpServers: { judged: { transport: 'http', url: process.argv[2] } } });
const tools = await client.getTools();
const call = (name) => tools.find((tool) => tool.name === name).invoke({});
await printSteps({
  'list tools': async () => tools.map(({ name, description, schema }) => ({ name, description, schema })),
  'call a tool': () => call('test_simple_text'),
  'call a tool that fails': () => call('test_error_handling'),
});
await client.close();
