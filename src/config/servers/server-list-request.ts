import type { ReportIssue } from '../issues.ts';
import { defaultsBranch } from '../options/option-names.ts';
import type { CommandLine } from '../sources/command-line.ts';
import { configFileVariable, type Environment } from '../sources/environment-variables.ts';
import { serverNameFault } from './server-name.ts';

/** What `mcp-gangway add`, `remove` and `list` are to do. */
export type ServerListRequest = { readonly file: string } & (
  | {
      readonly kind: 'add';
      readonly name: string;
      readonly entry: Readonly<Record<string, unknown>>;
      readonly replaces: boolean;
    }
  | { readonly kind: 'remove'; readonly name: string }
  | { readonly kind: 'list'; readonly isJson: boolean }
);

/** Reads the words and flags of these commands, and reports all faults. */
export function readServerListRequest(
  kind: ServerListRequest['kind'],
  line: CommandLine,
  env: Environment,
  report: ReportIssue,
): ServerListRequest | undefined {
  const { flags, word: name = '' } = line;
  const file = line.configFile ?? env[configFileVariable];
  if (file === undefined || file === '') {
    report(kind, `needs the configuration file of the gateway: --config FILE, or the variable ${configFileVariable}`);
    return undefined;
  }
  if (line.name !== undefined)
    report('--name', `is not an option of mcp-gangway ${kind}; the name stands after ${kind}`);
  if (kind === 'list') return { kind, file, isJson: flags.has('--json') };
  // The name is a part of a path, and of the name of a file.
  const fault = name === '' ? `needs the name of a server: mcp-gangway ${kind} git` : serverNameFault(name, '');
  if (fault !== undefined) {
    report(name === '' ? kind : `the name after ${kind}`, fault);
    return undefined;
  }
  if (kind === 'remove') return { kind, file, name };
  const entry = readEntry(line, report);
  return entry && { kind, file, name, entry, replaces: flags.has('--replace') };
}

/** The entry of the server, as the file has it: with the options of the command line. */
function readEntry(
  { serverCommand, url, given, hasStrayWord }: CommandLine,
  report: ReportIssue,
): Record<string, unknown> | undefined {
  const [command = '', ...args] = serverCommand ?? [];
  if ((command === '') === (url === undefined)) {
    // A stray word was reported, and is the more likely reason.
    if (!hasStrayWord) report('add', 'needs one server: mcp-gangway add NAME -- COMMAND, or mcp-gangway add NAME URL');
    return undefined;
  }
  // One word can be a whole command, which is split where no arguments are given.
  const local = args.length === 0 ? { command } : { command, args };
  const entry: Record<string, unknown> = url === undefined ? local : { url: url.text };
  const prefix = `${defaultsBranch}.`;
  for (const [path, { path: flag, value, written = value }] of given) {
    if (path.startsWith(prefix)) putAt(entry, path.slice(prefix.length), written);
    else report(flag, 'is an option of the gateway, not of a server; set it in the configuration file');
  }
  return entry;
}

/** Sets a member of an entry, such as `timeouts.start`. */
function putAt(entry: Record<string, unknown>, path: string, value: unknown): void {
  const names = path.split('.');
  const last = names.pop() ?? '';
  let inside = entry;
  for (const name of names) {
    inside[name] ??= {};
    inside = inside[name] as Record<string, unknown>;
  }
  inside[last] = value;
}
