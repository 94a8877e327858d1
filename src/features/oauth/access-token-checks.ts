import type { Logger } from 'pino';
import type { CreateTokenAuthenticator, SharedSecrets } from '../../app/features/access.ts';
import type { GatewayConfig } from '../../config/config.ts';
import type { Introspection } from '../../config/options/introspection-option.ts';
import { detach } from '../../core/util/boundary.ts';
import { possessionOptions } from './possession-options.ts';
import type { IntrospectedTokens } from './tokens/token-authenticator.ts';
import type { ClaimRules } from './tokens/token-claims.ts';

/**
 * Signature algorithms with a public key (RFC 7518, section 3.1; RFC 8037). With a shared secret, every verifier of
 * tokens could also issue them. An issuer chooses among these, so a shorter list would only refuse its tokens.
 */
const signatureAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/** Clocks that NTP sets differ by less than a second. A machine without it is rarely further off than this. */
const clockSkewMs = 30_000;

/** How long an issuer may be away. Longer, and a key that it has revoked would stay valid for too long. */
const staleKeysMs = 3_600_000;

/**
 * Creates the checks of access tokens. Their code is loaded only where an issuer is configured, which makes other
 * starts faster.
 */
export async function createTokenChecks(
  config: GatewayConfig,
  secrets: SharedSecrets,
  logger: Logger,
): Promise<CreateTokenAuthenticator> {
  const [{ createTokenAuthenticators }, { createPossessionCheck }, { IssuerKeys }, { fetchJson }, { discoverUrl }] =
    await Promise.all([
      import('./tokens/token-authenticator.ts'),
      import('./dpop/possession.ts'),
      import('./tokens/issuer-keys.ts'),
      import('./tokens/fetch-json.ts'),
      import('./tokens/issuer-discovery.ts'),
    ]);
  const { issuers, introspection, scopeClaims, scopePrefix } = config.auth.oauth;
  const keysOf = (issuer: string) => {
    const keys = new IssuerKeys({
      fetchKeys: async () => fetchJson(await discoverUrl(issuer, 'jwks_uri')),
      staleMs: staleKeysMs,
      now: Date.now,
      onFailed: (err) => logger.warn({ issuer, err }, 'cannot fetch the keys of the token issuer'),
      onRecovered: () => logger.info({ issuer }, 'fetched the keys of the token issuer again'),
    });
    // Fetched before the first token, so that the log shows a fault at once. The start does not wait for the keys.
    detach('background', keys.refresh());
    return keys;
  };
  const rules: ClaimRules = {
    clockSkewMs,
    hierarchy: new Map(Object.entries(config.auth.impliedScopes)),
    scopeClaims,
    scopePrefix,
  };
  const options = {
    ...rules,
    issuers: new Map(issuers.map((issuer) => [issuer, keysOf(issuer)])),
    algorithms: signatureAlgorithms,
    now: Date.now,
  };
  const introspected = introspection && (await createIntrospection(config, introspection, rules, logger));
  return createTokenAuthenticators(options, createPossessionCheck(possessionOptions(config, secrets)), introspected);
}

async function createIntrospection(
  { auth }: GatewayConfig,
  { url, clientId, clientSecret, issuer = auth.oauth.issuers[0] ?? '', tokens, protocol, cache }: Introspection,
  rules: ClaimRules,
  logger: Logger,
): Promise<IntrospectedTokens> {
  const [{ TokenIntrospection }, { askEndpoint }, { discoverUrl }] = await Promise.all([
    import('./tokens/introspection.ts'),
    import('./tokens/introspection-endpoint.ts'),
    import('./tokens/issuer-discovery.ts'),
  ]);
  let discovered: URL | undefined;
  const endpointUrl = async (): Promise<URL> => {
    if (url !== undefined) return new URL(url);
    discovered ??= await discoverUrl(issuer, 'introspection_endpoint');
    return discovered;
  };
  const endpoint = { url: endpointUrl, protocol, clientId, clientSecret };
  const by = new TokenIntrospection({
    ...rules,
    issuer,
    ask: (token) => askEndpoint(endpoint, token),
    cacheMs: cache,
    staleMs: staleKeysMs,
    now: Date.now,
    onFailed: (err) => logger.warn({ issuer, err }, 'cannot ask the token issuer whether tokens are valid'),
    onRecovered: () => logger.info({ issuer }, 'the token issuer answers again whether tokens are valid'),
  });
  return { by, issuer, areAll: tokens === 'all' };
}
