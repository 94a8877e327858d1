// The MCP client of LlamaIndex: node llamaindex.mjs <url>. Prints the answers by step.
import { mcp } from '@llamaindex/tools';
import { printSteps } from './print-steps.mjs';

const client = mcp({ url: process.argv[2], clientName: 'judge-client', verbose: false });
const tools = await client.tools();
const call = (name) => tools.find(({ metadata }) => metadata.name === name).call({});
await printSteps({
  'list tools': async () => tools.map(({ metadata }) => metadata),
  'call a tool': () => call('test_simple_text'),
  'call a tool that fails': () => call('test_error_handling'),
});
await client.cleanup();
