import * as z from 'zod/mini';
import type { Option } from '../options/option-kinds.ts';
import { globalOptions, serverOptions } from '../options/options.ts';
import { filterOptions } from '../servers/filter-options.ts';
import { serverPathOf, treePathOf } from './places.ts';

/** A part of a JSON Schema. */
type Schema = Readonly<Record<string, unknown>>;

/** A text with a reference such as `${VAR}` stands for any value, which only the gateway knows. */
const referenceText: Schema = { type: 'string', pattern: '\\$\\{[^}]*\\}' };

const durationText: Schema = {
  type: 'string',
  pattern: '^(0|(\\d+(\\.\\d+)?d)?(\\d+(\\.\\d+)?h)?(\\d+(\\.\\d+)?m)?(\\d+(\\.\\d+)?s)?(\\d+(\\.\\d+)?ms)?)$',
  minLength: 1,
};
const sizeText: Schema = { type: 'string', pattern: '^(0|\\d+(\\.\\d+)? ?([kKmMgGtT](i?[bB])?|[bB]))$' };

/** The JSON Schema (draft 2020-12) of the configuration file, for editors. The gateway itself does not use it. */
export function configurationSchema(): Schema {
  const server = branchOf(Object.entries<Option>(serverOptions), (key) => serverPathOf(key) ?? key);
  const entry = {
    ...server,
    properties: {
      command: text('Program to start. Without args, a command with spaces is split into words as in a shell.'),
      args: { type: 'array', items: { type: 'string' }, description: 'Arguments of the program.' },
      url: text('URL of a remote server, instead of command.'),
      type: { enum: ['stdio', 'http', 'streamable-http', 'sse'], description: 'Transport, as MCP clients write it.' },
      disabled: { type: 'boolean', description: 'If true, the gateway ignores this server.' },
      ...Object.fromEntries(clientKeys.map((key) => [key, { description: 'Ignored: only for MCP clients.' }])),
      ...(server['properties'] as Schema),
    },
    anyOf: [
      { required: ['command'], not: { required: ['url'] } },
      { required: ['url'], not: { required: ['command'] } },
      { required: ['disabled'], properties: { disabled: { const: true } } },
    ],
  };
  const all: [string, Option][] = [...Object.entries<Option>(globalOptions), ...Object.entries<Option>(serverOptions)];
  const root = branchOf(all, treePathOf);
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
        additionalProperties: { anyOf: [serverNames, view] },
      },
      inputs: { description: 'Ignored: only for VS Code.' },
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

/** Keys in the files of MCP clients that the gateway ignores. */
const clientKeys = ['autoApprove', 'alwaysAllow', 'timeout', 'description', 'disabledTools', 'icon', 'name', 'trust'];

const text = (description?: string): Schema => ({ type: 'string', minLength: 1, ...(description && { description }) });

const serverNames: Schema = { type: 'array', items: text('Name of a server; * stands for any characters.') };

/** A view of several servers. */
const view: Schema = {
  type: 'object',
  additionalProperties: false,
  required: ['servers'],
  properties: {
    servers: serverNames,
    separator: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,8}$' },
    unprefixed: text('The server whose tools and prompts are listed without a prefix.'),
    timeout: durationText,
    ...(branchOf(Object.entries<Option>(filterOptions), (key) => key)['properties'] as Schema),
  },
};

/** An object schema in which each option stands at its path. */
function branchOf(options: readonly (readonly [string, Option])[], placeOf: (key: string) => string): Schema {
  const properties: Record<string, Schema> = {};
  const names = new Set(options.map(([key]) => placeOf(key).split('.', 1)[0] ?? ''));
  for (const name of names) {
    const leaf = options.find(([key]) => placeOf(key) === name);
    const below = options.filter(([key]) => placeOf(key).startsWith(`${name}.`));
    properties[name] = leaf ? leafOf(leaf[1]) : branchOf(below, (key) => placeOf(key).slice(name.length + 1));
  }
  return { type: 'object', additionalProperties: false, properties };
}

function leafOf(option: Option): Schema {
  const { description, default: value, format } = option;
  const shown = typeof value === 'number' ? (format?.(value) ?? value) : value;
  const isPlain = typeof shown === 'number' || typeof shown === 'string' || typeof shown === 'boolean';
  return { description, ...(isPlain && { default: shown }), ...valueSchema(option) };
}

function valueSchema({ kind, schema }: Option): Schema {
  switch (kind) {
    case 'duration':
      return { anyOf: [durationText, { const: 0 }, referenceText] };
    case 'size':
      return { anyOf: [sizeText, { const: 0 }, referenceText] };
    case 'list':
      return { type: 'array', items: { type: 'string' } };
    case 'map':
    case 'headers':
    case 'json':
      return { type: 'object' };
    case 'integer':
    case 'boolean':
    case 'string':
      return { anyOf: [withoutDraft(schema), referenceText] };
  }
}

/** The JSON Schema of a value. A check in code, which JSON Schema cannot express, is left to the gateway. */
function withoutDraft(schema: z.ZodMiniType): Schema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}
