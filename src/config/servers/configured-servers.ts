// src/config/servers: the configured servers and the checks of their options.

import { isAbsolute, join } from 'node:path';
import type { ReportIssue } from '../issues.ts';
import { checkCredentials } from '../options/client-credential-options.ts';
import { rootPathOf } from '../options/option-names.ts';
import { type OptionPath, type ServerOptions, serverOptions } from '../options/options.ts';
import { remoteOnlyOptions } from '../options/remote-options.ts';
import { readServerUrl, type ServerAddress } from '../server-url.ts';
import type { CommandLine } from '../sources/command-line.ts';
import { splitCommandText } from '../sources/command-text.ts';
import type { ConfigFile } from '../sources/config-file.ts';
import { type Given, resolveOptions } from '../sources/given-values.ts';
import type { EntryContext } from '../sources/server-entry.ts';
import { checkForwarding } from './header-forwarding.ts';
import { checkHibernation } from './hibernation.ts';
import { checkIdentity } from './identity-options.ts';
import { checkSharing, type PlaceOf } from './process-sharing.ts';
import { deriveServerName, nameOfAddress, serverNameFault } from './server-name.ts';
import { checkPassthrough } from './upstream-authorization.ts';

interface NamedServer extends ServerOptions {
  /** The name in the paths of the server's endpoints and in the logs. */
  readonly name: string;
}

/** A STDIO server: how to start it, and its options. */
export interface LocalServer extends NamedServer {
  readonly command: string;
  readonly args: readonly string[];
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
  for (const key of remoteOnlyOptions) {
    const own = given.get(rootPathOf(key));
    if (own !== undefined)
      context.report(
        own.path,
        `is only for servers at a URL, but this server is a command; remove it${key === 'headers' ? ', or use --env' : ''}`,
      );
  }
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
  const name = ownName ?? deriveServerName(words, path, readFile);
  const server: LocalServer = { ...common, name, command: first, args: rest, isOnCommandLine: true };
  return [checkClientOptions(server, ['credentials', 'affinity'], placesIn(given, '--'), context.report)];
}

function readRemoteServer(
  { url, name, given }: Pick<CommandLine, 'url' | 'name' | 'given'>,
  path: string,
  common: ServerOptions,
  report: ReportIssue,
): RemoteServer[] {
  if (url === undefined) return [];
  reportName(name, path, report);
  const placeOf = placesIn(given, url.path);
  const address = readAddress(url, common, placeOf, report);
  if (address === undefined) return [];
  const server: RemoteServer = { ...common, name: name ?? nameOfAddress(address, path), address };
  const own = ['auth', 'forwardHeaders', 'credentials', 'identity', 'share', 'affinity'];
  return [checkClientOptions(server, own, placeOf, report)];
}

function reportName(name: string | undefined, path: string, report: ReportIssue): void {
  const fault = name === undefined ? undefined : serverNameFault(name, path);
  if (fault !== undefined) report('--name', fault);
}

/**
 * Checks the options of a server that depend on its clients: forwarding, credentials, identity, sharing and hibernation.
 * @param own the options that are set on this server
 * @param placeOf the location of an option, or of the server
 */
const checkClientOptions = <T extends ServerConfig>(
  server: T,
  own: readonly string[],
  placeOf: PlaceOf,
  report: ReportIssue,
): T => {
  const at = (path: OptionPath): [isOwn: boolean, place: string] => [own.includes(path), placeOf(path)];
  const passthrough = checkPassthrough(server, ...at('auth'), report);
  const forwarding = checkForwarding(passthrough, ...at('forwardHeaders'), report);
  const withCredentials = checkCredentials(forwarding, ...at('credentials'), report);
  const withIdentity = checkIdentity(withCredentials, ...at('identity'), report);
  const sharing = checkSharing(withIdentity, own, placeOf, report);
  return checkHibernation(sharing, own, placeOf, report);
};

/** The locations of the options that a source sets, and the location of the server for all others. */
const placesIn =
  (given: Given, place: string): PlaceOf =>
  (path) =>
    (given.get(path) ?? given.get(rootPathOf(path)))?.path ?? place;

function readAddress(
  { path, text }: { readonly path: string; readonly text: string },
  { transport, era, tls: { cert, key } }: ServerOptions,
  placeOf: PlaceOf,
  report: ReportIssue,
): ServerAddress | undefined {
  if ((cert === undefined) !== (key === undefined)) {
    report(
      placeOf(cert === undefined ? 'tls.key' : 'tls.cert'),
      (nameOf) => `needs both ${nameOf('tls.cert')} and ${nameOf('tls.key')}, or neither`,
    );
  }
  const read = readServerUrl(text, transport);
  if (!read.ok) {
    report(path, read.message);
    return undefined;
  }
  const { address } = read;
  const hasSessionsOnly = address.transport === 'sse' || address.transport === 'ws';
  if (era === 'modern' && hasSessionsOnly) {
    report(
      placeOf('era'),
      (nameOf) =>
        `has ${nameOf('era')} modern, but HTTP+SSE and WebSocket exist only in older revisions; use legacy or auto`,
    );
  }
  return address;
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
    const placeOf = placesIn(given, path);
    if (url !== undefined) {
      const address = readAddress(url, own, placeOf, report);
      if (address === undefined) return [];
      return checkClientOptions<RemoteServer>({ ...own, name, address }, [...given.keys()], placeOf, report);
    }
    if (words === undefined) return [];
    const [command, ...args] = words;
    // Merged, so that a server with a token of its own keeps the proxy that is set for all servers.
    const env = { ...common.env, ...own.env };
    return checkClientOptions<LocalServer>(
      { ...own, forwardHeaders: [], env, name, command, args },
      [...given.keys()],
      placeOf,
      report,
    );
  });
}
