import * as z from 'zod/mini';
import { parseNetwork } from '../../core/auth/proxy-identity.ts';
import { usualScopeClaims } from '../../core/auth/scopes/scope-names.ts';
import { introspectionSchema } from './introspection-option.ts';
import {
  advanced,
  choice,
  file,
  fileOption,
  list,
  map,
  object,
  optionalText,
  plainUrl,
  turnedOn,
} from './option-kinds.ts';

/**
 * Headers that already have another meaning and cannot name a user. `X-Forwarded-For` and the like are allowed by this
 * pattern: proxies name an address in them, not a user.
 */
const reservedHeaders =
  /^(?:authorization|cookie|host|origin|connection|content-.*|transfer-encoding|upgrade|mcp-.*|sec-.*|last-event-id)$/;

const identityHeader = z.string({ error: 'must be the name of a header' }).check(
  z.toLowerCase(),
  z.regex(/^[!#$%&'*+.^_`|~0-9a-z-]+$/, { error: 'is not a valid header name' }),
  z.refine((name) => !reservedHeaders.test(name), {
    error: 'is a header with another meaning; choose another header',
  }),
);

const network = z.string({ error: 'must be an address' }).check(
  z.refine((value) => parseNetwork(value) !== undefined, {
    error: 'must be an IP address or a network, such as 10.0.0.0/8',
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

const scopesByKey = (description: string, error: string) =>
  map(
    'map',
    z.record(z.string().check(z.minLength(1, { error: 'must not contain an empty key' })), scopes, { error }),
    description,
  );

const name = z.string({ error: 'must be a string' });

/** The branch `auth`: who may use the gateway. */
export const authOptions = {
  required: turnedOn('Refuse to start without authentication, on any address.'),
  apiKeysFile: fileOption('File with API keys; create a key with mcp-gangway key.', { short: '--api-keys-file' }),
  filterLists: advanced(
    turnedOn(
      'List only the tools that the client may call. Clients then cannot ask for the scopes of tools that they do not see.',
    ),
  ),
  impliedScopes: scopesByKey(
    "Scopes that a broader scope includes, such as 'admin=read write'; repeatable.",
    "must be 'scope=scope scope' on the command line and an object of scopes in the file",
  ),
  oauth: {
    issuers: list(
      plainUrl(true),
      'Issuer of the access tokens (JWT) that clients must send; repeatable. Write the issuer exactly as in its metadata.',
    ),
    audiences: list(
      name.check(z.minLength(1, { error: 'must not be empty' })),
      'Token audience to accept in addition to the URL of the endpoint; repeatable.',
    ),
    introspection: advanced(
      object(
        introspectionSchema,
        'Endpoint that reports whether an opaque token is valid (RFC 7662), as an object with url, clientId, clientSecret, issuer, tokens, protocol and cache. All members are optional. {} uses the endpoint in the metadata of the issuer.',
        { secrets: 'members' },
      ),
    ),
    scopeClaims: advanced({
      ...list(
        name.check(z.regex(/^[^\s.](?:[^\s]*[^\s.])?$/, { error: 'must be the name of a claim' })),
        'Claim of the tokens that contains scopes, such as groups or realm_access.roles; repeatable.',
      ),
      default: usualScopeClaims,
    }),
    scopePrefix: advanced(
      optionalText(
        scope,
        'Text that clients put before the name of each scope when they log in, such as api://APPLICATION-ID/ for Microsoft Entra ID.',
      ),
    ),
    dpop: advanced(
      choice(
        ['accept', 'require', 'off'],
        'Access tokens that are bound to a key of the client (DPoP, RFC 9449). accept: such a token needs a proof with each request. require: all other access tokens are refused. off: such tokens are refused.',
      ),
    ),
    clientCertificates: advanced(
      optionalText(
        file,
        'Request a certificate from each client, so that access tokens can be bound to it (RFC 8705). any: each certificate can be bound to a token. Otherwise: the file with the certificate authorities (PEM) that must have signed it. Needs --tls-cert.',
        { isFile: true },
      ),
    ),
  },
  proxy: {
    userHeader: optionalText(
      identityHeader,
      'Header in which a trusted proxy sends the user name. The proxy must remove this header from client requests.',
    ),
    scopesHeader: advanced(
      optionalText(
        identityHeader,
        "Header in which a trusted proxy sends the user's scopes, separated by spaces or commas. Without this option, users have all scopes.",
      ),
    ),
    addresses: list(
      network,
      'Address or network (CIDR) of a trusted proxy; repeatable. An identity header from any other address is refused.',
    ),
  },
};

/** The branch `scopes` of a server: the scopes that its clients need. */
export const scopeOptions = {
  required: list(scope, 'Scope that is required for every request; repeatable.'),
  tools: scopesByKey(
    "Scopes that are required to call a tool, such as 'delete_*=files:write'; repeatable. * in the name matches any characters.",
    "must be 'name=scope scope' on the command line and an object of scopes in the file",
  ),
};
