import * as z from 'zod/mini';
import type { UpstreamIdentity } from '../../backend/identity/upstream-identity.ts';
import { type ClientCredentials, parseCredential } from '../../protocol/http/client-credentials.ts';
import type { IssueMessage, ReportIssue } from '../issues.ts';
import { hasHeaders, type ServerAddress } from '../server-url.ts';
import { map } from './option-kinds.ts';
import { headerFault } from './remote-options.ts';

const entries = z
  .record(
    z.string(),
    z.string({ error: 'must be a string' }).check(
      z.refine((text) => parseCredential(text) !== undefined, {
        error:
          'must contain a header or a claim, such as {header:X-Token} or Bearer {claim:token}, and no other braces',
      }),
    ),
    { error: 'must be NAME=VALUE on the command line and an object of strings in the file' },
  )
  .check(
    z.refine((value) => Object.values(value).every((text) => /^[\x20-\x7e]*$/.test(text)), {
      error: 'must be visible ASCII on one line',
    }),
  );

/** The option for the credentials that a server receives from each client. */
export const credentialsOption = map(
  'map',
  entries,
  'Client credential for a server: NAME={header:X-Token} or NAME={claim:sub}; repeatable. For a STDIO server, NAME is an environment variable. For a server at an http(s):// or ws(s):// URL, NAME is a header.',
);

/**
 * Variables that control the code that runs or where it comes from. A client that could set one of them could do
 * anything as the server's user.
 */
const codeVariables =
  /^(?:PATH|HOME|SHELL|IFS|ENV|BASH_.*|LD_.*|DYLD_.*|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS)|NPM_CONFIG_.*|BUN_.*|DENO_.*|YARN_.*|PNPM_.*|PYTHON.*|PIP_.*|UV_.*|PERL.*|RUBY(?:OPT|LIB)|GEM_.*|BUNDLE_.*|LUA_.*|PHP.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|DOTNET_.*|CORECLR_.*|GO(?:PROXY|FLAGS|PATH|ROOT)|CARGO_.*|RUSTUP_.*|DOCKER_.*|CONTAINER_HOST|GCONV_PATH|OPENSSL_(?:CONF|MODULES|ENGINES)|EDITOR|VISUAL|PAGER|BROWSER|GIT_(?:SSH|EXEC|CONFIG|EXTERNAL|PROXY|ASKPASS|EDITOR|PAGER).*|.*_(?:PRELOAD|LIBRARY_PATH))$/i;

/** The settings of a server that concern client credentials. */
interface CredentialSettings {
  readonly credentials: Readonly<Record<string, string>>;
  readonly address?: ServerAddress | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly forwardHeaders: readonly string[];
  readonly warm: number;
  readonly era: string;
  readonly share: string;
}

/** The client credentials that a server receives, parsed; undefined if it receives none. */
export function configuredCredentials({
  credentials,
  address,
}: Pick<CredentialSettings, 'credentials' | 'address'>): ClientCredentials | undefined {
  const given = Object.entries(credentials);
  if (given.length === 0) return undefined;
  const isLocal = address === undefined;
  const parts = given.map(
    ([name, text]) => [isLocal ? name : name.toLowerCase(), parseCredential(text) ?? []] as const,
  );
  return { as: isLocal ? 'variables' : 'headers', parts: new Map(parts) };
}

/**
 * True if the server receives headers, credentials or tokens of its clients, and so may behave differently for each of
 * them.
 */
export const usesClientCredentials = ({
  credentials,
  forwardHeaders,
  identity,
}: Pick<CredentialSettings, 'credentials' | 'forwardHeaders'> & {
  readonly identity: UpstreamIdentity | undefined;
}): boolean => Object.keys(credentials).length > 0 || forwardHeaders.length > 0 || identity?.grant === 'token_exchange';

/**
 * Checks the client credentials of a server. A process that several clients share cannot have the credentials of one.
 * @param isOwn true if the option is set on this server. Servers that cannot receive credentials ignore a common
 * default.
 * @param path the location of the server in the configuration
 * @returns the server with the options that apply to it
 */
export function checkCredentials<T extends CredentialSettings>(
  server: T,
  isOwn: boolean,
  path: string,
  report: ReportIssue,
): T {
  const { credentials, address, env, headers, forwardHeaders, warm, era, share } = server;
  const names = Object.keys(credentials);
  if (names.length === 0) return server;
  if (address !== undefined && !hasHeaders(address)) {
    if (isOwn)
      report(
        path,
        (nameOf) => `has ${nameOf('credentials')}, which tcp:// and unix:// servers cannot receive; remove them`,
      );
    return { ...server, credentials: {} };
  }
  const reportFault = (message: IssueMessage | undefined): void => {
    if (message !== undefined) report(path, message);
  };
  if (address === undefined) {
    for (const name of names) reportFault(variableFault(name, env));
    if (era === 'modern') {
      reportFault(
        (nameOf) =>
          `has ${nameOf('credentials')} and ${nameOf('era')} modern, with which all clients share one process; remove one of them`,
      );
    }
    if (share === 'all') {
      reportFault(
        (nameOf) =>
          `has ${nameOf('credentials')} and ${nameOf('share')} all, with which all clients share processes; use ${nameOf('share')} user`,
      );
    }
  } else {
    const own = [...Object.keys(headers), ...forwardHeaders].map((name) => name.toLowerCase());
    for (const name of names) reportFault(credentialHeaderFault(name.toLowerCase(), own));
    if (new Set(names.map((name) => name.toLowerCase())).size < names.length)
      reportFault((nameOf) => `has the same header twice in ${nameOf('credentials')}`);
  }
  for (const text of Object.values(credentials)) reportFault(sourceFault(text));
  if (warm > 0)
    reportFault(
      (nameOf) =>
        `has ${nameOf('credentials')} and ${nameOf('warm')}, but a spare process has no client yet; set ${nameOf('warm')} to 0`,
    );
  return server;
}

/**
 * The fault in a credential that takes a header which no server may get. Such headers belong to the connection, are
 * secrets of the gateway, or can contain data for other servers.
 */
function sourceFault(text: string): IssueMessage | undefined {
  for (const part of parseCredential(text) ?? []) {
    if (part.kind !== 'header') continue;
    const fault =
      part.name === 'cookie' ? 'is cookie, which can also contain data for other servers' : headerFault(part.name);
    if (fault !== undefined)
      return (nameOf) => `has a value in ${nameOf('credentials')} whose header is not allowed: the header ${fault}`;
  }
  return undefined;
}

function variableFault(name: string, env: Readonly<Record<string, string>>): IssueMessage | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    return (nameOf) => `has a name in ${nameOf('credentials')} that is not a valid environment variable name`;
  if (codeVariables.test(name))
    return (nameOf) =>
      `has ${name} in ${nameOf('credentials')}, which controls the code that runs; clients must not set it`;
  return Object.hasOwn(env, name)
    ? (nameOf) => `has ${name} both in ${nameOf('env')} and in ${nameOf('credentials')}; remove one of them`
    : undefined;
}

function credentialHeaderFault(name: string, own: readonly string[]): IssueMessage | undefined {
  const fault = headerFault(name);
  if (fault !== undefined)
    return (nameOf) => `has a name in ${nameOf('credentials')} that is not allowed: the name ${fault}`;
  return own.includes(name)
    ? (nameOf) =>
        `has ${name} both in ${nameOf('credentials')} and in ${nameOf('headers')} or ${nameOf('forwardHeaders')}; remove one of them`
    : undefined;
}
