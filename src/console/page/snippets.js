const json = (value) => JSON.stringify(value, undefined, 2);
/** Stands for a key that the page does not know. */
export const placeholder = 'YOUR_KEY';

/**
 * Returns the setup of each kind of client for a server: a text, and where it goes.
 * @param {{ name: string, url: string, needsToken: boolean }} server
 * @returns {readonly { title: string, where: string, text: string, install?: string }[]} `install` is a link that adds
 *   the server to an installed client
 */
export function snippetsFor({ name, url, needsToken }) {
  const bearer = `Bearer ${placeholder}`;
  const headers = needsToken ? { headers: { Authorization: bearer } } : {};
  const option = needsToken ? ` --header "Authorization: ${bearer}"` : '';
  return [
    { title: 'Claude Code', where: 'In a terminal', text: `claude mcp add --transport http ${name} ${url}${option}` },
    {
      title: 'Claude Desktop',
      where: 'claude_desktop_config.json; Claude Desktop starts mcp-remote, which connects to the gateway',
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
      install: `cursor://anysphere.cursor-deeplink/mcp/install?${new URLSearchParams({ name, config: toBase64(JSON.stringify({ url, ...headers })) })}`,
    },
    {
      title: 'VS Code',
      where: '.vscode/mcp.json',
      install: `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, type: 'http', url, ...headers }))}`,
      text: json({ servers: { [name]: { type: 'http', url, ...headers } } }),
    },
    {
      title: 'MCP Inspector',
      // Without the version, npx on an older Node.js takes the newest version that runs there, which refuses --header.
      where: 'In a terminal, with Node.js 22.19 or newer',
      text: `npx @modelcontextprotocol/inspector@2 --cli ${url} --transport http --method tools/list${option}`,
    },
    {
      title: 'TypeScript SDK',
      where: 'Version 2: npm install @modelcontextprotocol/client',
      text: typescript(typescriptImports[2], url, needsToken),
    },
    {
      title: 'TypeScript SDK 1',
      where: 'Version 1: npm install @modelcontextprotocol/sdk',
      text: typescript(typescriptImports[1], url, needsToken),
    },
    { title: 'Python SDK', where: 'Version 2: pip install mcp', text: python(url, needsToken) },
    { title: 'Python SDK 1', where: "Version 1: pip install 'mcp<2'", text: pythonOne(url, needsToken) },
  ];
}

/** Encodes the UTF-8 bytes of a text. */
export const toBase64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

const typescriptImports = {
  1: `import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';`,
  2: `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';`,
};

/** The second argument of the transport in the TypeScript SDKs, with its comma; empty if clients need no key. */
export const transportOptions = (needsToken) =>
  needsToken ? `, {\n  requestInit: { headers: { Authorization: 'Bearer ${placeholder}' } },\n}` : '';

const typescript = (imports, url, needsToken) => `${imports}

const client = new Client({ name: 'my-client', version: '1.0.0' });
const transport = new StreamableHTTPClientTransport(new URL('${url}')${transportOptions(needsToken)});
await client.connect(transport);
console.log((await client.listTools()).tools);
await transport.terminateSession();
await client.close();`;

const python = (url, needsToken) =>
  needsToken
    ? `import asyncio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def main():
    headers = {"Authorization": "Bearer ${placeholder}"}
    async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300)) as http:
        async with Client(streamable_http_client("${url}", http_client=http)) as client:
            print((await client.list_tools()).tools)

asyncio.run(main())`
    : `import asyncio
from mcp import Client

async def main():
    async with Client("${url}") as client:
        print((await client.list_tools()).tools)

asyncio.run(main())`;

const pythonOne = (url, needsToken) => `import asyncio
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
