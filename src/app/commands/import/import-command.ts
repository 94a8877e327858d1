// src/app/commands/import: `mcp-gangway import registry`: a server.json of the MCP registry as a configuration.

import { type ConvertedEntry, convertServerJson } from './convert-server-json.ts';
import type { NeededVariable } from './inputs.ts';
import { readServerJson } from './server-json.ts';

/** The result of an import. */
export interface Imported {
  /** The configuration; undefined if there is none. */
  readonly configuration: string | undefined;
  /** What the operator has to know and to do, for stderr. */
  readonly report: string;
}

/**
 * Converts a `server.json` of the MCP registry into a configuration of the gateway.
 * @param file the name of the file, for the report
 */
export function importRegistry(content: string, file: string): Imported {
  const read = readServerJson(content);
  if (!read.ok) return { configuration: undefined, report: `mcp-gangway: ${file} ${printable(read.message)}.\n` };
  const converted = convertServerJson(read.server);
  const written = converted.filter(({ entry }) => entry !== undefined);
  const lines = converted.flatMap(describe);
  if (written.length > 1)
    lines.push(
      'All entries are for the same server, so only the first is enabled. To use another entry, move "disabled": true to the first entry.',
    );
  if (converted.length === 0)
    lines.push(`${file} has no packages and no remotes. Ask its publisher how to get the server.`);
  lines.push(...describeVariables(written));
  const report = lines.map((line) => `${printable(line)}\n`).join('');
  if (written.length === 0) return { configuration: undefined, report: `${report}No configuration was written.\n` };
  const mcpServers = Object.fromEntries(written.map(({ name, entry }) => [name, entry]));
  return { configuration: `${JSON.stringify({ mcpServers }, undefined, 2)}\n`, report };
}

function describe({ name, entry, inputs }: ConvertedEntry): string[] {
  if (entry === undefined) return [...new Set(inputs.obstacles)].map((why) => `${name} was not written: ${why}.`);
  return [...new Set(inputs.notes)].map((note) => `${name}: ${note}.`);
}

/** Only the first entry is enabled. The gateway does not read the references of a disabled entry. */
function describeVariables([enabled, ...disabled]: readonly ConvertedEntry[]): string[] {
  const now = new Map(enabled?.inputs.variables);
  const later = new Map(
    disabled.flatMap(({ inputs }) => [...inputs.variables]).filter(([variable]) => !now.has(variable)),
  );
  const rowsOf = (variables: ReadonlyMap<string, NeededVariable>): string[] =>
    [...variables.values()].map((variable) => `  ${variable.name}  ${explain(variable)}`);
  return [
    ...(now.size > 0 ? ['Set these variables before the gateway starts:', ...rowsOf(now)] : []),
    ...(later.size > 0 ? ['The disabled entries need these variables too:', ...rowsOf(later)] : []),
    ...([...now.values(), ...later.values()].some(({ isSecret }) => isSecret) ? [secretHint] : []),
  ];
}

const secretHint = 'A secret can also come from a file: write ${file:/path} in place of ${VARIABLE}.';

function explain({ description, isSecret, otherwise, choices }: NeededVariable): string {
  const remarks = [
    isSecret ? 'a secret' : '',
    choices.length > 0 ? `one of ${choices.join(', ')}` : '',
    otherwise === undefined ? '' : `by default ${otherwise}`,
  ].filter((remark) => remark !== '');
  return remarks.length === 0 ? description : `${description} (${remarks.join('; ')})`;
}

/** Texts of a publisher must not control the terminal. */
const printable = (text: string): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal obeys
  const plain = text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g, ' ');
  return plain.length > 1_000 ? `${plain.slice(0, 1_000)}…` : plain;
};
