import * as z from 'zod/mini';
import { usualScopeClaims } from '../../../auth/scopes/scope-names.ts';
import { minute, second } from '../../units.ts';
import { duration, file, list, type Option, text, turnedOn } from '../option-kinds.ts';
import { type Introspection, introspectionSchema } from './introspection-option.ts';
import { plainUrl } from './plain-url.ts';

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
});

/** Options for access tokens; a part of `globalOptions`. */
export const oauthOptions = {
  authIssuer: {
    ...list(
      plainUrl(true),
      'Issuer of the access tokens (JWT) that clients must send; repeatable. Write the issuer exactly as in its metadata.',
    ),
  },
  publicUrl: text<string | undefined>(
    undefined,
    z.pipe(
      plainUrl(false),
      z.transform((value) => value.replace(/\/$/, '')),
    ),
    'URL at which clients reach the gateway, without the path of an endpoint. The gateway prints this URL and accepts its host. The audience of a token is the URL of an endpoint below this URL.',
  ),
  authAudience: {
    ...list(
      z.string({ error: 'must be a string' }).check(z.minLength(1, { error: 'must not be empty' })),
      'Token audience to accept in addition to the URL of the endpoint; repeatable.',
    ),
  },
  authJwksUrl: text<string | undefined>(
    undefined,
    plainUrl(true),
    "URL of the issuer's keys, for a single issuer (--auth.oauth.issuers) whose metadata does not contain this URL.",
  ),
  authIntrospection: {
    kind: 'json',
    schema: introspectionSchema,
    default: undefined,
    description:
      'Endpoint that reports whether an opaque token is valid (RFC 7662), as an object with url, clientId, clientSecret, issuer, tokens, protocol and cache. All members are optional. {} uses the endpoint in the metadata of the issuer.',
    bounds: '',
  } as Option<Introspection | undefined>,
  authScopeClaims: {
    ...list(
      z
        .string({ error: 'must be a string' })
        .check(z.regex(/^[^\s.](?:[^\s]*[^\s.])?$/, { error: 'must be the name of a claim' })),
      'Claim of the tokens that contains scopes, such as groups or realm_access.roles; repeatable.',
    ),
    default: usualScopeClaims,
    bounds: '',
  },
  authScopePrefix: text<string | undefined>(
    undefined,
    scope,
    'Text that clients put before the name of each scope when they log in, such as api://APPLICATION-ID/ for Microsoft Entra ID.',
  ),
  authDpop: text<'off' | 'accept' | 'require'>(
    'accept',
    z.enum(['off', 'accept', 'require'], { error: 'must be off, accept or require' }),
    'Access tokens that are bound to a key of the client (DPoP, RFC 9449). accept: such a token needs a proof with each request. require: all other access tokens are refused. off: such tokens are refused.',
  ),
  authClientCertificates: turnedOn(
    'Request a certificate from each client, so that access tokens can be bound to it (RFC 8705). Needs --tls-cert.',
  ),
  authClientCa: text<string | undefined>(
    undefined,
    file,
    'File with the certificate authorities (PEM) of client certificates. Without this option, any certificate can be bound to a token.',
  ),
  authAlgorithms: {
    ...list(
      z.enum(signatures, { error: `must be one of ${signatures.join(', ')}` }),
      'Signature algorithm to accept; repeatable. By default, all public-key algorithms are accepted.',
    ),
    default: signatures,
    bounds: signatures.join(', '),
  },
  authClockSkewMs: duration(
    30 * second,
    [0, 5 * minute],
    'Allowed clock difference between the gateway and the issuer.',
  ),
  authKeysStaleMs: duration(
    60 * minute,
    [0, 24 * 60 * minute],
    "Time for which the gateway uses an issuer's old keys if a refresh fails. Afterwards, requests get 503.",
  ),
  serverCards: text<'auto' | 'public' | 'off'>(
    'auto',
    z.enum(['auto', 'public', 'off'], { error: 'must be auto, public or off' }),
    'Experimental: documents that describe the servers to clients (SEP-2127). auto: only for servers without authentication. public: for all servers, readable by anyone; requires --public-url. off: none.',
  ),
  filterLists: turnedOn(
    'List only the tools that the client may call. Clients then cannot ask for the scopes of tools that they do not see.',
  ),
  impliedScopes: scopesByKey(
    "Scopes that a broader scope includes, such as 'admin=read write'; repeatable.",
    "must be 'scope=scope scope' on the command line and an object of scopes in the file",
  ),
} as const satisfies Readonly<Record<string, Option>>;

/** Options for the scopes that clients of a server need; a part of `serverOptions`. */
export const scopeOptions = {
  requiredScopes: { ...list(scope, 'Scope that is required for every request; repeatable.') },
  toolScopes: scopesByKey(
    "Scopes that are required to call a tool, such as 'delete_*=files:write'; repeatable. * in the name matches any characters.",
    "must be 'name=scope scope' on the command line and an object of scopes in the file",
  ),
} as const satisfies Readonly<Record<string, Option>>;
