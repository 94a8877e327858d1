import * as z from 'zod/mini';
import { isLoopback } from '../../auth/origin-rules.ts';
import { minute, second } from '../units.ts';
import { integer, list, type Option, text } from './option-kinds.ts';

/**
 * Signature algorithms with a public key (RFC 7518, section 3.1; RFC 8037). With a shared secret, every verifier of
 * tokens could also issue them.
 */
const signatures = [
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

/** A URL without credentials, query or fragment, so that all parsers read it in the same way. */
const plainUrl = (isSecure: boolean) =>
  z.string({ error: 'must be a URL' }).check(
    z.superRefine((value, context) => {
      const report = (message: string) => context.addIssue({ code: 'custom', message });
      const url = URL.canParse(value) ? new URL(value) : undefined;
      if (url === undefined || !['http:', 'https:'].includes(url.protocol)) return report('must be an https:// URL');
      if (url.username !== '' || url.password !== '') report('must not contain a user name or a password');
      if (/[?#\s"\\]/.test(value)) report('must not contain a query, a fragment, spaces or quotation marks');
      if (isSecure && url.protocol === 'http:' && !isLoopback(url.hostname)) {
        report('must use https, except on this machine: otherwise others on the network could forge tokens');
      }
    }),
  );

/** RFC 6749, section 3.3. */
const scope = z.string({ error: 'must be a scope' }).check(
  z.regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, {
    error: 'must be visible ASCII without spaces, quotation marks or backslashes',
  }),
);

/** `read write` or `["read", "write"]`. */
const scopes: z.ZodMiniType<readonly string[]> = z.pipe(
  z.transform((value) => (typeof value === 'string' ? value.split(' ').filter((word) => word !== '') : value)),
  z
    .array(scope, { error: 'must be scopes separated by spaces, or a list of scopes' })
    .check(z.minLength(1, { error: 'must contain at least one scope' })),
);

const scopesByKey = (description: string, error: string): Option<Readonly<Record<string, readonly string[]>>> => ({
  kind: 'map',
  schema: z.record(z.string().check(z.minLength(1, { error: 'must not contain an empty key' })), scopes, { error }),
  default: {},
  description,
  bounds: '',
  inHelp: false,
});

/** Options for access tokens; a part of `globalOptions`. */
export const oauthOptions = {
  authIssuer: {
    ...list(
      plainUrl(true),
      'Issuer of the access tokens (JWT) that clients must send; repeatable. Write the issuer exactly as in its metadata.',
    ),
    inHelp: false,
  },
  publicUrl: text<string | undefined>(
    undefined,
    z.pipe(
      plainUrl(false),
      z.transform((value) => value.replace(/\/$/, '')),
    ),
    'URL at which clients reach the gateway, without the path of an endpoint. The audience of a token is an endpoint URL below it.',
  ),
  authAudience: {
    ...list(
      z.string({ error: 'must be a string' }).check(z.minLength(1, { error: 'must not be empty' })),
      'Token audience to accept in addition to the URL of the endpoint; repeatable.',
    ),
    inHelp: false,
  },
  authJwksUrl: text<string | undefined>(
    undefined,
    plainUrl(true),
    "URL of the issuer's keys, for a single --auth-issuer whose metadata does not name them.",
  ),
  authAlgorithms: {
    ...list(
      z.enum(signatures, { error: `must be one of ${signatures.join(', ')}` }),
      'Signature algorithm to accept; repeatable. By default, all public-key algorithms are accepted.',
    ),
    default: signatures,
    bounds: signatures.join(', '),
    inHelp: false,
  },
  authClockSkewMs: integer(
    30 * second,
    [0, 5 * minute],
    'Allowed clock difference (ms) between the gateway and the issuer.',
  ),
  authKeysStaleMs: integer(
    60 * minute,
    [0, 24 * 60 * minute],
    "Time (ms) for which the gateway uses an issuer's old keys if a refresh fails. Afterwards, requests get 503.",
  ),
  impliedScopes: scopesByKey(
    "Scopes that a broader scope includes, such as 'admin=read write'; repeatable.",
    "must be 'scope=scope scope' on the command line and an object of scopes in the file",
  ),
} as const satisfies Readonly<Record<string, Option>>;

/** Options for the scopes that clients of a server need; a part of `serverOptions`. */
export const scopeOptions = {
  requiredScopes: { ...list(scope, 'Scope that is required for every request; repeatable.'), inHelp: false },
  toolScopes: scopesByKey(
    "Scopes that are required to call a tool, such as 'delete_*=files:write'; repeatable. * in the name matches any characters.",
    "must be 'name=scope scope' on the command line and an object of scopes in the file",
  ),
} as const satisfies Readonly<Record<string, Option>>;
