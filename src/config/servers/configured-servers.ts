// src/config/servers: the configured servers and the checks of their options.

import { isAbsolute, join } from 'node:path';
import type { ReportIssue } from '../issues.ts';
import { type ServerOptions, serverOptions } from '../options/options.ts';
import { checkServer } from '../rules/server-rules.ts';
import { readServerUrl, type ServerAddress } from '../server-url.ts';
import type { CommandLine } from '../sources/command-line.ts';
import type { ConfigFile } from '../sources/config-file.ts';
import { placesIn, resolveOptions } from '../sources/given-values.ts';
import { isKnownFlag } from '../sources/known-flags.ts';
import { type EntryContext, splitCommandText } from '../sources/server-entry.ts';
import { isPackageWord, type PackageRequest, type PackageUse, readPackage } from './package-request.ts';
import { deriveServerName, nameOfAddress, serverNameFault } from './server-name.ts';

interface NamedServer extends ServerOptions {
  /** The name in the paths of the server's endpoints and in the logs. */
  readonly name: string;
}

/** A STDIO server: how to start it, and its options. */
export interface LocalServer extends NamedServer {
  readonly command: string;
  readonly args: readonly string[];
  /** The package that contains the server; undefined for a program of this machine. */
  readonly package?: PackageRequest;
  readonly address?: undefined;
  /** The command line names the server and its settings. */
  readonly isOnCommandLine?: true;
}

/** A server that the gateway does not start: its address and its options. */
export interface RemoteServer extends NamedServer {
  readonly address: ServerAddress;
}

/** One MCP server of the configuration. */
export type ServerConfig = LocalServer | RemoteServer;

/** The ids in `process.user`. */
export function userOf(text: string): { readonly uid: number; readonly gid: number } {
  const [uid = 0, gid = 0] = text.split(':').map(Number);
  return { uid, gid };
}

/**
 * Reads the configured servers: the one on the command line, or those of the file.
 * @param path the path of the gateway's endpoints, which no server name may hide
 * @param common the options for every server that does not set its own
 */
export function readServers(
  line: Pick<CommandLine, 'serverCommand' | 'given' | 'url' | 'name'>,
  file: ConfigFile | undefined,
  path: string,
  common: ServerOptions,
  context: EntryContext,
): ServerConfig[] {
  return [
    ...readSingleServer(line, path, common, context),
    ...readRemoteServer(line, path, common, context.report),
    ...resolveFileServers(file, path, common, context.report),
  ];
}

function readSingleServer(
  { serverCommand, given, name: ownName }: Pick<CommandLine, 'serverCommand' | 'given' | 'name'>,
  path: string,
  common: ServerOptions,
  context: EntryContext,
): ServerConfig[] {
  if (serverCommand === undefined) return [];
  const [command = '', ...args] = serverCommand;
  if (command.trim() === '' || command.includes('\0')) {
    context.report('--', "must be followed by the server's command");
    return [];
  }
  const words = args.length > 0 ? serverCommand : splitCommandText(command, '--', context);
  if (words === undefined) return [];
  const [first = '', ...rest] = words;
  reportName(ownName, path, context.report);
  const { cwd } = common;
  const readFile = (file: string): string =>
    context.readFile(cwd === undefined || isAbsolute(file) ? file : join(cwd, file));
  const found = packageOf([first, ...rest], common.packages, '--', context.report);
  const derivedFrom = isPackageWord(first) && found !== undefined ? [found.package?.name ?? ''] : words;
  const name = ownName ?? deriveServerName(derivedFrom, path, readFile);
  for (const word of isPackageWord(first) ? rest : []) if (isKnownFlag(word)) noteLateOption(word, context);
  const server: LocalServer = { ...common, name, command: first, args: rest, ...found, isOnCommandLine: true };
  return [checkServer(server, () => true, placesIn([given], '--'), context.report)];
}

/** The package of a command, as a member of the server. Reports a word that names none. */
function packageOf(
  words: readonly [string, ...string[]],
  use: PackageUse,
  path: string,
  report: ReportIssue,
): { readonly package?: PackageRequest } | undefined {
  const read = readPackage(words, use);
  if (read.ok) return read.request && { package: read.request };
  report(path, read.message);
  return undefined;
}

/** A user of the gateway may have meant an option of the gateway. */
function noteLateOption(word: string, { note }: EntryContext): void {
  const flag = word.replace(/=.*/s, '');
  note(flag, 'stands after the package, so the server gets it; put options of the gateway before the package');
}

function readRemoteServer(
  { url, name, given }: Pick<CommandLine, 'url' | 'name' | 'given'>,
  path: string,
  common: ServerOptions,
  report: ReportIssue,
): RemoteServer[] {
  if (url === undefined) return [];
  reportName(name, path, report);
  const address = readAddress(url, common, report);
  if (address === undefined) return [];
  const server: RemoteServer = { ...common, name: name ?? nameOfAddress(address, path), address };
  return [checkServer(server, () => true, placesIn([given], url.path), report)];
}

function reportName(name: string | undefined, path: string, report: ReportIssue): void {
  const fault = name === undefined ? undefined : serverNameFault(name, path);
  if (fault !== undefined) report('--name', fault);
}

function readAddress(
  { path, text }: { readonly path: string; readonly text: string },
  { transport }: ServerOptions,
  report: ReportIssue,
): ServerAddress | undefined {
  const read = readServerUrl(text, transport);
  if (read.ok) return read.address;
  report(path, read.message);
  return undefined;
}

function resolveFileServers(
  file: ConfigFile | undefined,
  gatewayPath: string,
  common: ServerOptions,
  report: ReportIssue,
): ServerConfig[] {
  return (file?.servers ?? []).flatMap(({ name, path, words, url, given }) => {
    const fault = serverNameFault(name, gatewayPath);
    if (fault !== undefined) report(path, fault);
    const own = resolveOptions(serverOptions, [given], report, { fallbacks: common });
    const check = <T extends ServerConfig>(server: T): T =>
      checkServer(server, (option) => given.has(option), placesIn([given], path), report);
    if (url !== undefined) {
      const address = readAddress(url, own, report);
      return address === undefined ? [] : check<RemoteServer>({ ...own, name, address });
    }
    if (words === undefined) return [];
    const [command, ...args] = words;
    // Merged, so that a server with a token of its own keeps the proxy that is set for all servers.
    const env = { ...common.env, ...own.env };
    const found = packageOf([command, ...args], own.packages, `${path}.command`, report);
    return check<LocalServer>({ ...own, env, name, command, args, ...found });
  });
}
