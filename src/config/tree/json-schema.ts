import * as z from 'zod/mini';
import { type Option, writtenDefault } from '../options/option-kinds.ts';
import { defaultsBranch } from '../options/option-names.ts';
import { gatewayOptions, serverOptions, viewOptions } from '../options/options.ts';
import { remoteOnlyOptions } from '../options/remote-options.ts';
import { ignoredKeys, ignoredRootKeys, urlNames } from '../sources/client-keys.ts';
import { timeUnits } from '../units.ts';
import { type Branch, isOption } from './branch.ts';

/** A part of a JSON Schema. */
type Schema = Readonly<Record<string, unknown>>;

/** A text with a reference such as `${VAR}` stands for any value, which only the gateway knows. */
const referenceText: Schema = { type: 'string', pattern: '\\$\\{[^}]*\\}' };

/** A pattern without regard to capital letters, which JSON Schema has no flag for. */
const anyCase = (text: string): string => text.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);

const urlText = (schemes: string): Schema => ({
  type: 'string',
  anyOf: [{ pattern: `^(${anyCase(schemes)})://[^\\s]+$` }, referenceText],
});

/** A time, from the largest unit to the smallest. */
const timeText = `(?=.)${timeUnits.map(([unit]) => `(\\d+(\\.\\d+)?${unit})?`).join('')}`;
const sizeText = '\\d+(\\.\\d+)? ?([bB]|[kKmMgGtT](i?[bB])?)';

/** The URL of a server. */
const serverUrl = urlText('https?|wss?|tcp|unix');

const webSocketType = `^(${anyCase('ws|websocket')})$`;

/** The types of servers in the files of MCP clients. */
const serverType: Schema = {
  type: 'string',
  anyOf: [
    { enum: ['stdio', 'http', 'streamable-http', 'sse', 'ws'] },
    { pattern: `^(${anyCase('(streamable-?)?http|sse')})$` },
    { pattern: webSocketType },
    referenceText,
  ],
};

/** The JSON Schema (draft 2020-12) of the configuration file, for editors. The gateway itself does not use it. */
export function configurationSchema(): Schema {
  const server = schemaOf(serverOptions);
  const entry = {
    ...server,
    properties: {
      command: text('Program to start. Without args, a command with spaces is split into words as in a shell.'),
      args: { type: 'array', items: { type: 'string' }, description: 'Arguments of the program.' },
      url: { description: 'URL of a remote server, instead of command.', ...serverUrl },
      ...Object.fromEntries(urlNames.map((name) => [name, { description: 'Another name of url.', ...serverUrl }])),
      type: { description: 'Transport, as MCP clients write it.', ...serverType },
      enabled: { const: true, description: 'Ignored: to disable a server, use disabled.' },
      disabled: { type: 'boolean', description: 'If true, the gateway ignores this server.' },
      ...Object.fromEntries(ignoredKeys.map((key) => [key, { description: 'Ignored: only for MCP clients.' }])),
      ...(server['properties'] as Schema),
    },
    if: { required: ['type'], properties: { type: { type: 'string', pattern: webSocketType } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties: { url: urlText('wss?') } },
    anyOf: [
      {
        required: ['command'],
        not: anyOfKeys('url', ...urlNames, ...remoteOnlyOptions),
        properties: { type: { const: 'stdio' } },
      },
      {
        anyOf: ['url', ...urlNames].map((name) => ({ required: [name] })),
        not: anyOfKeys('command', 'args', 'cwd', 'env'),
        properties: { type: { not: { const: 'stdio' } } },
      },
      { required: ['disabled'], properties: { disabled: { const: true } } },
    ],
  };
  const root = schemaOf({ ...gatewayOptions, [defaultsBranch]: serverOptions });
  const servers = (description: string): Schema => ({
    type: 'object',
    description,
    propertyNames: { pattern: '^(?!\\.)[A-Za-z0-9._-]{1,64}$' },
    additionalProperties: { $ref: '#/$defs/server' },
  });
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: schemaUrl,
    title: 'Configuration of mcp-gangway',
    ...root,
    properties: {
      $schema: { type: 'string' },
      include: {
        description: 'Files of servers, or folders of such files. Paths are relative to this file.',
        anyOf: [text(), { type: 'array', items: text() }],
      },
      mcpServers: servers('The servers by name, as in the files of Claude and Cursor.'),
      servers: servers('The servers by name, as in mcp.json of VS Code.'),
      views: {
        type: 'object',
        description: 'Endpoints that combine several servers, by name.',
        additionalProperties: {
          anyOf: [valueSchema(viewOptions.servers), { ...schemaOf(viewOptions), required: ['servers'] }],
        },
      },
      ...Object.fromEntries(ignoredRootKeys.map((key) => [key, { description: 'Ignored: only for MCP clients.' }])),
      ...(root['properties'] as Schema),
    },
    anyOf: [{ required: ['mcpServers'] }, { required: ['servers'] }, { required: ['include'] }],
    not: { required: ['mcpServers', 'servers'] },
    $defs: { server: entry },
  };
}

/** The address under which the schema is published. */
export const schemaUrl =
  'https://raw.githubusercontent.com/mcp-gangway/mcp-gangway/main/docs/reference/configuration.schema.json';

const text = (description?: string): Schema => ({ type: 'string', minLength: 1, ...(description && { description }) });

/** An object with at least one of these keys. */
const anyOfKeys = (...keys: readonly string[]): Schema => ({ anyOf: keys.map((key) => ({ required: [key] })) });

/** The schema of a branch, an object with a property for each of its members. */
function schemaOf(branch: Branch): Schema {
  const members = Object.entries(branch).map(([name, entry]) => [
    name,
    isOption(entry) ? leafSchema(entry) : schemaOf(entry),
  ]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(members) };
}

function leafSchema(option: Option): Schema {
  const { description, default: usual } = option;
  const shown = typeof usual === 'boolean' ? usual : writtenDefault(option);
  return { description, ...(shown !== undefined && { default: shown }), ...valueSchema(option) };
}

function valueSchema(option: Option): Schema {
  const { kind, schema, pattern } = option;
  switch (kind) {
    case 'duration':
    case 'size': {
      // The bounds are left to the gateway.
      const allowsZero = schema.safeParse(0).success;
      const texts = kind === 'duration' ? timeText : sizeText;
      const pattern = `^(${allowsZero ? '0|' : ''}${texts})$`;
      return { anyOf: [{ type: 'string', pattern }, ...(allowsZero ? [{ const: 0 }] : []), referenceText] };
    }
    case 'list': {
      const { items = { type: 'string' } } = withoutDraft(schema);
      return { type: 'array', items: { anyOf: [items, referenceText] } };
    }
    case 'map':
    case 'headers': {
      const { additionalProperties: value } = withoutDraft(schema);
      // The schema of a value that is converted while it is read does not describe what the file can contain.
      return { type: 'object', ...((value as Schema)?.['type'] === 'string' && { additionalProperties: value }) };
    }
    case 'json':
      return { type: 'object' };
    case 'integer':
    case 'boolean':
    case 'string':
      return { anyOf: [{ ...withoutDraft(schema), ...(pattern && { pattern }) }, referenceText] };
  }
}

/** The JSON Schema of a value. A check in code, which JSON Schema cannot express, is left to the gateway. */
function withoutDraft(schema: z.ZodMiniType): Schema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}
