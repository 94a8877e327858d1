import * as z from 'zod/mini';
import { docsPage } from '../../util/docs-page.ts';
import { memberPath, type ReportIssue } from '../issues.ts';
import { systemText } from '../options/option-kinds.ts';
import { nearestName } from '../options/option-names.ts';
import { serverOptions } from '../options/options.ts';
import type { TransportChoice } from '../server-url.ts';
import { type FindCommand, splitCommandText } from './command-text.ts';
import type { Environment } from './environment-variables.ts';
import { expandVariables } from './expand-variables.ts';
import { checkValue, type Given, type GivenValue } from './given-values.ts';

/** The context in which a server's entry is read. */
export interface EntryContext {
  readonly env: Environment;
  readonly findCommand: FindCommand;
  readonly report: ReportIssue;
}

/** One server of the file, whose name and options are not yet checked. */
export interface ServerEntry {
  readonly name: string;
  readonly path: string;
  /** The command and its arguments; undefined for a remote server, or after a fault in them was reported. */
  readonly words: readonly [string, ...string[]] | undefined;
  /** The URL of a remote server. */
  readonly url: { readonly path: string; readonly text: string } | undefined;
  readonly given: Given;
}

/** Keys with which the files of MCP clients describe a server, in addition to the per-server options. */
const fields = ['command', 'args', 'url', 'type', 'disabled'];
/** Keys in the files of MCP clients that concern only the client. */
const withoutMeaning = ['autoApprove', 'alwaysAllow', 'timeout', 'description'];

const commandSchema = systemText.check(z.refine((value) => value.trim() !== '', { error: 'must not be empty' }));
const argsSchema = z.array(systemText, { error: 'must be a list of strings' });

/** True for a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** True for a server that the file disables. */
export const isDisabled = (entry: unknown): boolean => isObject(entry) && entry['disabled'] === true;

/** Reads one member of `mcpServers`. */
export function readServerEntry(name: string, entry: unknown, path: string, context: EntryContext): ServerEntry {
  const { report, env } = context;
  const given = new Map<string, GivenValue>();
  if (!isObject(entry)) {
    report(path, 'must be an object with a command or a url');
    return { name, path, words: undefined, url: undefined, given };
  }
  for (const [key, value] of Object.entries(entry)) {
    const location = memberPath(path, key);
    if (withoutMeaning.includes(key)) continue;
    if (fields.includes(key) || Object.hasOwn(serverOptions, key)) {
      given.set(key, { path: location, value: expandVariables(value, location, env, report) });
    } else report(location, unknownKey(key, [...fields, ...Object.keys(serverOptions)]));
  }
  const disabled = given.get('disabled');
  if (disabled !== undefined && disabled.value !== false) report(disabled.path, 'must be true or false');
  checkType(given, report);
  const isRemote = checkForm(given, report);
  const url = isRemote ? readUrl(given, report) : undefined;
  const transport = transportOf(given.get('type')?.value);
  if (url !== undefined && transport !== undefined && !given.has('transport')) {
    given.set('transport', { path: memberPath(path, 'type'), value: transport });
  }
  const other = given.get('transport');
  if (other !== undefined && transport !== undefined && other.value !== transport) {
    report(other.path, 'differs from type; remove one of them');
  }
  return { name, path, words: isRemote ? undefined : readWords(given, path, context), url, given };
}

/** The message for an unknown key of the file. */
export function unknownKey(key: string, known: readonly string[]): string {
  const nearest = nearestName(key, known);
  return `is not a known key${nearest === undefined ? `; see ${docsPage('reference/configuration.md')}` : `; did you mean ${nearest}?`}`;
}

/** Checks the transport that an entry names as its type. */
function checkType(given: Given, report: ReportIssue): void {
  const type = given.get('type');
  if (type === undefined) return;
  const isRemote = given.has('url');
  const transport = transportOf(type.value);
  if (transport !== undefined) {
    if (!isRemote) report(type.path, `is "${transport}", but the server has no url`);
  } else if (type.value !== 'stdio') {
    report(type.path, 'must be "stdio", "http" or "sse", or be omitted');
  } else if (isRemote) {
    report(type.path, 'is "stdio", but the server has a url');
  }
}

/** The transport that the type of a server with a URL names. */
function transportOf(type: unknown): TransportChoice | undefined {
  if (typeof type !== 'string') return undefined;
  if (/^(?:streamable-?)?http$/i.test(type)) return 'http';
  return /^sse$/i.test(type) ? 'sse' : undefined;
}

/** True for a server at a URL. Reports keys that belong to the other form. */
function checkForm(given: Given, report: ReportIssue): boolean {
  const isRemote = given.has('url') || (transportOf(given.get('type')?.value) !== undefined && !given.has('command'));
  const others = given.has('url')
    ? ['command', 'args', 'cwd', 'env']
    : isRemote
      ? []
      : ['headers', 'forwardHeaders', 'transport'];
  for (const key of others) {
    const other = given.get(key);
    if (other !== undefined)
      report(other.path, `is only for servers ${isRemote ? 'without' : 'with'} a url; remove it`);
  }
  return isRemote;
}

function readUrl(given: Given, report: ReportIssue): ServerEntry['url'] {
  const url = given.get('url');
  const text = url === undefined ? undefined : checkValue(systemText, url, report);
  return url === undefined || text === undefined ? undefined : { path: url.path, text };
}

function readWords(given: Given, path: string, context: EntryContext): [string, ...string[]] | undefined {
  const { report } = context;
  const command = given.get('command');
  if (command === undefined) {
    report(path, 'has no command and no url; add one of them');
    return undefined;
  }
  const name = checkValue(commandSchema, command, report);
  const args = checkValue(argsSchema, given.get('args') ?? { path, value: [] }, report);
  if (name === undefined || args === undefined) return undefined;
  return given.has('args') ? [name, ...args] : splitCommandText(name, command.path, context);
}
