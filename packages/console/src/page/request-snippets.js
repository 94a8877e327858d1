// The same request outside of the page: as a command, and as code. Requests of the modern era need no session, and the
// gateway translates them for older servers.

import { keyVariable, toBase64, transportOptions } from './snippets.js';

/** The parameter that names the subject of a request, by method. */
const subjects = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' };

/**
 * Returns the headers that a revision repeats of a request.
 * @param {{ name: string, headers: { name: string, mirrors: 'revision' | 'method' | 'subject' | { meta: string } }[] }} revision
 * @param {{ method: string, params: object }} request with its `_meta`
 */
export const mirroredHeaders = (revision, { method, params }) =>
  revision.headers
    .map(({ name, mirrors }) => {
      const values = { revision: revision.name, method, subject: params[subjects[method]] };
      return [name, values[mirrors] ?? params._meta[mirrors.meta]];
    })
    .filter(([, value]) => typeof value === 'string')
    .map(([name, value]) => [name, encodeHeader(value)]);

/** Returns a curl command for a request of a modern revision. */
export function curlFor({ url, needsToken, revision, method, params }) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': revision.name,
    'io.modelcontextprotocol/clientInfo': { name: 'curl', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } };
  const headers = [
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    ...mirroredHeaders(revision, body).map(([name, value]) => `${name}: ${value}`),
  ];
  // curl reads the header with the key from its input: other users of the machine can see arguments.
  const key = needsToken ? `printf 'Authorization: Bearer %s' "$${keyVariable}" | ` : '';
  return [
    `${key}curl -N ${quote(url)}`,
    ...(needsToken ? ['-H @-'] : []),
    ...headers.map((header) => `-H ${quote(header)}`),
    `-d ${quote(JSON.stringify(body))}`,
  ].join(' \\\n  ');
}

/** Returns a program for the TypeScript SDK, version 2. */
export function typescriptFor({ url, needsToken, method, params }) {
  const call = { 'tools/call': 'callTool', 'prompts/get': 'getPrompt', 'resources/read': 'readResource' }[method];
  return `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const client = new Client({ name: 'my-client', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(${JSON.stringify(url)})${transportOptions(needsToken)}));
const result = await client.${call}(${JSON.stringify(params, undefined, 2)});
console.log(result);
await client.close();
`;
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Encodes a header value that is not visible ASCII (2026-07-28, basic/transports, "Header encoding"). */
export function encodeHeader(text) {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?')) return text;
  return `=?base64?${toBase64(text)}?=`;
}
