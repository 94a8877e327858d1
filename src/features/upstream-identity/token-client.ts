import { importJWK } from 'jose';
import * as oauth from 'openid-client';
import type { UpstreamIdentity } from '../../config/options/identity-options.ts';
import { readSigningKey } from '../../config/options/signing-key.ts';
import { NoUpstreamToken, type TokenSubject } from '../../core/backend/upstream-tokens.ts';
import { createServiceClient, NoServiceAnswer } from '../../core/protocol/http/service-client.ts';
import { errorCodeOf } from '../../core/util/text/error-code.ts';
import type { IssuedToken, RequestToken } from './held-tokens.ts';

/** How long an authorization server may take for one answer. */
const timeoutMs = 10_000;
/** The longest answer: a token is far smaller. The connections are those to the authorization server of one server. */
const limits = { maxBytes: 64 * 1024, maxConnections: 16 };

/** How long the metadata of an issuer are used, in milliseconds. */
const metadataMs = 60 * 60_000;

const tokenType = 'urn:ietf:params:oauth:token-type';
const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange';
/** The kinds of tokens that a server can get in `Authorization: Bearer` (RFC 8693, section 3). */
const usableTypes: readonly unknown[] = [undefined, `${tokenType}:access_token`, `${tokenType}:jwt`];
/** A longer token does not fit into the headers that servers accept (P8). */
const maxTokenLength = 8 * 1024;

/** An unusable answer of the authorization server; the text is for the operator. */
class UnusableAnswer extends Error {}

/**
 * Creates the function that requests tokens from the configured authorization server (RFC 6749, section 4.4; RFC 7523;
 * RFC 8693). Whatever the authorization server answers, the function resolves with a usable token, or rejects with
 * `NoUpstreamToken`, whose text quotes nothing of the answer except an OAuth error code.
 */
export function createTokenRequests(
  identity: UpstreamIdentity,
  limitMs = timeoutMs,
  now: () => number = () => performance.now(),
): RequestToken {
  const { grant, issuer, tokenUrl, scope, audience, resource } = identity;
  const where = new URL(tokenUrl ?? issuer ?? '').origin;
  const ask = createServiceClient({ ...limits, timeoutMs: limitMs });
  const fetch: oauth.CustomFetch = async (url, { method, headers, body }) => {
    const text = body === undefined || body === null ? undefined : String(body);
    const answer = await ask(url, { method: method as 'GET' | 'POST', headers, body: text });
    return new Response(new Uint8Array(answer.body), {
      status: answer.status,
      headers: { 'content-type': answer.type },
    });
  };
  let known: { readonly configuration: oauth.Configuration; readonly until: number } | undefined;

  const configure = async (): Promise<oauth.Configuration> => {
    if (known !== undefined && now() < known.until) return known.configuration;
    const metadata = { client_id: identity.clientId };
    const authentication = await clientAuthenticationOf(identity);
    // Plain HTTP is possible only on this machine, as checked with the configuration.
    const isPlain = (tokenUrl ?? issuer ?? '').startsWith('http:');
    const execute = isPlain ? [oauth.allowInsecureRequests] : [];
    const options = { [oauth.customFetch]: fetch, execute };
    let configuration: oauth.Configuration;
    if (tokenUrl === undefined) {
      configuration = await discover(new URL(issuer ?? ''), identity.clientId, metadata, authentication, options);
    } else {
      const server = { issuer: issuer ?? tokenUrl, token_endpoint: tokenUrl };
      configuration = new oauth.Configuration(server, identity.clientId, metadata, authentication);
      configuration[oauth.customFetch] = options[oauth.customFetch];
      for (const extend of execute) extend(configuration);
    }
    known = { configuration, until: now() + metadataMs };
    return configuration;
  };

  const parameters = (subject: TokenSubject | undefined): Record<string, string> => {
    const type = subject && `${tokenType}:access_token`;
    const exchanged = { subject_token: subject?.token, subject_token_type: type, requested_token_type: type };
    const all = Object.entries({ scope, audience, resource }).concat(Object.entries(exchanged));
    return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
  };

  return async (subject) => {
    if (grant === 'token_exchange' && subject === undefined) {
      const detail = 'The server needs a token of its user, and no user is connected.';
      throw new NoUpstreamToken('upstream_token_refused', detail);
    }
    try {
      const configuration = await configure();
      const response =
        grant === 'token_exchange'
          ? await oauth.genericGrantRequest(configuration, exchangeGrant, parameters(subject))
          : await oauth.clientCredentialsGrant(configuration, parameters(undefined));
      return usableToken(response, subject);
    } catch (cause) {
      throw explain(cause, where);
    }
  };
}

/** Finds the token endpoint in the metadata of the issuer, which must name the issuer itself (RFC 8414, section 3.3). */
async function discover(issuer: URL, clientId: string, ...rest: DiscoveryOptions): Promise<oauth.Configuration> {
  const [metadata, authentication, options] = rest;
  try {
    return await oauth.discovery(issuer, clientId, metadata, authentication, options);
  } catch (cause) {
    if (statusOf(cause) !== 404) throw cause;
    return oauth.discovery(issuer, clientId, metadata, authentication, { ...options, algorithm: 'oauth2' });
  }
}

type DiscoveryOptions = Parameters<typeof oauth.discovery> extends [URL, string, ...infer Rest] ? Rest : never;

async function clientAuthenticationOf({
  clientSecret,
  secretIn,
  privateKey,
  keyId,
}: UpstreamIdentity): Promise<oauth.ClientAuth> {
  if (privateKey !== undefined) {
    const { jwk, algorithm } = readSigningKey(privateKey);
    const key = (await importJWK(jwk, algorithm)) as oauth.CryptoKey;
    const kid = keyId ?? jwk.kid;
    return oauth.PrivateKeyJwt(kid === undefined ? key : { key, kid });
  }
  if (clientSecret === undefined) return oauth.None();
  return secretIn === 'body' ? oauth.ClientSecretPost(clientSecret) : oauth.ClientSecretBasic(clientSecret);
}

function usableToken(response: oauth.TokenEndpointResponse, subject: TokenSubject | undefined): IssuedToken {
  const { access_token: token, token_type: type, expires_in: lifetimeS, issued_token_type: issued } = response;
  if (type !== 'bearer') throw new UnusableAnswer('issued a token that is not a bearer token');
  if (!usableTypes.includes(issued)) throw new UnusableAnswer('issued a token that is not an access token');
  if (token.length > maxTokenLength || !/^[\x21-\x7e]+$/.test(token))
    throw new UnusableAnswer('issued a token that does not fit into a header');
  // The server could use it at the gateway in the name of the user.
  if (token === subject?.token) throw new UnusableAnswer("returned the user's own token instead of exchanging it");
  if (lifetimeS !== undefined && !(lifetimeS >= 1)) throw new UnusableAnswer('issued a token that has already expired');
  return { token, lifetimeMs: lifetimeS === undefined ? undefined : lifetimeS * 1_000 };
}

/** Turns any failure into the reason for the client, and a sentence for the operator. */
function explain(cause: unknown, where: string): NoUpstreamToken {
  const unavailable = (what: string): NoUpstreamToken =>
    new NoUpstreamToken('upstream_token_unavailable', `The authorization server at ${where} ${what}.`);
  if (cause instanceof UnusableAnswer) return unavailable(cause.message);
  const chain = causesOf(cause);
  const unreadable = chain.find((each) => each instanceof NoServiceAnswer);
  if (unreadable !== undefined) return unavailable(unreadable.message);
  const status = statusOf(cause);
  if (cause instanceof oauth.ResponseBodyError && cause.status < 500 && cause.status !== 429) {
    const code = /^[a-z_]{1,64}$/.test(cause.error) ? cause.error : 'unknown error';
    const advice = adviceFor.get(code) ?? 'Check the identity of the server in the configuration';
    const detail = `The authorization server at ${where} refused a token (${code}). ${advice}.`;
    return new NoUpstreamToken('upstream_token_refused', detail);
  }
  if (status !== undefined && status !== 200) return unavailable(`answered with status ${status}`);
  const code = chain.map(errorCodeOf).find((each) => /^(?:E[A-Z]|UND_ERR|CERT|DEPTH|SELF|UNABLE)/.test(each));
  if (code !== undefined) return unavailable(`cannot be reached (${code})`);
  return unavailable('gave an answer that the gateway cannot use');
}

const adviceFor: ReadonlyMap<string, string> = new Map([
  ['invalid_client', 'Check clientId, and the secret or the key'],
  ['unauthorized_client', 'Allow this client to use the grant at the authorization server'],
  [
    'unsupported_grant_type',
    'The authorization server does not support the grant, or does not allow it for this client',
  ],
  ['invalid_grant', "The authorization server does not accept the user's token. Check that it may be exchanged"],
  ['invalid_scope', 'Check scope'],
  ['invalid_target', 'Check audience and resource'],
]);

/** The HTTP status in an error of the OAuth library. */
function statusOf(cause: unknown): number | undefined {
  for (const each of causesOf(cause)) {
    if (each instanceof Response) return each.status;
    if (each instanceof oauth.ResponseBodyError || each instanceof oauth.WWWAuthenticateChallengeError)
      return each.status;
  }
  return undefined;
}

/** An error and the causes below it, at most five. */
function causesOf(cause: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let each = cause; each !== undefined && each !== null && chain.length < 5; ) {
    chain.push(each);
    each = each instanceof Error ? each.cause : undefined;
  }
  return chain;
}
