const json = (value) => JSON.stringify(value, undefined, 2);
const placeholder = 'YOUR_KEY';

/**
 * What to write where for a server, for each kind of client.
 * @param {{ name: string, url: string, needsToken: boolean }} server
 * @returns {readonly { title: string, where: string, text: string }[]}
 */
export function snippetsFor({ name, url, needsToken }) {
  const bearer = `Bearer ${placeholder}`;
  const headers = needsToken ? { headers: { Authorization: bearer } } : {};
  const option = needsToken ? ` --header "Authorization: ${bearer}"` : '';
  return [
    { title: 'Claude Code', where: 'In a terminal', text: `claude mcp add --transport http ${name} ${url}${option}` },
    {
      title: 'Claude Desktop',
      where: 'claude_desktop_config.json; it starts programs, so mcp-remote carries the messages',
      text: json({
        mcpServers: {
          [name]: {
            command: 'npx',
            args: ['-y', 'mcp-remote', url, ...(needsToken ? ['--header', `Authorization: ${bearer}`] : [])],
          },
        },
      }),
    },
    {
      title: 'Cursor',
      where: '.cursor/mcp.json, in the project or in your home folder',
      text: json({ mcpServers: { [name]: { url, ...headers } } }),
    },
    {
      title: 'VS Code',
      where: '.vscode/mcp.json',
      text: json({ servers: { [name]: { type: 'http', url, ...headers } } }),
    },
    {
      title: 'MCP Inspector',
      where: 'In a terminal',
      text: `npx @modelcontextprotocol/inspector --cli ${url} --transport http --method tools/list${option}`,
    },
    { title: 'TypeScript SDK', where: 'npm install @modelcontextprotocol/sdk', text: typescript(url, needsToken) },
    { title: 'Python SDK', where: 'pip install mcp', text: python(url, needsToken) },
  ];
}

const typescript = (url, needsToken) => `import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const client = new Client({ name: 'my-client', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL('${url}')${
  needsToken ? `, {\n  requestInit: { headers: { Authorization: 'Bearer ${placeholder}' } },\n}` : ''
}));
console.log((await client.listTools()).tools);`;

const python = (url, needsToken) => `import asyncio
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def main():
    async with streamablehttp_client("${url}"${
      needsToken ? `, headers={"Authorization": "Bearer ${placeholder}"}` : ''
    }) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print((await session.list_tools()).tools)

asyncio.run(main())`;
