import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { exampleFile } from '../../scripts/docs/configuration.ts';
import { readConfiguration } from '../../src/config/config.ts';
import { readJsonc } from '../../src/config/sources/read-jsonc.ts';
import { configurationSchema } from '../../src/config/tree/json-schema.ts';

const root = new URL('../../', import.meta.url);
const validate = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true }).compile(
  configurationSchema(),
);

const isValid = (text: string): boolean => {
  const read = readJsonc(text);
  return read.ok && validate(read.value) === true;
};

/** The configurations of the examples and of the documents, with the places where they are. */
const published = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => /^(?:docs|examples|deploy)\/.*(?:\.md|gangway\.json)$|^README\.md$/.test(path))
  .flatMap((path): [string, string][] => {
    const text = readFileSync(new URL(path, root), 'utf8');
    const blocks = path.endsWith('.json')
      ? [text]
      : [...text.matchAll(/^( *)\{\n(?:.*\n)*?\1\}$/gm)].map(([block]) => block);
    return blocks
      .filter(
        (block) =>
          /"(?:mcpServers|servers)": \{/.test(block) && !/"mcp":|claude_desktop|"type": "promptString"/.test(block),
      )
      .map((block, index) => [`${path} ${index}`, block]);
  });

const server = '"mcpServers": { "a": { "command": "x" } }';
const entry = (text: string): string => `{ "mcpServers": { "a": ${text} } }`;

describe('the JSON Schema', () => {
  it('accepts the example of the reference', () => {
    expect(isValid(exampleFile)).toBe(true);
  });

  it.each(published)('accepts %s', (_, text) => {
    validate(readJsonc(text));
    expect(isValid(text), JSON.stringify(validate.errors)).toBe(true);
  });

  it('is tested with the examples and recipes', () => {
    expect(published.length).toBeGreaterThan(12);
  });

  it.each([
    `{ "listen": { "port": "\${PORT:-8080}" }, ${server} }`,
    `{ "timeouts": { "drain": 0, "sessionIdle": "1h30m" }, ${server} }`,
    `{ "limits": { "request": { "body": "1.5 MiB" } }, ${server} }`,
    '{ "include": ["servers.d", "more.json"] }',
    entry(
      '{ "url": "https://a.example/mcp", "type": "http", "headers": { "Authorization": "Bearer ${file:/run/t}" } }',
    ),
    entry('{ "disabled": true }'),
    entry('{ "command": "x", "autoApprove": ["y"], "timeout": 5 }'),
  ])('accepts %s', (text) => {
    expect(isValid(text)).toBe(true);
  });

  // The files of other MCP clients, and values at their limits.
  it.each([
    entry('{ "serverUrl": "https://a.example/mcp" }'),
    entry('{ "httpUrl": "https://a.example/mcp", "type": "streamableHttp", "trust": true, "timeout": 5 }'),
    entry('{ "url": "HTTPS://a.example/mcp", "type": "HTTP", "alwaysLoad": true, "enabled": true }'),
    entry('{ "url": "wss://a.example/mcp", "type": "ws" }'),
    entry('{ "type": "stdio", "command": "x", "dev": {}, "gallery": "y", "version": "1.0.0" }'),
    `{ "globalShortcut": "", "preferences": {}, "inputs": [], ${server} }`,
    entry('{ "command": "x", "env": { "A": "b" }, "hibernateAfter": "24d" }'),
    entry('{ "url": "https://a.example", "headers": { "A": "${file:/t}" } }'),
    `{ "timeouts": { "drain": "23d1h", "sessionIdle": "2073600s" }, ${server} }`,
    `{ "timeouts": { "drain": "0.5d", "sessionIdle": "02073600000ms" }, ${server} }`,
    `{ "limits": { "request": { "body": "0.25 GB" } }, ${server} }`,
    `{ "observe": { "logLevel": "info, store=debug" }, "listen": { "publicUrl": "https://a.example/x" }, ${server} }`,
    `{ "cluster": { "redis": "redis+sentinel://a:1,b/m", "stateKeys": ["\${file:/k}"] }, ${server} }`,
  ])('accepts %s, as the gateway does', (text) => {
    expect(isValid(text), JSON.stringify(validate.errors)).toBe(true);
    const readFile = (path: string): string => (path === 'gangway.json' ? text : 'k'.repeat(40));
    const read = readConfiguration({ argv: ['--config', 'gangway.json'], env: {}, readFile });
    expect(read).toMatchObject({ ok: true });
  });

  it.each([
    '{}',
    '[]',
    '{ "mcpServers": [] }',
    '{ "mcpServers": {}, "servers": {} }',
    `{ "port": 8080, ${server} }`,
    `{ "drainMs": 5000, ${server} }`,
    `{ "listen": 8080, ${server} }`,
    `{ "listen": { "prot": 1 }, ${server} }`,
    `{ "listen": { "port": 80800 }, ${server} }`,
    `{ "listen": { "port": "http" }, ${server} }`,
    `{ "listen": { "port": 1.5 }, ${server} }`,
    `{ "listen": { "path": "mcp" }, ${server} }`,
    `{ "listen": { "allowedOrigins": "https://a.example" }, ${server} }`,
    `{ "listen": { "tls": { "certificate": "x" } }, ${server} }`,
    `{ "timeouts": { "drain": 5000 }, ${server} }`,
    `{ "timeouts": { "drain": "5000" }, ${server} }`,
    `{ "timeouts": { "drain": "30 min" }, ${server} }`,
    `{ "timeouts": { "drain": "30m1h" }, ${server} }`,
    `{ "timeouts": { "drain": "" }, ${server} }`,
    `{ "limits": { "request": { "body": "4X" } }, ${server} }`,
    `{ "limits": { "request": { "body": 4194304 } }, ${server} }`,
    `{ "limits": { "user": { "sessions": "five" } }, ${server} }`,
    `{ "auth": { "required": "yes" }, ${server} }`,
    `{ "cluster": { "prefix": "a{b}" }, ${server} }`,
    `{ "observe": { "logFormat": "html" }, ${server} }`,
    `{ "defaults": { "era": "new" }, ${server} }`,
    `{ "defaults": { "timeouts": { "begin": "5s" } }, ${server} }`,
    `{ "include": 5, ${server} }`,
    entry('{}'),
    entry('"x"'),
    entry('{ "comand": "x" }'),
    entry('{ "command": "x", "url": "http://a.example" }'),
    entry('{ "command": 5 }'),
    entry('{ "command": "x", "args": "y" }'),
    entry('{ "command": "x", "args": [1] }'),
    entry('{ "command": "x", "share": "shared" }'),
    entry('{ "command": "x", "type": "tcp" }'),
    entry('{ "command": "x", "startTimeoutMs": 5 }'),
    entry('{ "command": "x", "probes": { "every": 5 } }'),
    entry('{ "command": "x", "listen": { "port": 1 } }'),
    '{ "mcpServers": { "a/b": { "command": "x" } } }',
    entry('{ "command": "x", "env": { "A": 5 } }'),
    entry('{ "url": "https://a.example", "headers": { "A": 5 } }'),
    entry('{ "url": "htp://a.example" }'),
    entry('{ "url": "a.example" }'),
    entry('{ "url": "http://a.example", "type": "ws" }'),
    entry('{ "url": "https://a.example", "type": "stdio" }'),
    entry('{ "command": "x", "headers": { "A": "b" } }'),
    entry('{ "command": "x", "type": "http" }'),
    entry('{ "url": "https://a.example", "args": ["x"] }'),
    entry('{ "command": "x", "enabled": false }'),
    entry('{ "command": "x", "envFile": ".env" }'),
    entry('{ "command": "x", "sandboxEnabled": true }'),
    entry('{ "command": "x", "includeTools": ["a"] }'),
    entry('{ "url": "https://a.example", "auth": { "CLIENT_ID": "x" } }'),
    entry('{ "url": "https://a.example", "headersHelper": "x" }'),
    `{ "observe": { "logLevel": "dbug" }, ${server} }`,
    `{ "observe": { "logLevel": "info,stor=debug" }, ${server} }`,
    `{ "cluster": { "redis": "htp://a" }, ${server} }`,
    `{ "cluster": { "stateKeys": ["short"] }, ${server} }`,
    `{ "listen": { "publicUrl": "nope" }, ${server} }`,
    `{ "timeouts": { "sessionIdle": 0 }, ${server} }`,
    `{ "limits": { "request": { "body": 0 } }, ${server} }`,
  ])('refuses %s, as the gateway does', (text) => {
    expect(isValid(text)).toBe(false);
    const read = readConfiguration({ argv: ['--config', 'gangway.json'], env: {}, readFile: () => text });
    expect(read.ok).toBe(false);
  });
});
