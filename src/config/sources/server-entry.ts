import * as z from 'zod/mini';
import { splitCommand } from '../../core/backend/stdio/launch/split-command.ts';
import { isObject } from '../../core/util/is-object.ts';
import { nearestName } from '../../core/util/text/nearest-name.ts';
import { memberPath, type ReportIssue } from '../issues.ts';
import { notAString, systemText, unquoted } from '../options/option-kinds.ts';
import { serverLeaves } from '../options/options.ts';
import type { TransportChoice } from '../server-url.ts';
import { noteShellSyntax } from '../servers/shell-syntax.ts';
import { authObjectFault, ignoredKeys, refusedKeys, urlNames } from './client-keys.ts';
import { expandWhole, type ReferenceSources } from './expand-variables.ts';
import { checkValue, type Given, type GivenValue } from './given-values.ts';
import { type KnownMembers, readBranch } from './read-branch.ts';

/** The context in which a server's entry is read. */
export interface EntryContext extends ReferenceSources {
  /** True if a file has exactly this name. */
  readonly findCommand: (name: string) => boolean;
  /** Adds a warning about a key without effect. */
  readonly note: (path: string, warning: string) => void;
  /** Receives the name of each server that the file disables. */
  readonly onDisabled?: (name: string) => void;
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
const known: KnownMembers = {
  options: serverLeaves,
  others: fields,
  foreign: [...urlNames, ...ignoredKeys, ...refusedKeys.keys(), 'enabled'],
};

/**
 * A character that no command has. In a path that begins with a drive, also a tab or a line break: JSON reads both from
 * `C:\tools\node.exe`, where each backslash should be two.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for such characters
const controlCharacter = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]|^[A-Za-z]:[^/\\]*[\t\n\r]/;

const commandSchema = z
  .string({
    error: ({ input }) =>
      Array.isArray(input)
        ? 'must be a string; put the arguments into "args", such as "command": "node", "args": ["server.js"]'
        : notAString,
  })
  .check(
    z.refine((value) => value.trim() !== '', { error: 'must not be empty' }),
    z.refine((value) => !controlCharacter.test(value), {
      error: 'has a control character, such as a tab or NUL; for the backslash of a path, write two backslashes',
    }),
  );
const argsSchema = z.array(systemText, { error: 'must be a list of strings, such as ["-y", "some-server"]' });

/** True for a server that the file disables. */
export const isDisabled = (entry: unknown): boolean => isObject(entry) && entry['disabled'] === true;

/** Reads one member of `mcpServers`. */
export function readServerEntry(name: string, entry: unknown, path: string, context: EntryContext): ServerEntry {
  const { report } = context;
  const given = new Map<string, GivenValue>();
  if (!isObject(entry)) {
    report(path, 'must be an object such as { "command": "…", "args": […] } or { "url": "…" }');
    return { name, path, words: undefined, url: undefined, given };
  }
  for (const [key, value] of Object.entries(entry)) {
    const at = memberPath(path, key);
    const isUrlName = urlNames.includes(key) && !Object.hasOwn(entry, 'url');
    if (fields.includes(key) || isUrlName) given.set(isUrlName ? 'url' : key, readField(value, at, context));
    else if (key === 'enabled' && value !== true) report(at, 'is not supported; write "disabled": true instead');
    else if (ignoredKeys.includes(key) || key === 'enabled')
      context.note(at, 'is ignored, because it concerns only MCP clients');
    else {
      const fault = key === 'auth' && isObject(value) ? authObjectFault : refusedKeys.get(key);
      if (fault !== undefined) report(at, fault);
    }
  }
  const others = isObject(entry['auth']) ? withoutKey(entry, 'auth') : entry;
  readBranch(others, '', path, { given, known, references: context, report });
  const disabled = given.get('disabled');
  if (disabled !== undefined && disabled.value !== false)
    report(disabled.path, unquoted('must be true or false')({ input: disabled.value }));
  checkType(given, report);
  const isRemote = checkForm(given, report);
  if (!isRemote) noteShellSyntax(given, context);
  const url = isRemote ? readUrl(given, report) : undefined;
  const transport = transportOf(given.get('type')?.value);
  if (url !== undefined && transport !== undefined && !given.has('transport')) {
    given.set('transport', { path: memberPath(path, 'type'), value: transport });
  }
  const other = given.get('transport');
  if (other !== undefined && transport !== undefined && other.value !== transport) {
    report(other.path, 'differs from type; remove one of them');
  }
  return {
    name,
    path,
    words: isRemote ? undefined : readWords(given, path, Object.keys(entry).some(isMisspelledForm), context),
    url,
    given,
  };
}

/** A field of the entry. A fault in a reference was reported; the field itself still counts as given. */
function readField(value: unknown, path: string, context: EntryContext): GivenValue {
  const whole = expandWhole(value, path, context);
  return whole === undefined ? { path, value } : { path, ...whole };
}

/** Checks the transport that an entry names as its type: it says again what the command or the URL says. */
function checkType(given: Given, report: ReportIssue): void {
  const type = given.get('type');
  if (type === undefined) return;
  const { value } = type;
  const url = given.get('url')?.value;
  const isForUrl = transportOf(value) !== undefined;
  if (isWebSocket(value)) {
    if (!/^wss?:\/\//i.test(String(url)))
      report(
        type.path,
        'is for a WebSocket, but the server has no ws:// or wss:// URL; correct the url, or remove type',
      );
  } else if (!isForUrl && value !== 'stdio') report(type.path, 'must be "stdio", "http", "sse" or "ws", or be omitted');
  else if (isForUrl === (url === undefined))
    report(
      type.path,
      `is "${isForUrl ? transportOf(value) : 'stdio'}", but the server has ${url === undefined ? 'no url; add a url, or remove type' : 'a url; remove type, or the url'}`,
    );
}

/** The transport that the type of a server with a URL names. */
function transportOf(type: unknown): TransportChoice | undefined {
  if (typeof type !== 'string') return undefined;
  if (/^(?:streamable-?)?http$/i.test(type)) return 'http';
  return /^sse$/i.test(type) ? 'sse' : undefined;
}

const isWebSocket = (type: unknown): boolean => typeof type === 'string' && /^(?:ws|websocket)$/i.test(type);

const withoutKey = (entry: Readonly<Record<string, unknown>>, key: string): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => name !== key));

/** True for a server at a URL. Reports keys that belong to the other form. */
function checkForm(given: Given, report: ReportIssue): boolean {
  const isRemote = given.has('url') || (transportOf(given.get('type')?.value) !== undefined && !given.has('command'));
  if (given.has('url'))
    for (const key of ['command', 'args', 'cwd', 'env']) {
      const other = given.get(key);
      if (other !== undefined) report(other.path, `is only for servers without a url; remove ${key}, or the url`);
    }
  return isRemote;
}

function readUrl(given: Given, report: ReportIssue): ServerEntry['url'] {
  const url = given.get('url');
  const text = url === undefined ? undefined : checkValue(systemText, url, report);
  return url === undefined || text === undefined ? undefined : { path: url.path, text };
}

/** True if an unknown key probably means `command` or `url`, which its own fault says. */
const isMisspelledForm = (key: string): boolean =>
  !serverLeaves.has(key) &&
  !known.others.includes(key) &&
  !known.foreign.includes(key) &&
  ['command', 'url'].includes(nearestName(key, knownKeys) ?? '');

const knownKeys = [...serverLeaves.keys(), ...fields];

function readWords(
  given: Given,
  path: string,
  hasMisspelledForm: boolean,
  context: EntryContext,
): [string, ...string[]] | undefined {
  const { report } = context;
  const command = given.get('command');
  if (command === undefined) {
    if (!hasMisspelledForm) report(path, 'has no command and no url; add one of them');
    return undefined;
  }
  const name = checkValue(commandSchema, command, report);
  const args = checkValue(argsSchema, given.get('args') ?? { path, value: [] }, report);
  if (name === undefined || args === undefined) return undefined;
  return given.has('args') ? [name, ...args] : splitCommandText(name, command.path, context);
}

/**
 * Splits a command that is one string at its blanks, unless a file has exactly that name. Reports a string that cannot
 * be split.
 */
export function splitCommandText(
  text: string,
  path: string,
  { findCommand, report }: Pick<EntryContext, 'findCommand' | 'report'>,
): [string, ...string[]] | undefined {
  if (!/\s/.test(text) || findCommand(text)) return [text];
  const split = splitCommand(text);
  if (!split.ok) {
    report(path, split.message);
    return undefined;
  }
  const [command, ...args] = split.argv;
  if (command !== undefined && command !== '') return [command, ...args];
  report(path, 'must not be empty');
  return undefined;
}
