// The MCP client of the AI SDK: node ai-sdk.mjs <url>. Prints the answers by step.
import { createMCPClient } from '@ai-sdk/mcp';
import { printSteps } from './print-steps.mjs';

const client = await createMCPClient({ transport: { type: 'http', url: process.argv[2] } });
const tools = await client.tools();
const call = (name, args) => tools[name].execute(args, { toolCallId: 'judge', messages: [] });
await printSteps({
  'list tools': async () => Object.keys(tools),
  'call a tool': () => call('test_simple_text', {}),
  'call a tool that fails': () => call('test_error_handling', {}),
});
await client.close();
