const json = (value) => JSON.stringify(value, undefined, 2);
/** The environment variable with the key, which the page does not know. A key in an argument could be seen by others. */
export const keyVariable = 'GANGWAY_KEY';
const keyInput = { type: 'promptString', id: 'gangway-key', description: 'Key of the MCP gateway', password: true };

/**
 * Returns the setup of each kind of client for a server: a text, and where it goes.
 * @param {{ name: string, url: string, needsToken: boolean }} server
 * @returns {readonly { title: string, where: string, text: string, install?: string }[]} `install` is a link that adds
 *   the server to an installed client
 */
export function snippetsFor({ name, url, needsToken }) {
  const headersWith = (key) => (needsToken ? { headers: { Authorization: `Bearer ${key}` } } : {});
  const cursor = { url, ...headersWith(`\${env:${keyVariable}}`) };
  const vscode = { type: 'http', url, ...headersWith('${input:gangway-key}') };
  const inputs = needsToken ? { inputs: [keyInput] } : {};
  const withKey = needsToken ? `, with the key in the variable ${keyVariable}` : '';
  return [
    {
      title: 'Claude Code',
      where: `In a terminal${needsToken ? `; Claude Code replaces the variable ${keyVariable} when it connects` : ''}`,
      // In single quotes, so that the shell keeps the variable.
      text: `claude mcp add --transport http ${name} ${url}${needsToken ? ` --header 'Authorization: Bearer \${${keyVariable}}'` : ''}`,
    },
    {
      title: 'Claude Desktop',
      where: 'claude_desktop_config.json; Claude Desktop starts mcp-remote, which connects to the gateway',
      text: json({
        mcpServers: {
          [name]: {
            command: 'npx',
            // Without a space: Claude Desktop on Windows splits arguments at spaces.
            args: ['-y', 'mcp-remote', url, ...(needsToken ? ['--header', 'Authorization:${AUTHORIZATION}'] : [])],
            ...(needsToken ? { env: { AUTHORIZATION: 'Bearer YOUR_KEY' } } : {}),
          },
        },
      }),
    },
    {
      title: 'Cursor',
      where: `.cursor/mcp.json, in the project or in your home folder${withKey}`,
      text: json({ mcpServers: { [name]: cursor } }),
      install: `cursor://anysphere.cursor-deeplink/mcp/install?${new URLSearchParams({ name, config: toBase64(JSON.stringify(cursor)) })}`,
    },
    {
      title: 'VS Code',
      where: `.vscode/mcp.json${needsToken ? '; VS Code asks for the key once' : ''}`,
      install: `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...vscode, ...inputs }))}`,
      text: json({ ...inputs, servers: { [name]: vscode } }),
    },
    {
      title: 'MCP Inspector',
      // Without the version, npx on an older Node.js takes the newest version that runs there, which refuses --header.
      where: `In a terminal, with Node.js 22.19 or newer${withKey}`,
      text: `npx @modelcontextprotocol/inspector@2 --cli ${url} --transport http --method tools/list${needsToken ? ` --header "Authorization: Bearer $${keyVariable}"` : ''}`,
    },
    {
      title: 'TypeScript SDK',
      where: `Version 2: npm install @modelcontextprotocol/client${withKey}`,
      text: typescript(typescriptImports[2], url, needsToken),
    },
    {
      title: 'TypeScript SDK 1',
      where: `Version 1: npm install @modelcontextprotocol/sdk${withKey}`,
      text: typescript(typescriptImports[1], url, needsToken),
    },
    { title: 'Python SDK', where: `Version 2: pip install mcp${withKey}`, text: python(url, needsToken) },
    { title: 'Python SDK 1', where: `Version 1: pip install 'mcp<2'${withKey}`, text: pythonOne(url, needsToken) },
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
  needsToken ? `, {\n  requestInit: { headers: { Authorization: \`Bearer \${process.env.${keyVariable}}\` } },\n}` : '';

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
import os
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def main():
    headers = {"Authorization": "Bearer " + os.environ["${keyVariable}"]}
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

const pythonOne = (url, needsToken) => `import asyncio${needsToken ? '\nimport os' : ''}
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def main():
    async with streamablehttp_client("${url}"${
      needsToken ? `, headers={"Authorization": "Bearer " + os.environ["${keyVariable}"]}` : ''
    }) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print((await session.list_tools()).tools)

asyncio.run(main())`;
