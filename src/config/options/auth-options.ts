import * as z from 'zod/mini';
import { parseNetwork } from '../../auth/proxy-identity.ts';
import { file, list, type Option, text, turnedOn } from './option-kinds.ts';

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

/** Options for API keys and the identity that a trusted proxy sends; a part of `globalOptions`. */
export const authOptions = {
  requireAuth: turnedOn('Refuse to start without authentication, on any address.'),
  apiKeysFile: text<string | undefined>(undefined, file, 'File with API keys; create a key with mcp-gangway key.'),
  allowClearKeys: turnedOn(
    'Accept plain keys in GANGWAY_API_KEYS even if STDIO servers can read them. Without this option, the gateway does not start in this case.',
  ),
  proxyIdentityHeader: text<string | undefined>(
    undefined,
    identityHeader,
    'Header in which a trusted proxy sends the user name. The proxy must remove this header from client requests.',
  ),
  proxyScopesHeader: text<string | undefined>(
    undefined,
    identityHeader,
    "Header in which a trusted proxy sends the user's scopes, separated by spaces or commas. Without this option, users have all scopes.",
  ),
  trustedProxy: {
    ...list(
      network,
      'Address or network (CIDR) of a trusted proxy; repeatable. An identity header from any other address is refused.',
    ),
  },
} as const satisfies Readonly<Record<string, Option>>;
