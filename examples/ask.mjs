// A small MCP client for the examples. It calls a tool, and prints the progress and the answer:
//
//   node ask.mjs http://127.0.0.1:8080/mcp                      lists the tools
//   node ask.mjs http://127.0.0.1:8080/mcp count '{"to":3}'     calls a tool
//
// Set HEADER_FILE to the file with the output of `mcp-gangway key --add`, or KEY to an access token. Set
// NODE_EXTRA_CA_CERTS to the file of a test certificate.
import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, tool, text = '{}'] = process.argv.slice(2);
const print = (line) => process.stdout.write(`${line}\n`);
const { HEADER_FILE: file, KEY: token } = process.env;
const key = file ? readFileSync(file, 'utf8').trim().replace('Authorization: Bearer ', '') : token;
const headers = key ? { Authorization: `Bearer ${key}` } : {};
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers },
  // A client that reconnects quickly and often receives every event, even if its gateway is killed.
  reconnectionOptions: {
    initialReconnectionDelay: 500,
    maxReconnectionDelay: 2_000,
    reconnectionDelayGrowFactor: 1.5,
    maxRetries: 20,
  },
});
const client = new Client({ name: 'ask', version: '1.0.0' });

/** Ends the session at once. Without this request the gateway would keep the session for another half hour. */
async function end() {
  await transport.terminateSession();
  await client.close();
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => end().catch(() => client.close()));

try {
  await client.connect(transport);
  if (tool === undefined) {
    const { tools } = await client.listTools();
    for (const { name, description = '' } of tools) print(`${name}: ${description}`);
  } else {
    const onprogress = ({ progress, total }) => print(`progress ${progress} of ${total}`);
    const { content } = await client.callTool({ name: tool, arguments: JSON.parse(text) }, { onprogress });
    for (const part of content) print(part.text ?? JSON.stringify(part));
  }
} catch (error) {
  print(`${error.name}: ${error.message}`);
  process.exitCode = 1;
}
// A gateway that cannot be reached has no session to end.
await end().catch(() => client.close());
