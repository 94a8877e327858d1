import type { JWTPayload } from 'jose';
import { fetchAnswer, readObject, UnusableDocument } from './fetch-json.ts';

/** The answer of an endpoint about one token. */
export interface TokenAnswer {
  readonly isActive: boolean;
  /** What the endpoint says about an active token, in the names of RFC 7662, section 2.2. */
  readonly claims: JWTPayload;
}

/** An endpoint that says whether a token is valid. */
export interface IntrospectionEndpoint {
  /** Resolves with the URL, which may have to be discovered. */
  readonly url: () => Promise<URL>;
  /** `rfc7662` is the standard; `tokeninfo` is the endpoint of Google. */
  readonly protocol: 'rfc7662' | 'tokeninfo';
  /** The name and the password of the gateway at the endpoint. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
}

/** Asks an endpoint about a token. Rejects with `UnusableDocument`, or with the error of the connection. */
export const askEndpoint = async (endpoint: IntrospectionEndpoint, token: string): Promise<TokenAnswer> =>
  endpoint.protocol === 'tokeninfo' ? askTokenInfo(endpoint, token) : askIntrospection(endpoint, token);

/** Asks as RFC 7662, section 2.1, prescribes, with HTTP Basic authentication (RFC 6749, section 2.3.1). */
async function askIntrospection(endpoint: IntrospectionEndpoint, token: string): Promise<TokenAnswer> {
  const { clientId, clientSecret = '' } = endpoint;
  const url = await endpoint.url();
  const credentials = `${formEncoded(clientId ?? '')}:${formEncoded(clientSecret)}`;
  const answer = await fetchAnswer(url, {
    method: 'POST',
    body: String(new URLSearchParams({ token, token_type_hint: 'access_token' })),
    headers: {
      'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
      ...(clientId !== undefined && { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }),
    },
  });
  if (answer.status === 401 || answer.status === 403)
    throw new UnusableDocument(`${url.href} does not accept the gateway's client id and secret (${answer.status})`);
  if (answer.status !== 200) throw new UnusableDocument(`${url.href} answered with ${answer.status}`);
  const { active, ...claims } = readObject(answer.text, url);
  if (typeof active !== 'boolean') throw new UnusableDocument(`${url.href} does not say whether the token is active`);
  return { isActive: active, claims: readClaims(claims, url) };
}

/**
 * Asks Google, which has no endpoint of RFC 7662. The endpoint answers 400 for an invalid token, and its numbers are
 * texts.
 */
async function askTokenInfo(endpoint: IntrospectionEndpoint, token: string): Promise<TokenAnswer> {
  const url = await endpoint.url();
  // In the URL or in the body as `access_token`, the token could reach the logs of a proxy.
  const answer = await fetchAnswer(url, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
  if (answer.status === 400) return { isActive: false, claims: {} };
  if (answer.status !== 200) throw new UnusableDocument(`${url.href} answered with ${answer.status}`);
  const { exp, ...claims } = readObject(answer.text, url);
  const expiry = typeof exp === 'string' && /^\d{1,12}$/.test(exp) ? Number(exp) : exp;
  return { isActive: true, claims: readClaims({ ...claims, ...(expiry !== undefined && { exp: expiry }) }, url) };
}

/** Checks the times. The readers of all other claims accept any value. */
function readClaims(claims: Readonly<Record<string, unknown>>, { href }: URL): JWTPayload {
  const { exp } = claims;
  if (exp !== undefined && !(typeof exp === 'number' && Number.isFinite(exp)))
    throw new UnusableDocument(`${href} names an expiry that is not a number`);
  return claims;
}

/** Encodes a text as a form does, which `Basic` requires for client ids and secrets. */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1);
