import * as z from 'zod/mini';
import { isLoopback } from '../../core/auth/origin-rules.ts';
import { members, object } from './option-kinds.ts';
import { readSigningKey } from './signing-key.ts';

/** How the gateway gets the access tokens for a server; see docs/recipes/upstream-identity.md. */
export interface UpstreamIdentity {
  /**
   * `client_credentials`: one token for the gateway itself (RFC 6749, section 4.4). `token_exchange`: one for each user,
   * in exchange for the user's token (RFC 8693).
   */
  readonly grant: 'client_credentials' | 'token_exchange';
  /** The authorization server, whose metadata name the token endpoint. */
  readonly issuer?: string | undefined;
  /** The token endpoint, where the authorization server has no metadata. */
  readonly tokenUrl?: string | undefined;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  /** Where the secret is sent; in the header by default. */
  readonly secretIn?: 'header' | 'body' | undefined;
  /** PEM or JWK: the gateway proves its identity by signatures instead of a secret (RFC 7523). */
  readonly privateKey?: string | undefined;
  /** The name of the key at the authorization server. */
  readonly keyId?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  /** RFC 8707. */
  readonly resource?: string | undefined;
}

const text = z
  .string({ error: 'must have only strings as values' })
  .check(
    z.regex(/^[\x20-\x7e\r\n\t]+$/, { error: 'must have values that are not empty and have only ASCII characters' }),
  );

const url = z.string({ error: 'needs URLs in issuer and tokenUrl' }).check(
  z.superRefine((value, context) => {
    const report = (message: string) => context.addIssue({ code: 'custom', message });
    const read = URL.canParse(value) ? new URL(value) : undefined;
    if (read === undefined || !['http:', 'https:'].includes(read.protocol))
      return report('needs https:// URLs in issuer and tokenUrl');
    if (read.username !== '' || read.password !== '')
      report('must have no user name or password in issuer and tokenUrl; use clientId and clientSecret');
    if (/[#\s\\]/.test(value)) report('must have no fragment or spaces in issuer and tokenUrl');
    if (read.protocol === 'http:' && !isLoopback(read.hostname))
      report('must use https in issuer and tokenUrl, except on this machine: requests for tokens contain secrets');
  }),
);

const grants = ['client_credentials', 'token_exchange'] as const;

const identity = members(
  {
    grant: z.enum(grants, { error: 'needs grant: client_credentials or token_exchange' }),
    issuer: z.optional(url),
    tokenUrl: z.optional(url),
    clientId: z
      .string({ error: 'needs clientId, under which the gateway is registered with the authorization server' })
      .check(z.minLength(1, { error: 'has an empty clientId' })),
    clientSecret: z.optional(text),
    secretIn: z.optional(z.enum(['header', 'body'], { error: 'has a secretIn other than header or body' })),
    privateKey: z.optional(text),
    keyId: z.optional(text),
    scope: z.optional(text),
    audience: z.optional(text),
    resource: z.optional(text),
  },
  'must be an object with grant, clientId, issuer or tokenUrl, and clientSecret or privateKey; also keyId, secretIn, scope, audience and resource',
).check(
  z.superRefine((value, context) => {
    const report = (message: string) => context.addIssue({ code: 'custom', message });
    const { issuer, tokenUrl, clientSecret, privateKey, secretIn, keyId } = value;
    if (issuer === undefined && tokenUrl === undefined)
      report('needs issuer, the URL of the authorization server, or tokenUrl, its token endpoint');
    if ((clientSecret === undefined) === (privateKey === undefined))
      report('needs either clientSecret or privateKey, so that only the gateway can get tokens');
    if (secretIn !== undefined && clientSecret === undefined) report('has secretIn without clientSecret; remove it');
    if (keyId !== undefined && privateKey === undefined) report('has keyId without privateKey; remove it');
    if (privateKey !== undefined && !isSigningKey(privateKey))
      report('has a privateKey that is not an RSA, EC or Ed25519 key in PEM or JWK form, without a password');
  }),
) as z.ZodMiniType<UpstreamIdentity>;

function isSigningKey(key: string): boolean {
  try {
    readSigningKey(key);
    return true;
  } catch {
    return false;
  }
}

/** The option with which the gateway identifies itself at a server. */
export const identityOption = object(
  z.optional(identity),
  'How the gateway gets access tokens for a server at a URL. A JSON object with grant (client_credentials for the gateway itself, token_exchange for each user), issuer or tokenUrl, clientId, clientSecret or privateKey, and optionally keyId, secretIn, scope, audience and resource.',
  { secrets: 'members' },
);

/** The members of the option that are secrets. */
const secretMembers = ['clientSecret', 'privateKey'];

/** True for the value of an option that has a secret itself, and not a reference to a file. */
export const hasLiteralSecret = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(value).some(
    ([key, member]) => secretMembers.includes(key) && !/^\$\{file:[^{}]*\}$/.test(String(member)),
  );

/** True for a server that gets a token of each user in exchange for the user's token. */
export const exchangesTokens = ({
  identity: configured,
}: {
  readonly identity: UpstreamIdentity | undefined;
}): boolean => configured?.grant === 'token_exchange';
