import { isLoopback } from '../../core/auth/origin-rules.ts';
import { credentialHeaders } from '../../core/protocol/http/client-credentials.ts';
import { docsPage } from '../../core/util/docs-page.ts';
import { configuredCredentials } from '../options/client-credential-options.ts';
import { exchangesTokens } from '../options/identity-options.ts';
import { isDefault } from '../options/option-kinds.ts';
import { type GatewayOptions, gatewayLeaves, type OptionPath } from '../options/options.ts';
import type { ServerConfig } from '../servers/configured-servers.ts';
import { leafValue } from '../tree/branch.ts';
import type { Rule } from './rules.ts';

/** The options of the gateway, and how clients authenticate. */
export interface GatewayAccess extends GatewayOptions {
  readonly isAuthenticated: boolean;
  /** Only this machine reaches the gateway: see `strangersOf`. */
  readonly isLocal: boolean;
}

/** Pairs of options: the first must not be larger than the second, for the reason that follows. */
export const orderedPairs = [
  ['timeouts.requestIdle', 'timeouts.requestTotal', 'the time limit without progress would never be reached'],
  ['limits.request.body', 'limits.user.inFlight', 'the gateway would accept messages that it can never process'],
  ['limits.request.body', 'limits.total.inFlight', 'the gateway would accept messages that it can never process'],
] as const satisfies readonly (readonly [OptionPath, OptionPath, string])[];

const valueAt = (options: GatewayOptions, path: OptionPath): unknown => {
  const option = gatewayLeaves.get(path);
  return option && leafValue(options, path, option);
};

const hasDefault = (options: GatewayOptions, path: OptionPath): boolean => {
  const option = gatewayLeaves.get(path);
  return option !== undefined && isDefault(option, leafValue(options, path, option));
};

/** A default is no fault by itself: the option that the user has set is at fault. */
const pairRules = orderedPairs.flatMap(([smaller, larger, reason]): Rule<GatewayAccess>[] => {
  const ruleAt = (at: OptionPath, other: OptionPath, relation: string, isSmallerSet: boolean): Rule<GatewayAccess> => ({
    at,
    faults(options, nameOf) {
      const [low, high] = [
        Number(valueAt(options, smaller)),
        Number(valueAt(options, larger) ?? Number.POSITIVE_INFINITY),
      ];
      if (low <= high || hasDefault(options, smaller) === isSmallerSet) return [];
      const shown = gatewayLeaves.get(other)?.format?.(relation === 'larger' ? high : low);
      return [`must not be ${relation} than ${nameOf(other)}, which is ${shown}: ${reason}; change one of the two`];
    },
  });
  return [ruleAt(smaller, larger, 'larger', true), ruleAt(larger, smaller, 'smaller', false)];
});

/** A rule that nothing enforces protects nothing. */
const tokenRules = (
  [
    'auth.oauth.audiences',
    'auth.oauth.introspection',
    'auth.oauth.scopeClaims',
    'auth.oauth.scopePrefix',
    'auth.oauth.dpop',
    'auth.oauth.clientCertificates',
  ] as const
).map(
  (at): Rule<GatewayAccess> => ({
    at,
    faults: (options, nameOf) => [
      options.auth.oauth.issuers.length === 0 &&
        !hasDefault(options, at) &&
        `has no effect without ${nameOf('auth.oauth.issuers')}; set both, or remove this option`,
    ],
  }),
);

/** Options of the gateway that do not fit together. */
export const gatewayRules: readonly Rule<GatewayAccess>[] = [
  ...pairRules,
  {
    at: 'auth.proxy.userHeader',
    faults: ({ auth: { proxy } }, nameOf) => [
      proxy.userHeader !== undefined &&
        proxy.addresses.length === 0 &&
        `needs ${nameOf('auth.proxy.addresses')}, the addresses of the proxies that may send this header, such as 10.0.0.0/8; set both`,
    ],
  },
  {
    at: 'auth.proxy.addresses',
    faults: ({ auth: { proxy } }, nameOf) => [
      proxy.userHeader === undefined &&
        proxy.addresses.length > 0 &&
        `needs ${nameOf('auth.proxy.userHeader')}, the header in which these proxies send the user, such as X-User; set both`,
    ],
  },
  {
    at: 'auth.proxy.scopesHeader',
    faults: ({ auth: { proxy } }, nameOf) => [
      proxy.scopesHeader !== undefined &&
        proxy.userHeader === undefined &&
        `needs ${nameOf('auth.proxy.userHeader')}, the header with the user; set both`,
      proxy.scopesHeader !== undefined &&
        proxy.scopesHeader === proxy.userHeader &&
        `must differ from ${nameOf('auth.proxy.userHeader')}; use two different headers`,
    ],
  },
  {
    at: 'listen.serverCards',
    faults: ({ listen }, nameOf) => [
      listen.serverCards === 'public' &&
        listen.publicUrl === undefined &&
        `public needs ${nameOf('listen.publicUrl')}: the cards contain the gateway's URL, which must not come from a client's Host header`,
    ],
  },
  {
    at: 'auth.oauth.clientCertificates',
    faults: ({ auth, listen }, nameOf) => [
      auth.oauth.clientCertificates !== undefined &&
        listen.tls.cert === undefined &&
        `needs ${nameOf('listen.tls.cert')}: clients show their certificates where TLS ends, so TLS must end at the gateway`,
    ],
  },
  {
    at: 'auth.oauth.issuers',
    faults: ({ auth, listen }, nameOf) => [
      auth.oauth.issuers.length > 0 &&
        listen.publicUrl === undefined &&
        `needs ${nameOf('listen.publicUrl')}: the gateway accepts only tokens for its own URL; set ${nameOf('listen.publicUrl')} to a URL such as https://mcp.example.com`,
    ],
  },
  {
    at: 'auth.oauth.introspection',
    faults({ auth: { oauth } }, nameOf) {
      const { issuers, introspection } = oauth;
      const asked = introspection?.issuer ?? (issuers.length === 1 ? issuers[0] : undefined);
      return [
        introspection !== undefined &&
          issuers.length > 0 &&
          (asked === undefined || !issuers.includes(asked)) &&
          `must have an issuer that is one of ${nameOf('auth.oauth.issuers')}, so that the gateway knows whose tokens it asks about`,
      ];
    },
  },
  ...tokenRules,
  {
    at: 'auth.required',
    faults: ({ auth, isAuthenticated }, nameOf) => [
      auth.required &&
        !isAuthenticated &&
        `requires authentication, but none is configured; set ${nameOf('auth.apiKeysFile')}, ${nameOf('auth.oauth.issuers')} or ${nameOf('auth.proxy.addresses')}, or remove this option; see ${docsPage('authentication.md')}`,
    ],
  },
];

/** Options of a server that do not fit to the way in which clients authenticate. */
export const accessRules: readonly Rule<{ readonly server: ServerConfig; readonly gateway: GatewayAccess }>[] = [
  {
    at: 'auth',
    faults: ({ server, gateway: { listen } }, nameOf) => [
      server.auth === 'upstream' &&
        listen.publicUrl === undefined &&
        !isLoopback(listen.host) &&
        `upstream needs ${nameOf('listen.publicUrl')} if the gateway listens on other addresses than 127.0.0.1: clients read the gateway's URL in its metadata; set ${nameOf('listen.publicUrl')} to this URL, such as https://gateway.example.com`,
    ],
  },
  {
    at: 'credentials',
    faults({ server, gateway: { auth, isAuthenticated } }, nameOf) {
      const credentials = configuredCredentials(server);
      if (credentials === undefined) return [];
      const headers = credentialHeaders(credentials);
      const hasClaim = [...credentials.parts.values()].flat().some(({ kind }) => kind === 'claim');
      return [
        hasClaim &&
          !isAuthenticated &&
          `uses {claim:…}, which needs authentication of clients; ${waysOf(nameOf)}, or remove the claim`,
        isAuthenticated && headers.includes('authorization') && hasOwnKey(nameOf('credentials')),
        auth.proxy.userHeader !== undefined &&
          headers.includes(auth.proxy.userHeader) &&
          `has the header of ${nameOf('auth.proxy.userHeader')} in ${nameOf('credentials')}; use {claim:sub}, the user that the trusted proxy names`,
      ];
    },
  },
  {
    at: 'forwardHeaders',
    faults: ({ server: { auth, forwardHeaders }, gateway }, nameOf) => [
      gateway.isAuthenticated &&
        auth === 'gateway' &&
        forwardHeaders.includes('authorization') &&
        hasOwnKey(nameOf('forwardHeaders')),
    ],
  },
  {
    at: 'identity',
    faults: ({ server, gateway }, nameOf) => [
      exchangesTokens(server) &&
        gateway.auth.oauth.issuers.length === 0 &&
        `has ${nameOf('identity')} token_exchange, which needs ${nameOf('auth.oauth.issuers')}: the gateway can exchange only access tokens of users`,
    ],
  },
  {
    at: 'share',
    faults: ({ server, gateway: { isAuthenticated, isLocal } }, nameOf) => [
      // Credentials in variables distinguish clients as well.
      server.share === 'user' &&
        !isAuthenticated &&
        !isLocal &&
        configuredCredentials(server)?.as !== 'variables' &&
        `has ${nameOf('share')} user, which needs authentication, or a gateway that only this machine can reach: otherwise the gateway cannot tell users apart`,
    ],
  },
  {
    at: ['scopes.required', 'scopes.tools'],
    faults: ({ server: { scopes, address }, gateway: { isAuthenticated } }, nameOf) => [
      // A view has the scopes of its servers.
      address?.transport !== 'view' &&
        !isAuthenticated &&
        scopes.required.length + Object.keys(scopes.tools).length > 0 &&
        `requires scopes, which need authentication; ${waysOf(nameOf)}`,
    ],
  },
];

const waysOf = (nameOf: (path: OptionPath) => string): string =>
  `set ${nameOf('auth.oauth.issuers')}, ${nameOf('auth.apiKeysFile')} or ${nameOf('auth.proxy.userHeader')}`;

const hasOwnKey = (option: string): string =>
  `has authorization in ${option}, but this header contains the client's credentials for the gateway; remove authorization, because these credentials must not reach a server`;
