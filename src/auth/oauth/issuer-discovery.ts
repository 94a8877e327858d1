import { isLoopback } from '../origin-rules.ts';
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

/**
 * Discovers the URL of an authorization server's keys from its metadata. Rejects if there is no usable URL. Metadata in
 * another issuer's name is not trusted (RFC 8414, section 3.3). Keys must come over TLS unless the issuer is on this
 * machine.
 */
export async function discoverKeysUrl(issuer: string): Promise<URL> {
  const failures: unknown[] = [];
  for (const url of metadataUrlsOf(issuer)) {
    try {
      return readKeysUrl(await fetchJson(url), issuer, url);
    } catch (cause) {
      failures.push(cause);
      if (!(cause instanceof UnusableDocument && cause.isMissing)) break;
    }
  }
  throw new Error('the metadata of the authorization server is not usable', { cause: failures.at(-1) });
}

function readKeysUrl(metadata: Readonly<Record<string, unknown>>, issuer: string, { href }: URL): URL {
  const { issuer: named, jwks_uri: keys } = metadata;
  if (named !== issuer) throw new UnusableDocument(`${href} names an issuer other than the configured one`);
  if (typeof keys !== 'string' || !URL.canParse(keys)) throw new UnusableDocument(`${href} has no jwks_uri`);
  const url = new URL(keys);
  const isLocal = url.protocol === 'http:' && isLoopback(url.hostname) && isLoopback(new URL(issuer).hostname);
  if (url.protocol !== 'https:' && !isLocal) throw new UnusableDocument(`${href} has a jwks_uri without https`);
  return url;
}
