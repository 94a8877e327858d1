import { z } from 'zod';
import type { Environment } from './environment.ts';
import { expandVariables } from './expand-variables.ts';
import { memberPath, type Report, remoteFault } from './fault.ts';
import { checkValue, type Given, type GivenValue } from './given-values.ts';
import { systemText } from './option-kinds.ts';
import { nearestName } from './option-names.ts';
import { serverOptions } from './options.ts';
import { type FindCommand, splitWhole } from './split-whole.ts';

/** What reading a server's entry needs beside the entry. */
export interface EntryContext {
  readonly env: Environment;
  readonly findCommand: FindCommand;
  readonly report: Report;
}

/** One server of the file; its name and options are not yet checked. */
export interface ServerEntry {
  readonly name: string;
  readonly path: string;
  /** The command and its arguments; undefined if a fault was reported of them. */
  readonly words: readonly [string, ...string[]] | undefined;
  readonly given: Given;
}

/** Keys with which MCP clients' files describe a server, beside the per-server options. */
const fields = ['command', 'args', 'url', 'headers', 'type', 'disabled'];
/** Keys of MCP clients' files that say something about the client only. */
const withoutMeaning = ['autoApprove', 'alwaysAllow', 'timeout', 'description'];

const commandSchema = systemText.refine((value) => value.trim() !== '', { error: 'must not be empty' });
const argsSchema = z.array(systemText, { error: 'must be a list of strings' });

/** A JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** True for a server that is left out. */
export const isDisabled = (entry: unknown): boolean => isObject(entry) && entry['disabled'] === true;

/** Reads one member of `mcpServers`. */
export function readServerEntry(name: string, entry: unknown, path: string, context: EntryContext): ServerEntry {
  const { report, env } = context;
  const given = new Map<string, GivenValue>();
  if (!isObject(entry)) {
    report(path, 'must be an object with the command of a server');
    return { name, path, words: undefined, given };
  }
  for (const [key, value] of Object.entries(entry)) {
    const place = memberPath(path, key);
    if (withoutMeaning.includes(key)) continue;
    if (fields.includes(key) || Object.hasOwn(serverOptions, key)) {
      given.set(key, { path: place, value: expandVariables(value, place, env, report) });
    } else report(place, unknownKey(key, [...fields, ...Object.keys(serverOptions)]));
  }
  const disabled = given.get('disabled');
  if (disabled !== undefined && disabled.value !== false) report(disabled.path, 'must be true or false');
  return { name, path, words: isLocal(given, report) ? readWords(given, path, context) : undefined, given };
}

/** What is said of a key that the file does not have. */
export function unknownKey(key: string, known: readonly string[]): string {
  const nearest = nearestName(key, known);
  return `is not a known key${nearest === undefined ? '; see docs/configuration.md' : `; did you mean ${nearest}?`}`;
}

/** Reports a server that is not a STDIO program, once, however many keys say so. */
function isLocal(given: Given, report: Report): boolean {
  const type = given.get('type');
  const remote = given.get('url') ?? given.get('headers') ?? (isRemoteType(type?.value) ? type : undefined);
  if (remote !== undefined) report(remote.path, remoteFault);
  else if (type !== undefined && type.value !== 'stdio') report(type.path, 'must be "stdio" or left out');
  return remote === undefined;
}

const isRemoteType = (type: unknown): boolean =>
  typeof type === 'string' && /^(?:sse|http|streamable-?http)$/i.test(type);

function readWords(given: Given, path: string, context: EntryContext): [string, ...string[]] | undefined {
  const { report } = context;
  const command = given.get('command');
  if (command === undefined) {
    report(path, 'has no command');
    return undefined;
  }
  const name = checkValue(commandSchema, command, report);
  const args = checkValue(argsSchema, given.get('args') ?? { path, value: [] }, report);
  if (name === undefined || args === undefined) return undefined;
  return given.has('args') ? [name, ...args] : splitWhole(name, command.path, context);
}
