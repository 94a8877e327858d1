import type { CardServer } from '../../app/features/endpoints.ts';
import { hasAuthentication } from '../../config/access/authentication-config.ts';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import { type EndpointPaths, endpointPathsOf } from '../../config/endpoint-paths.ts';
import { configuredCredentials } from '../../config/options/client-credential-options.ts';
import type { OriginRules } from '../../core/auth/origin-rules.ts';
import { isLoopback } from '../../core/auth/origin-rules.ts';
import type { Routes } from '../../core/http/router.ts';
import { credentialHeaders } from '../../core/protocol/http/client-credentials.ts';
import { isLegacyRevision, legacyRevisions, modernRevisions } from '../../core/protocol/known-revisions.ts';
import { differsByClient } from '../../core/server/server.ts';
import { Introduction, type ServerInfo } from './introduction.ts';
import { addCardRedirect, addCardRoute } from './server-card.ts';

/** The place that SEP-2127 reserves for the card of the server at a Streamable HTTP URL. */
const cardSuffix = '/server-card';
const cardType = 'application/mcp-server-card+json';
const cardSchema = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json';

/** Where clients look for the card of a host's only server: in earlier drafts, and in the Python SDK. */
const hostCardPaths = ['/.well-known/mcp/server-card', '/.well-known/mcp/server-card.json'];

const catalogPath = '/.well-known/ai-catalog.json';
const catalogType = 'application/ai-catalog+json';

/** The longest texts that a card may contain, in characters. */
const [maxName, maxVersion, maxText] = [200, 255, 100];

/**
 * Adds the server cards of all endpoints, and their catalog, at paths that are free. Both follow a draft, SEP-2127, which may change
 * (docs/decisions/0125). A card says nothing to a sender that could not open a session.
 * @param served the servers; the first of two servers with the same path has it
 */
export function addCardRoutes(
  routes: Routes,
  config: GatewayConfig,
  served: readonly CardServer[],
  originRules: OriginRules,
): void {
  const { serverCards, publicUrl, tls } = config.listen;
  const isPublic = serverCards === 'public';
  const shown = served.filter(({ config: own }) => isPublic || !needsLogin(config, own));
  if (serverCards === 'off' || shown.length === 0) return;
  const baseAt = (host: string): string => publicUrl ?? `${tls.cert === undefined ? 'http' : 'https'}://${host}`;
  const add = (path: string, type: string, describe: (base: string) => object): void => {
    const document = { type, isPublic, originRules, describe: (host: string) => describe(baseAt(host)) };
    if (!routes.has(path)) addCardRoute(routes.app, path, document);
  };
  for (const server of shown)
    for (const paths of endpointPathsOf(config, server.config))
      add(paths.mcp + cardSuffix, cardType, (base) => cardOf(server, paths, base, config));
  // With several servers, the endpoint at the gateway's own path may be absent, and no other card is that of the host.
  const ownCardPath = config.listen.path + cardSuffix;
  const isOwnServed = shown.some((each) =>
    endpointPathsOf(config, each.config).some(({ mcp }) => mcp + cardSuffix === ownCardPath),
  );
  for (const path of isOwnServed ? hostCardPaths : [])
    if (!routes.has(path))
      addCardRedirect(routes.app, path, { isPublic, originRules }, (host) => baseAt(host) + ownCardPath);
  const current = shown.filter((server) => config.servers.includes(server.config));
  add(catalogPath, catalogType, (base) => ({
    specVersion: '1.0',
    entries: current.map(({ config: own }) => ({
      identifier: `urn:air:${hostNameOf(base)}:mcp:${own.name}`,
      type: cardType,
      url: base + endpointPathsOf(config, own)[0].mcp + cardSuffix,
    })),
  }));
}

const needsLogin = (config: GatewayConfig, { auth }: ServerConfig): boolean =>
  hasAuthentication(config) || auth === 'upstream';

/** Describes the server behind one endpoint. Members that nobody knows are absent, or say so where they are required. */
function cardOf(served: CardServer, { mcp, legacySse }: EndpointPaths, base: string, config: GatewayConfig): object {
  const { config: own, server } = served;
  // The server may name itself differently to each client.
  const { introduction } = server;
  const isKnown = introduction instanceof Introduction && !differsByClient(server);
  const info = isKnown ? introduction.info : undefined;
  const headers = headersOf(config, own);
  const common = headers.length === 0 ? {} : { headers };
  return {
    $schema: cardSchema,
    name: nameOf(info, base, own.name),
    version: cut(info?.version, maxVersion) ?? 'unknown',
    description: cut(info?.description, maxText) ?? `The MCP server ${own.name}`,
    title: cut(info?.title, maxText) ?? own.name,
    remotes: [
      { type: 'streamable-http', url: base + mcp, ...common, supportedProtocolVersions: revisionsOf(served, info) },
      ...(legacySse === undefined ? [] : [{ type: 'sse', url: base + legacySse.stream, ...common }]),
    ],
  };
}

const ownName = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;

/** The name that the server gives itself, if it has the form of the draft. Otherwise, its name below the host. */
function nameOf(info: ServerInfo | undefined, base: string, name: string): string {
  if (info?.name !== undefined && info.name.length <= maxName && ownName.test(info.name)) return info.name;
  const host = hostNameOf(base);
  const namespace = /^[\d.]+$/.test(host) ? host : host.split('.').reverse().join('.');
  return `${namespace}/${name}`;
}

function hostNameOf(base: string): string {
  // The name of a host in a network need not be one in a URL: `web.1`.
  const { hostname } = new URL(URL.canParse(base) ? base : 'http://localhost');
  return isLoopback(hostname) ? 'localhost' : hostname.replace(/^\[|\]$/g, '').replaceAll(':', '-');
}

/**
 * The revisions that work for sure. The gateway serves the modern era for every server, and translates all revisions for a
 * modern server. A legacy server chooses its revision itself.
 */
function revisionsOf({ era }: CardServer, info: ServerInfo | undefined): readonly string[] {
  if (era === 'modern') return [...legacyRevisions, ...modernRevisions];
  const chosen = info?.protocolVersion;
  return isLegacyRevision(chosen) ? [chosen as string, ...modernRevisions] : modernRevisions;
}

/** The headers without which the endpoint refuses a client. A proxy in front of the gateway has a login of its own. */
function headersOf(config: GatewayConfig, own: ServerConfig): object[] {
  const credentials = configuredCredentials(own);
  const usesBearer =
    own.auth === 'upstream' || (hasAuthentication(config) && config.auth.proxy.userHeader === undefined);
  const bearer = { name: 'Authorization', description: 'Bearer, and an access token or key for this server' };
  const others = credentials === undefined ? [] : credentialHeaders(credentials).map((name) => ({ name }));
  return [...(usesBearer ? [bearer] : []), ...others].map((each) => ({ ...each, isRequired: true, isSecret: true }));
}

/** A text of a server, not longer than a card may contain. A cut does not divide a character. */
const cut = (text: string | undefined, length: number): string | undefined =>
  text === undefined ? undefined : [...text.slice(0, 2 * length)].slice(0, length).join('');
