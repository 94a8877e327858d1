import { z } from 'zod';
import { parseNetwork } from '../../http/auth/proxy-identity.ts';
import { file, list, type Option, text, turnedOn } from './option-kinds.ts';

/** Headers that mean something else already; `X-Forwarded-For` and the like say where a request is from, not who from. */
const taken =
  /^(?:authorization|cookie|host|origin|connection|content-.*|transfer-encoding|upgrade|mcp-.*|sec-.*|last-event-id)$/;

const identityHeader = z
  .string({ error: 'must be the name of a header' })
  .toLowerCase()
  .regex(/^[!#$%&'*+.^_`|~0-9a-z-]+$/, { error: 'is a name that no header can have' })
  .refine((name) => !taken.test(name), { error: 'is a header that has another meaning' });

const network = z.string({ error: 'must be an address' }).refine((value) => parseNetwork(value) !== undefined, {
  error: 'must be an IP address or network such as 10.0.0.0/8',
});

/** Options that say who may use the gateway; a part of `globalOptions`. */
export const authOptions = {
  requireAuth: turnedOn('Refuses to start where no authentication is configured, on whatever address.'),
  apiKeysFile: text<string | undefined>(undefined, file, 'File with API keys of clients; mcp-gangway key makes one.', {
    inHelp: true,
  }),
  proxyIdentityHeader: text<string | undefined>(
    undefined,
    identityHeader,
    'Header in which a proxy in front says who its user is; it must remove what clients send under that name.',
  ),
  proxyScopesHeader: text<string | undefined>(
    undefined,
    identityHeader,
    'Header in which that proxy says what its user may do, as scopes separated by blanks or commas; without it, everything.',
  ),
  trustedProxy: {
    ...list(network, 'Address or network (CIDR) of a proxy whose identity header counts; from others it is refused.'),
    inHelp: false,
  },
} as const satisfies Readonly<Record<string, Option>>;
