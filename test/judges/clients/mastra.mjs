// The MCP client of Mastra: node mastra.mjs <url>. Prints the answers by step.
import { MCPClient } from '@mastra/mcp';
import { printSteps } from './print-steps.mjs';

const client = new MCPClient({ servers: { judged: { url: new URL(process.argv[2]) } } });
const tools = await client.listTools();
const call = (name) => tools[`judged_${name}`].execute({}, {});
await printSteps({
  'list tools': async () => Object.entries(tools).map(([name, { description }]) => ({ name, description })),
  'call a tool': () => call('test_simple_text'),
  'call a tool that fails': () => call('test_error_handling'),
});
await client.disconnect();
