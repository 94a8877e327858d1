// The MCP client of the OpenAI Agents SDK: node openai-agents.mjs <url>. Prints the answers by step.
import { MCPServerStreamableHttp } from '@openai/agents';
import { printSteps } from './print-steps.mjs';

const client = new MCPServerStreamableHttp({ url: process.argv[2], name: 'judged', clientSessionTimeoutSeconds: 60 });
await client.connect();
await printSteps({
  'list tools': () => client.listTools(),
  'call a tool': () => client.callTool('test_simple_text', {}),
  'call a tool that fails': () => client.callTool('test_error_handling', {}),
});
await client.close();
