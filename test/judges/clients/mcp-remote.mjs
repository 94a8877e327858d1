// mcp-remote, which stands between a client on STDIO and a server on HTTP: node mcp-remote.mjs <url>. Prints the answers by step.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { printSteps } from './print-steps.mjs';

const program = fileURLToPath(new URL('node_modules/mcp-remote/dist/proxy.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'gangway-mcp-remote-'));
const client = new Client({ name: 'judge-client', version: '1.0.0' });
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: [program, process.argv[2], '--transport', 'http-only'],
    env: { PATH: process.env.PATH, MCP_REMOTE_CONFIG_DIR: folder },
    stderr: 'ignore',
  }),
);
let progress = 0;
await printSteps({
  'list tools': () => client.listTools(),
  'call a tool': () => client.callTool({ name: 'test_simple_text', arguments: {} }),
  'call a tool that fails': () => client.callTool({ name: 'test_error_handling', arguments: {} }),
  'progress of a call': async () => {
    const onprogress = () => {
      progress += 1;
    };
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, { onprogress });
    return progress > 0; // the client may lose the last notification, which arrives together with the result
  },
  'list resources': () => client.listResources(),
  'read a resource': () => client.readResource({ uri: 'test://static-text' }),
  'list prompts': () => client.listPrompts(),
  'get a prompt': () => client.getPrompt({ name: 'test_simple_prompt' }),
});
await client.close();
rmSync(folder, { recursive: true });
