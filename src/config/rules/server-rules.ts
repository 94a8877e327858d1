import { parseAffinity } from '../../core/protocol/affinity.ts';
import { parseCredential } from '../../core/protocol/http/client-credentials.ts';
import type { NameOf, ReportIssue } from '../issues.ts';
import { exchangesTokens } from '../options/identity-options.ts';
import { type OptionPath, type ServerOptions, serverLeaves } from '../options/options.ts';
import { headerFault } from '../options/remote-options.ts';
import { hasHeaders, type ServerAddress } from '../server-url.ts';
import { canKeepProcesses, isServedOverHttp } from '../servers/process-sharing.ts';
import { checkRules, type Fault, type PlaceOf, type Rule } from './rules.ts';

/** A server with the values of all its options. */
type Configured = ServerOptions & { readonly address?: ServerAddress | undefined };

/**
 * Checks the options of a server, one beside the other.
 * @param isOwn true for an option that is set on this server, and not for all of them
 * @param placeOf the location of an option, or of the server
 * @returns the server with the options that apply to it
 */
export function checkServer<T extends Configured>(
  server: T,
  isOwn: (path: OptionPath) => boolean,
  placeOf: PlaceOf,
  report: ReportIssue,
): T {
  let checked = server;
  for (const { at, fault } of limitedOptions) {
    if (!fault(checked, (path) => path)) continue;
    const before = checked;
    if (isOwn(at)) report(placeOf([at]), (nameOf) => String(fault(before, nameOf)));
    const { unit = '', default: usual } = serverLeaves.get(at) ?? {};
    checked = { ...checked, [at + unit]: usual };
  }
  checkRules(serverRules, checked, placeOf, report);
  if (checked.auth !== 'upstream') return checked;
  // The tokens of clients are forwarded like any other header.
  return { ...checked, forwardHeaders: [...new Set([...checked.forwardHeaders, authorization])] };
}

const authorization = 'authorization';

/** Options that not every server can have, in this order. A server ignores one that is only set for all servers. */
const limitedOptions: readonly {
  readonly at: OptionPath;
  readonly fault: (server: Configured, nameOf: NameOf) => Fault;
}[] = [
  {
    at: 'headers',
    fault: ({ address, headers }, nameOf) =>
      address === undefined && Object.keys(headers).length > 0 && `${onlyAtUrl}, or use ${nameOf('env')}`,
  },
  { at: 'transport', fault: ({ address, transport }) => address === undefined && transport !== 'auto' && onlyAtUrl },
  {
    at: 'auth',
    fault: ({ address, auth }, nameOf) =>
      auth === 'upstream' &&
      !isServedOverHttp(address) &&
      address?.transport !== 'sse' &&
      (address === undefined
        ? onlyAtUrl
        : `has ${nameOf('auth')} upstream, which is only for servers at http(s):// URLs; remove it`),
  },
  {
    at: 'forwardHeaders',
    fault: ({ address, forwardHeaders }, nameOf) =>
      forwardHeaders.length > 0 && !hasHeaders(address) && onlyWithHeaders(address, nameOf('forwardHeaders')),
  },
  {
    at: 'credentials',
    fault: ({ address, credentials }, nameOf) =>
      Object.keys(credentials).length > 0 &&
      address !== undefined &&
      !hasHeaders(address) &&
      `has ${nameOf('credentials')}, which tcp:// and unix:// servers cannot receive; remove them`,
  },
  {
    at: 'identity',
    fault: ({ address, identity }, nameOf) =>
      identity !== undefined && !hasHeaders(address) && onlyWithHeaders(address, nameOf('identity')),
  },
  {
    at: 'affinity',
    fault: ({ affinity, ...server }, nameOf) =>
      affinity !== undefined &&
      ((!canKeepProcesses(server) &&
        `has ${nameOf('affinity')}, which is only for legacy STDIO servers without ${nameOf('credentials')}; remove it`) ||
        ((server.share === 'session' || server.share === 'request') &&
          `has ${nameOf('affinity')} and ${nameOf('share')} ${server.share}, with which no client shares a process; remove one of the two options`) ||
        (server.onExit === 'end' &&
          parseAffinity(affinity)?.readsMeta === true &&
          `sets ${nameOf('onExit')} to end, but ${nameOf('affinity')} with {meta:…} moves sessions between processes; remove one of the two options`)),
  },
  {
    at: 'share',
    // The gateway opens sessions of its own for requests without a session. The option applies to those at any server.
    fault: ({ share, era, sessionless, address }, nameOf) =>
      share !== 'auto' &&
      era === 'modern' &&
      isServedOverHttp(address) &&
      sessionless !== 'serve' &&
      `has ${nameOf('share')} ${share} and ${nameOf('era')} modern at a URL, where the gateway cannot isolate users; remove ${nameOf('share')}, and identify users to the server with ${nameOf('credentials')}`,
  },
  {
    at: 'hibernateAfter',
    fault: ({ hibernateAfterMs, address }, nameOf) =>
      hibernateAfterMs > 0 &&
      address !== undefined &&
      `has ${nameOf('hibernateAfter')}, which is only for STDIO servers; remove it`,
  },
];

const onlyAtUrl = 'is only for servers at a URL, but this server is a command; remove it';

const onlyWithHeaders = (address: Configured['address'], name: string): string =>
  address === undefined
    ? onlyAtUrl
    : `has ${name}, which is only for servers at http(s):// or ws(s):// URLs; remove it`;

/** Options of one server that do not fit together. */
const serverRules: readonly Rule<Configured>[] = [
  {
    at: ['tls.cert', 'tls.key'],
    faults: ({ address, tls: { cert, key } }, nameOf) => [
      address !== undefined &&
        (cert === undefined) !== (key === undefined) &&
        `needs both ${nameOf('tls.cert')} and ${nameOf('tls.key')}, or neither`,
    ],
  },
  {
    at: 'era',
    faults: ({ era, address }, nameOf) => [
      era === 'modern' &&
        (address?.transport === 'sse' || address?.transport === 'ws') &&
        `has ${nameOf('era')} modern, but HTTP+SSE and WebSocket exist only in older revisions; use legacy or auto`,
    ],
  },
  {
    at: 'auth',
    faults: ({ auth, headers, credentials, scopes, share }, nameOf) => {
      if (auth !== 'upstream') return [];
      const has = `has ${nameOf('auth')} upstream`;
      const own = (['headers', 'credentials'] as const).find((option) =>
        namesIn({ headers, credentials }[option]).includes(authorization),
      );
      return [
        own !== undefined &&
          `${has}, with which the server gets the client's Authorization; remove Authorization from ${nameOf(own)}`,
        scopes.required.length + Object.keys(scopes.tools).length > 0 &&
          `${has}, with which the server checks scopes itself; remove ${nameOf('scopes.required')} and ${nameOf('scopes.tools')}`,
        share === 'all' &&
          `${has} and ${nameOf('share')} all, with which users would share a session at the server; remove ${nameOf('share')}`,
      ];
    },
  },
  {
    at: ['forwardHeaders', 'auth'],
    faults: ({ auth, forwardHeaders, headers, warm }, nameOf) => {
      const both = forwardHeaders.find((name) => namesIn(headers).includes(name));
      const option = forwardHeaders.length > 0 ? nameOf('forwardHeaders') : auth === 'upstream' && nameOf('auth');
      return [
        both !== undefined &&
          `has ${both} both in ${nameOf('headers')} and in ${nameOf('forwardHeaders')}; remove one of them`,
        option !== false && warm > 0 && noSpares('connection', option, nameOf('warm')),
      ];
    },
  },
  {
    at: 'credentials',
    faults: (server, nameOf) => {
      const option = nameOf('credentials');
      if (Object.keys(server.credentials).length === 0) return [];
      return [
        ...(server.address === undefined ? faultsOfVariables(server, nameOf) : faultsOfHeaders(server, nameOf)),
        ...Object.values(server.credentials).map((text) => faultOfSource(text, option)),
        server.warm > 0 && noSpares('process', option, nameOf('warm')),
      ];
    },
  },
  {
    at: 'identity',
    faults: ({ identity, headers, forwardHeaders, credentials, warm, share }, nameOf) => {
      const [has, exchanges] = [`has ${nameOf('identity')}`, exchangesTokens({ identity })];
      return [
        identity !== undefined &&
          [...namesIn(headers), ...forwardHeaders, ...namesIn(credentials)].includes(authorization) &&
          `${has} and also Authorization in ${nameOf('headers')}, ${nameOf('forwardHeaders')} or ${nameOf('credentials')}; remove one of them`,
        exchanges &&
          warm > 0 &&
          `${has} token_exchange and ${nameOf('warm')}, but a spare connection has no user yet; set ${nameOf('warm')} to 0`,
        exchanges &&
          share === 'all' &&
          `${has} token_exchange and ${nameOf('share')} all, with which users share sessions; use ${nameOf('share')} user`,
      ];
    },
  },
  {
    at: 'policy',
    faults: ({ policy, auth }, nameOf) => [
      policy !== undefined &&
        auth === 'upstream' &&
        `has ${nameOf('policy')} and ${nameOf('auth')} upstream, with which the gateway does not know its users; remove one of the two options`,
    ],
  },
  {
    at: 'limits.result',
    faults: ({ limits, auth }, nameOf) => [
      limits.resultBytes !== undefined &&
        auth === 'upstream' &&
        `has ${nameOf('limits.result')} and ${nameOf('auth')} upstream, with which the gateway does not know its users; remove one of the two options`,
    ],
  },
  {
    at: ['hibernateAfter', 'onExit'],
    faults: ({ hibernateAfterMs, onExit }, nameOf) => [
      hibernateAfterMs > 0 &&
        onExit === 'end' &&
        `has ${nameOf('hibernateAfter')} and ${nameOf('onExit')} end, but hibernation needs restore; remove one of the two options`,
    ],
  },
];

const noSpares = (what: string, option: string, warm: string): string =>
  `has ${option} and ${warm}, but a spare ${what} has no client yet; set ${warm} to 0`;

const namesIn = (headers: Readonly<Record<string, string>>): string[] =>
  Object.keys(headers).map((name) => name.toLowerCase());

/**
 * Variables that control the code that runs or where it comes from. A client that could set one of them could do
 * anything as the server's user.
 */
const codeVariables =
  /^(?:PATH|HOME|SHELL|IFS|ENV|BASH_.*|LD_.*|DYLD_.*|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS)|NPM_CONFIG_.*|BUN_.*|DENO_.*|YARN_.*|PNPM_.*|PYTHON.*|PIP_.*|UV_.*|PERL.*|RUBY(?:OPT|LIB)|GEM_.*|BUNDLE_.*|LUA_.*|PHP.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|DOTNET_.*|CORECLR_.*|GO(?:PROXY|FLAGS|PATH|ROOT)|CARGO_.*|RUSTUP_.*|DOCKER_.*|CONTAINER_HOST|GCONV_PATH|OPENSSL_(?:CONF|MODULES|ENGINES)|EDITOR|VISUAL|PAGER|BROWSER|GIT_(?:SSH|EXEC|CONFIG|EXTERNAL|PROXY|ASKPASS|EDITOR|PAGER).*|.*_(?:PRELOAD|LIBRARY_PATH))$/i;

/** A process that several clients share cannot have the credentials of one. */
const faultsOfVariables = ({ credentials, env, era, share }: Configured, nameOf: NameOf): Fault[] => {
  const option = nameOf('credentials');
  return [
    ...Object.keys(credentials).map(
      (name) =>
        (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) &&
          `has a name in ${option} that is not a valid environment variable name`) ||
        (codeVariables.test(name) &&
          `has ${name} in ${option}, which controls the code that runs; clients must not set it`) ||
        (Object.hasOwn(env, name) && `has ${name} both in ${nameOf('env')} and in ${option}; remove one of them`),
    ),
    era === 'modern' &&
      `has ${option} and ${nameOf('era')} modern, with which all clients share one process; remove one of them`,
    share === 'all' &&
      `has ${option} and ${nameOf('share')} all, with which all clients share processes; use ${nameOf('share')} user`,
  ];
};

function faultsOfHeaders({ credentials, headers, forwardHeaders }: Configured, nameOf: NameOf): Fault[] {
  const option = nameOf('credentials');
  const names = namesIn(credentials);
  return [
    ...names.map((name) => {
      const fault = headerFault(name);
      if (fault !== undefined) return `has a name in ${option} that is not allowed: the name ${fault}`;
      return (
        [...namesIn(headers), ...forwardHeaders].includes(name) &&
        `has ${name} both in ${option} and in ${nameOf('headers')} or ${nameOf('forwardHeaders')}; remove one of them`
      );
    }),
    new Set(names).size < names.length && `has the same header twice in ${option}`,
  ];
}

/**
 * The fault in a credential that takes a header which no server may get. Such headers belong to the connection, are
 * secrets of the gateway, or can contain data for other servers.
 */
function faultOfSource(text: string, option: string): Fault {
  const headers = (parseCredential(text) ?? []).flatMap((part) => (part.kind === 'header' ? [part.name] : []));
  const faults = headers.map((name) =>
    name === 'cookie' ? 'is cookie, which can also contain data for other servers' : headerFault(name),
  );
  const fault = faults.find((each) => each !== undefined);
  return fault && `has a value in ${option} whose header is not allowed: the header ${fault}`;
}
