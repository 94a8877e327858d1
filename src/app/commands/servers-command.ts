import { mkdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type Configuration,
  type ConfigurationSources,
  type GatewayConfig,
  readConfiguration,
  type ServerConfig,
} from '../../config/config.ts';
import { endpointPathsOf } from '../../config/endpoint-paths.ts';
import { renderIssue } from '../../config/issues.ts';
import type { ServerListRequest } from '../../config/servers/server-list-request.ts';
import { serversFolder } from '../../config/sources/config-file.ts';
import { replaceFile } from '../../core/util/replace-file.ts';
import { misconfigured, type Outcome, printed, refused } from './outcome.ts';

/** The package of a server with its version, for people; undefined for a server that is none. */
export type PackageOf = (server: ServerConfig, config: GatewayConfig) => string | undefined;

/** Reads files and folders, as the configuration does. */
type Sources = Pick<Required<ConfigurationSources>, 'env' | 'readFile' | 'listFolder' | 'findCommand'>;

/**
 * Adds, removes or lists servers of a configuration file (`mcp-gangway add`). A server that is added has a file of its own
 * in `servers.d`, beside the configuration file. The whole configuration is checked first, as it would be afterwards; a
 * fault changes nothing. A running gateway sees the changed folder.
 */
export function changeServers(
  request: ServerListRequest,
  sources: Sources,
  packageOf: PackageOf = () => undefined,
): Outcome {
  if (request.kind === 'add') return add(request, sources);
  return request.kind === 'remove' ? remove(request, sources) : list(request, sources, packageOf);
}

/** What to do if a file cannot be written. */
const asOwner = 'Run the command as the owner of the folder, and check that the folder is not mounted read-only.';

const placeOf = ({ file, name }: { readonly file: string; readonly name: string }): string =>
  join(dirname(file), serversFolder, `${name}.json`);

function add(request: Extract<ServerListRequest, { kind: 'add' }>, sources: Sources): Outcome {
  const { file, name, entry, replaces } = request;
  const place = placeOf(request);
  const isNew = !exists(file);
  if (exists(place) && !replaces) return refused(`${place} exists. Choose another name, or replace it with --replace.`);
  const text = `${JSON.stringify({ mcpServers: { [name]: entry } }, undefined, 2)}\n`;
  const changed: Sources = {
    ...sources,
    readFile: (path) => (path === place ? text : path === file && isNew ? '{}' : sources.readFile(path)),
    listFolder: (path) =>
      path === dirname(place) ? [...new Set([...filesIn(path, sources), `${name}.json`])] : sources.listFolder(path),
  };
  if (!exists(dirname(file))) return refused(`The folder of ${file} does not exist. Create it, or correct the path.`);
  const after = read(file, changed);
  if (!after.ok) return explain(after, `The server was not added. With it, the configuration would be invalid.`);
  try {
    if (!exists(dirname(place))) mkdirSync(dirname(place));
    if (isNew) replaceFile(file, '{}\n', 0o644);
    // Its variables, headers and URL can be secrets.
    replaceFile(place, text, 0o600);
  } catch (cause) {
    return refused(`The server was not added: ${(cause as Error).message}. ${asOwner}`);
  }
  const made = isNew ? `Created ${file}. ` : '';
  const told = `${made}Added ${name} in ${place}. A gateway that runs with --config ${file} serves it within seconds.\n`;
  return printed(told + pathNote(after));
}

/** A second server changes the path of the first one, which its clients have to know. */
function pathNote(after: Configuration): string {
  if (!after.ok || !('config' in after) || after.config.servers.length !== 2) return '';
  const { servers, listen } = after.config;
  const paths = servers.map((server) => endpointPathsOf(after.config, server)[0].mcp).join(' and ');
  return `The endpoints are ${paths} now. ${listen.path} alone works until the gateway starts again.\n`;
}

function remove(request: Extract<ServerListRequest, { kind: 'remove' }>, sources: Sources): Outcome {
  const { file, name } = request;
  const place = placeOf(request);
  const before = read(file, sources);
  if (!exists(place)) {
    const isElsewhere = before.ok && 'config' in before && before.config.servers.some((each) => each.name === name);
    return refused(
      isElsewhere
        ? `${name} was not added with mcp-gangway add. Remove its entry from ${file}, or from the file that ${file} includes.`
        : `${file} has no server with the name ${name}. mcp-gangway list --config ${file} shows its servers.`,
    );
  }
  if (before.ok && 'config' in before && before.config.servers.length === 1)
    return refused(`${name} is the only server of ${file}, and a gateway needs one. Add another server first.`);
  const after = read(file, {
    ...sources,
    listFolder: (path) =>
      path === dirname(place)
        ? filesIn(path, sources).filter((each) => each !== `${name}.json`)
        : sources.listFolder(path),
  });
  // What was invalid before may be what is removed.
  if (before.ok && !after.ok)
    return explain(after, 'The server was not removed. Without it, the configuration would be invalid.');
  try {
    rmSync(place);
  } catch (cause) {
    return refused(`The server was not removed: ${(cause as Error).message}. ${asOwner}`);
  }
  return printed(`Removed ${name}. A gateway that runs with --config ${file} ends it within seconds.\n`);
}

function list(
  { file, isJson }: Extract<ServerListRequest, { kind: 'list' }>,
  sources: Sources,
  packageOf: PackageOf,
): Outcome {
  const found = read(file, sources);
  if (!found.ok || !('config' in found)) return explain(found, 'The configuration is invalid.');
  const { config } = found;
  const servers = config.servers.map((server) => {
    const { name, address } = server;
    const place = placeOf({ file, name });
    const added = exists(place) ? { file: place } : {};
    const itsPackage = packageOf(server, config);
    const from = itsPackage === undefined ? {} : { package: itsPackage };
    if (address === undefined) return { name, command: [server.command, ...server.args], ...from, ...added };
    if (address.transport === 'view') return { name, servers: address.members.map((member) => member.name), ...added };
    // The rest of a URL can be a secret.
    if ('url' in address) return { name, url: `${address.url.origin}${address.url.pathname}`, ...added };
    return { name, transport: address.transport, ...added };
  });
  if (isJson) return printed(`${JSON.stringify(servers, undefined, 2)}\n`);
  const rows = servers.map((server) => [server.name, howOf(server), 'file' in server ? server.file : file] as const);
  const width = (column: 0 | 1): number => Math.max(...rows.map((row) => row[column].length));
  const text = rows.map(([name, how, place]) => `${name.padEnd(width(0))}  ${how.padEnd(width(1))}  ${place}\n`);
  return printed(text.join(''));
}

/** Longer commands are cut in the list. */
const maxShown = 60;

/** How a server is reached, in one line. */
function howOf(server: object): string {
  const { command, url, servers, transport, package: itsPackage } = server as Record<string, unknown>;
  const version = typeof itsPackage === 'string' ? `  [${itsPackage}]` : '';
  const text = Array.isArray(command)
    ? command.join(' ')
    : Array.isArray(servers)
      ? `view of ${servers.join(', ')}`
      : String(url ?? transport);
  return (text.length > maxShown ? `${text.slice(0, maxShown - 1)}…` : text) + version;
}

const read = (file: string, sources: Sources): Configuration =>
  readConfiguration({ ...sources, argv: ['config', 'print', '--config', file] });

const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

/** The names of the files in a folder; none if there is no such folder. */
function filesIn(path: string, { listFolder }: Sources): readonly string[] {
  return exists(path) ? (listFolder(path) ?? []) : [];
}

function explain(found: Configuration, what: string): Outcome {
  const faults = found.ok ? [] : found.faults;
  return { stderr: `${faults.map((fault) => `${renderIssue(fault)}\n`).join('')}${what}\n`, exitCode: misconfigured };
}
