import { isLoopback } from '../../../core/auth/origin-rules.ts';
import { fetchJson, UnusableDocument } from './fetch-json.ts';

/** RFC 8414, section 3.1, and OpenID Connect Discovery 1.0, section 4. */
const [oauthSuffix, openidSuffix] = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];

/**
 * Lists the possible metadata URLs of an authorization server, in the order of the attempts (2026-07-28,
 * basic/authorization/authorization-server-discovery, "Authorization Server Metadata Discovery").
 */
export function metadataUrlsOf(issuer: string): readonly URL[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const paths =
    path === '' ? [oauthSuffix, openidSuffix] : [oauthSuffix + path, openidSuffix + path, path + openidSuffix];
  return paths.map((metadataPath) => new URL(origin + metadataPath));
}

/** The members of the metadata that the gateway uses (RFC 8414, section 2). */
type EndpointName = 'jwks_uri' | 'introspection_endpoint';

/**
 * Discovers a URL of an authorization server from its metadata. Rejects if there is no usable URL. Metadata in another
 * issuer's name is not trusted (RFC 8414, section 3.3). The URL must have TLS unless the issuer is on this machine, and
 * must not lead into this machine or to a metadata service unless the issuer is there.
 * @param read fetches the metadata
 */
export async function discoverUrl(issuer: string, name: EndpointName, read = fetchJson): Promise<URL> {
  const failures: unknown[] = [];
  for (const url of metadataUrlsOf(issuer)) {
    try {
      return readUrl(await read(url), name, issuer, url);
    } catch (cause) {
      failures.push(cause);
      if (!(cause instanceof UnusableDocument && cause.isMissing)) break;
    }
  }
  throw new Error('the metadata of the authorization server is not usable', { cause: failures.at(-1) });
}

function readUrl(metadata: Readonly<Record<string, unknown>>, name: EndpointName, issuer: string, { href }: URL): URL {
  const { issuer: named, [name]: text } = metadata;
  if (named !== issuer) throw new UnusableDocument(`${href} names an issuer other than the configured one`);
  if (typeof text !== 'string' || !URL.canParse(text)) throw new UnusableDocument(`${href} has no ${name}`);
  const url = new URL(text);
  const isIssuerLocal = isLoopback(new URL(issuer).hostname);
  const isLocal = isLoopback(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal && isIssuerLocal))
    throw new UnusableDocument(`${href} has a ${name} without https`);
  if ((isLocal && !isIssuerLocal) || isLinkLocal(url.hostname))
    throw new UnusableDocument(`${href} has a ${name} at an address that only this machine can reach`);
  return url;
}

/** True for addresses of metadata services of clouds, which a hostile document could name (SSRF). */
const isLinkLocal = (host: string): boolean => /^(?:169\.254\.|\[fe[89ab][0-9a-f]:|\[::ffff:a9fe:)/i.test(host);
