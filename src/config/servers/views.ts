import { parseAffinity } from '../../core/protocol/affinity.ts';
import { matchesGlob } from '../../core/util/glob.ts';
import { nearestName } from '../../core/util/text/nearest-name.ts';
import type { ReportIssue } from '../issues.ts';
import { usesClientCredentials } from '../options/client-credential-options.ts';
import { exchangesTokens } from '../options/identity-options.ts';
import { type ServerOptions, viewOptions } from '../options/options.ts';
import { policySettings } from '../options/policy-option.ts';
import type { ServerAddress, ViewReceiver } from '../server-url.ts';
import type { ViewEntry } from '../sources/config-file.ts';
import { resolveOptions } from '../sources/given-values.ts';
import type { ValuesOf } from '../tree/branch.ts';
import type { RemoteServer, ServerConfig } from './configured-servers.ts';
import { canKeepProcesses } from './process-sharing.ts';
import { serverNameFault } from './server-name.ts';
import { findCollision, type ViewMember } from './view-names.ts';

/**
 * Reads the views of the file. A view is an endpoint that combines several servers (docs/decisions/0101). Each is added
 * to the servers, as a server of another kind.
 * @param common the options for every server
 */
export const readViews = (
  views: readonly ViewEntry[],
  servers: readonly ServerConfig[],
  path: string,
  common: ServerOptions,
  report: ReportIssue,
): RemoteServer[] =>
  views.map(({ name, path: place, given }) => {
    const fault = serverNameFault(name, path);
    if (fault !== undefined) report(place, fault);
    if (servers.some((server) => server.name === name))
      report(place, 'is also the name of a server; choose another name');
    const listed = given.get('servers')?.value ?? [];
    if (Array.isArray(listed) && listed.length === 0)
      report(place, 'must name at least one server, such as { "servers": ["a", "b"] }');
    return readView(name, resolveOptions(viewOptions, [given], report), servers, common, place, report);
  });

/** How many of the known servers a message names. */
const maxNamed = 10;

/** The servers that exist are named, and the one that was probably meant. What the file has instead may be a secret (P12). */
function describeUnknown(unknown: string, servers: readonly ServerConfig[]): string {
  const names = servers.map(({ name }) => name);
  const meant = nearestName(unknown, names);
  if (meant !== undefined) return `names a server that does not exist; did you mean ${meant}?`;
  const more = names.length > maxNamed ? ', …' : '';
  return `names a server that does not exist; the servers are ${names.slice(0, maxNamed).join(', ')}${more}`;
}

function readView(
  name: string,
  view: ValuesOf<typeof viewOptions>,
  servers: readonly ServerConfig[],
  common: ServerOptions,
  place: string,
  report: ReportIssue,
): RemoteServer {
  const { servers: wanted, separator, unprefixed, timeoutMs, searchTools, ...filters } = view;
  const unknown = wanted.find((pattern) => !servers.some((server) => matchesGlob(server.name, pattern)));
  if (unknown !== undefined) report(place, describeUnknown(unknown, servers));
  const chosen = servers.filter((server) => wanted.some((pattern) => matchesGlob(server.name, pattern)));
  if (unprefixed !== undefined && !chosen.some((server) => server.name === unprefixed))
    report(place, 'has an unprefixed server that is not one of its servers');
  const members: readonly ViewMember[] = chosen.map((server) => ({
    name: server.name,
    prefix: server.name === unprefixed ? '' : `${server.name}${separator}`,
  }));
  if (findCollision(members) !== undefined)
    report(place, 'has two servers whose names could be confused; choose another separator, or other names');
  if (chosen.some(({ auth }) => auth === 'upstream'))
    report(
      place,
      (nameOf) => `has a server with ${nameOf('auth')} upstream, at which each client logs in; leave that server out`,
    );
  const keepers = chosen.filter(canKeepProcesses);
  const affinity = findAffinity(chosen, keepers, place, report);
  const passed = passedTo(chosen, searchTools);
  // What each user gives the servers must not be mixed.
  const share = passed.receivers !== undefined && common.share === 'all' ? 'user' : common.share;
  return {
    ...common,
    share,
    scopes: scopesOf(chosen, members, filters.tools),
    ...filters,
    affinity,
    credentials: {},
    identity: undefined,
    forwardHeaders: [],
    era: 'legacy',
    warm: 0,
    probes: { everyMs: 0, required: false },
    name,
    address: { transport: 'view', members, timeoutMs, processes: keepers.length, searchTools, ...passed },
  };
}

/** What the servers get of each client, and which headers their policies see; nothing where there is none. */
function passedTo(
  servers: readonly ServerConfig[],
  searchTools: boolean,
): Pick<Extract<ServerAddress, { readonly transport: 'view' }>, 'shown' | 'receivers' | 'cutsResults'> {
  const policies = servers.flatMap(({ policy }) => policySettings(policy) ?? []);
  const cuts = servers.some(({ limits }) => limits.resultBytes !== undefined);
  const receivers = servers.filter(usesClientCredentials).map((server) => ({
    name: server.name,
    forwardHeaders: server.forwardHeaders,
    credentials: server.credentials,
    isLocal: server.address === undefined,
    exchangesTokens: exchangesTokens(server),
  }));
  return {
    ...(cuts && { cutsResults: true as const }),
    ...((cuts || searchTools || policies.length > 0) && {
      shown: [...new Set(policies.flatMap(({ showHeaders }) => showHeaders))],
    }),
    ...(receivers.length > 0 && { receivers }),
  };
}

/**
 * The affinity of a view, which is that of its servers. A session of a view is in one state at all servers.
 * @param keepers the servers that can have an affinity
 */
function findAffinity(
  servers: readonly ServerConfig[],
  keepers: readonly ServerConfig[],
  place: string,
  report: ReportIssue,
): string | undefined {
  const [affinity, ...others] = new Set(keepers.map((server) => server.affinity));
  if (others.length > 0)
    report(
      place,
      (nameOf) => `has servers with different values of ${nameOf('affinity')}; give all of them the same value`,
    );
  const moves = affinity !== undefined && parseAffinity(affinity)?.readsMeta === true;
  if (moves && keepers.length < servers.length)
    report(
      place,
      (nameOf) =>
        `has a server that does not support ${nameOf('affinity')}, while the other servers have an affinity with {meta:…}; leave that server out`,
    );
  return affinity;
}

/**
 * A client of a view needs the scopes of all its servers, and those of the tools under their names in the view. A tool
 * that the view renames needs the scopes of its former name.
 */
function scopesOf(
  servers: readonly ServerConfig[],
  members: readonly ViewMember[],
  changes: ServerOptions['tools'],
): ServerOptions['scopes'] {
  const prefixed = servers.flatMap((server, index) =>
    Object.entries(server.scopes.tools).map(([tool, scopes]) => [`${members[index]?.prefix}${tool}`, scopes] as const),
  );
  // A pattern of the server without a prefix can be that of a prefixed tool: such a tool needs the scopes of both.
  const toolScopes = new Map<string, readonly string[]>();
  for (const [pattern, scopes] of prefixed)
    toolScopes.set(pattern, [...new Set([...(toolScopes.get(pattern) ?? []), ...scopes])]);
  for (const [own, { name = own }] of Object.entries(changes)) {
    const needed = prefixed.flatMap(([pattern, scopes]) => (matchesGlob(own, pattern) ? scopes : []));
    if (needed.length > 0) toolScopes.set(name, [...new Set([...(toolScopes.get(name) ?? []), ...needed])]);
  }
  return {
    required: [...new Set(servers.flatMap((server) => server.scopes.required))],
    tools: Object.fromEntries(toolScopes),
  };
}

/** True for a view with a server that cuts long results. */
export const cutsResults = ({ address }: ServerConfig): boolean =>
  address?.transport === 'view' && address.cutsResults === true;

/** The servers of a view that get something of each client; undefined if none does, and for a server. */
export const receiversIn = ({ address }: ServerConfig): readonly ViewReceiver[] | undefined =>
  address?.transport === 'view' ? address.receivers : undefined;

/** True for a view. */
export const isView = ({ address }: ServerConfig): boolean => address?.transport === 'view';
