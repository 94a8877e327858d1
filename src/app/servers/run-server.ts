import { createHash } from 'node:crypto';
import type { LocalServer, ServerConfig } from '../../config/config.ts';
import { configuredCredentials } from '../../config/options/client-credential-options.ts';
import { exchangesTokens } from '../../config/options/identity-options.ts';
import { flagOf } from '../../config/options/option-names.ts';
import { policySettings } from '../../config/options/policy-option.ts';
import { userOf } from '../../config/servers/configured-servers.ts';
import type { Environment } from '../../config/sources/environment-variables.ts';
import { matchAnswers } from '../../core/backend/answers/match-answers.ts';
import type { Backend, BackendEnd, BackendEvents, OpenBackend, OpenOptions } from '../../core/backend/backend.ts';
import { type FilterOptions, isUnfiltered, type PinnedTools } from '../../core/backend/filter-rules.ts';
import { type CreateInterceptor, linkBackends } from '../../core/backend/link/link.ts';
import { withMappedHeaders } from '../../core/backend/link/map-headers.ts';
import { type ListSubscriber, readLists } from '../../core/backend/list-reader.ts';
import { createWarmPool, type WarmPool } from '../../core/backend/starting/warm-pool.ts';
import { childEnvironment } from '../../core/backend/stdio/launch/child-environment.ts';
import { locate } from '../../core/backend/stdio/launch/locate-program.ts';
import { explainSpawnFailure } from '../../core/backend/stdio/launch/spawn-failure.ts';
import { canWatchMemory } from '../../core/backend/stdio/processes/memory-limit.ts';
import { openStdio, type StdioOptions } from '../../core/backend/stdio/stdio-backend.ts';
import type { UpstreamTokens } from '../../core/backend/upstream-tokens.ts';
import { RerunPolicy } from '../../core/call/rerun.ts';
import type { ServerEvent } from '../../core/ops/server-events.ts';
import { parseAffinity } from '../../core/protocol/affinity.ts';
import { noHeaders, withoutSender } from '../../core/protocol/http/forwarded-headers.ts';
import type { Server } from '../../core/server/server.ts';
import { reportFault } from '../../core/util/boundary.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import type { ModernAccess } from '../features/eras.ts';
import { type Features, type GatewaySetup, needed } from '../features/gateway-features.ts';
import type { Openers } from '../features/servers.ts';
import { packageOpener, packageServerOf, type StartedProgram } from './package-server.ts';
import { remoteOpeners } from './remote-openers.ts';

/** A backend that failed to open: it accepts nothing, and ends as soon as the reason is known. */
function failedBackend(failure: Promise<BackendEnd>, events: BackendEvents): Backend {
  const reported = failure.then((end) => events.onEnd(end)).catch((cause: unknown) => reportFault('backend', cause));
  return {
    pid: undefined,
    send: () => 'ended',
    pause: () => undefined,
    resume: () => undefined,
    close: () => reported,
  };
}

/** How the processes and connections of a server are watched. */
export interface ServerTelemetry {
  readonly emit: Emit<ServerEvent>;
  /** Of each process and connection, spare ones too. */
  readonly processInterceptors: ProcessInterceptorsOf;
  /** Get the lists of a server or view as its clients see them. */
  readonly listSubscribers?: ListSubscribersOf;
  /** Get the lists of a server as it sends them. */
  readonly ownListSubscribers?: ListSubscribersOf;
}

/** Those who need to know what a server lists. */
type ListSubscribersOf = (server: string) => readonly ListSubscriber[];

/** The interceptors of a server at this address; of a STDIO server without one. */
export type ProcessInterceptorsOf = (server: string, address?: ServerConfig['address']) => readonly CreateInterceptor[];

/** A configured server, ready for sessions. */
export interface RunningServer {
  readonly config: ServerConfig;
  readonly server: Server;
  readonly pool: WarmPool;
  /** Opens a backend for a session outside the pool, for requests of the gateway itself. */
  readonly openSibling: OpenBackend;
  /** The access for modern clients; undefined if the transport has no modern era. */
  readonly modern: ModernAccess | undefined;
}

/** What the openers of a server have in common with others of the same server. */
interface OpenerParts {
  /** A process runs, or a connection is open. */
  readonly onStarted?: (() => void) | undefined;
  /** The tokens that all openers of the server share. */
  readonly tokens?: UpstreamTokens | undefined;
  /** Learns from the lists of the server. */
  readonly reruns?: RerunPolicy;
}

/**
 * Creates the openers of a server. A server does not inherit the gateway's environment; see `childEnvironment`. Throws
 * an error for the operator if a file that the server needs cannot be read.
 */
export function openersOf(
  config: ServerConfig,
  setup: GatewaySetup,
  telemetry: ServerTelemetry,
  parts: OpenerParts = {},
): Openers {
  const { name } = config;
  const { features } = setup;
  const { emit, processInterceptors, listSubscribers, ownListSubscribers } = telemetry;
  const { onStarted = () => undefined, tokens = upstreamTokensOf(config, features, emit), reruns } = parts;
  const tasks = features.tasks?.runServerTasks();
  const filters = filterInterceptors(config, setup);
  const own = [...(ownListSubscribers?.(name) ?? []), tasks?.learn];
  const shown = [...(listSubscribers?.(name) ?? []), reruns?.learn];
  // Without filters, clients see the lists as the server sends them, so one reader suffices.
  const interceptors = [
    matchAnswers,
    ...readLists(filters.length === 0 ? [...own, ...shown] : own),
    ...(tasks === undefined ? [] : [tasks.interceptor]),
    ...filters,
    ...readLists(filters.length === 0 ? [] : shown),
    ...processInterceptors(name, config.address),
  ];
  const asksAboutSenders = shownHeadersOf(config) !== undefined;
  const wrap = (open: OpenBackend): OpenBackend => {
    const linked = linkBackends(open, interceptors);
    return asksAboutSenders ? withMappedHeaders(linked, withoutSender) : linked;
  };
  if (config.address !== undefined) {
    const { open, openModern, isOverHttp } = remoteOpeners(config, setup, emit, onStarted, tokens);
    return { open: wrap(open), openModern: openModern && wrap(openModern), isOverHttp };
  }
  const open = wrap(createLocalOpener(config, setup, emit, onStarted));
  return { open, openModern: open, isOverHttp: false };
}

/** Most servers end when their stdin is closed. The rest of the time is for the handler of SIGTERM. */
const stdinCloseShare = 0.4;

function createLocalOpener(
  config: LocalServer,
  setup: GatewaySetup,
  emit: Emit<ServerEvent>,
  onStarted: () => void,
): OpenBackend {
  const { environment } = setup;
  const {
    timeouts: { graceMs },
    derived: { maxQueuedBytes },
  } = setup.config;
  const { name: server, command, args, cwd, env, isOnCommandLine } = config;
  const { user, memoryBytes: maxMemoryBytes } = config.process;
  if (maxMemoryBytes !== undefined && !canWatchMemory()) {
    throw new Error(
      `${flagOf('process.memory')} needs /proc, which only Linux has. Remove the option, or limit a container instead.`,
    );
  }
  const own = childEnvironment(environment, env, command);
  const options: StdioOptions = {
    command,
    args,
    cwd,
    env: own,
    ...(user !== undefined && userOf(user)),
    isOnCommandLine,
    stdinCloseGraceMs: Math.round(graceMs * stdinCloseShare),
    terminateGraceMs: Math.round(graceMs * (1 - stdinCloseShare)),
    maxMemoryBytes,
    maxQueuedBytes,
    onStarted,
    onStderr: (line, pid) => emit({ type: 'server-stderr', server, line, pid }),
  };
  const credentials = configuredCredentials(config);
  const openerOf =
    (program: Partial<StartedProgram>): OpenBackend =>
    (events, opening) =>
      openWith({ ...options, ...program }, events, opening);
  const openWith = (started: StdioOptions, events: BackendEvents, opening: OpenOptions | undefined): Backend => {
    const received = opening?.headers?.() ?? noHeaders;
    // No process runs without client credentials, or with those of the gateway's user instead.
    const lacking = credentials && [...credentials.parts.keys()].find((name) => !Object.hasOwn(received, name));
    if (lacking !== undefined) {
      const detail = `The server needs ${lacking} from a client, and no client is connected.`;
      return failedBackend(Promise.resolve({ reason: 'failed', detail }), events);
    }
    return openStdio(credentials ? { ...started, env: { ...started.env, ...received } } : started, events);
  };
  const asWritten = openerOf({});
  const packaged = packageServerOf(config, setup);
  return packaged === undefined
    ? asWritten
    : packageOpener({ config, server: packaged, environment, emit, openerOf, asWritten });
}

/**
 * The reason why the server's command cannot be found; undefined if it can, and for a remote server. Starts nothing.
 */
export function missingCommand(config: ServerConfig, environment: Environment): string | undefined {
  if (config.address !== undefined) return undefined;
  const { command, args, cwd, env, isOnCommandLine } = config;
  // What installs the package is looked for when it is needed, and npx and uvx are needed only if that fails.
  if (config.package !== undefined && config.packages !== 'as-command') return undefined;
  const program = { command, args, cwd, env: childEnvironment(environment, env, command), isOnCommandLine };
  if (locate(program) !== undefined) return undefined;
  return explainSpawnFailure(Object.assign(new Error('not found'), { code: 'ENOENT' }), program).detail;
}

/**
 * Prepares a server and its pool of warm spare processes.
 * @param onStarted a process runs, or a connection is open; not called for siblings
 */
export function runServer(
  config: ServerConfig,
  setup: GatewaySetup,
  telemetry: ServerTelemetry,
  onStarted?: () => void,
): RunningServer {
  const tokens = upstreamTokensOf(config, setup.features, telemetry.emit);
  const reruns = new RerunPolicy(config.rerun);
  const { open, openModern, isOverHttp } = openersOf(config, setup, telemetry, { onStarted, tokens, reruns });
  const sibling = openersOf(config, setup, telemetry, { tokens, reruns });
  const pool = createWarmPool({
    open,
    size: config.warm,
    onSpareEnd: (end) => telemetry.emit({ type: 'spare-ended', server: config.name, end }),
    onOutputDropped: () => telemetry.emit({ type: 'spare-output-dropped', server: config.name }),
  });
  const credentials = configuredCredentials(config);
  const server: Server = {
    ...serverFacts(config, pool.open, reruns, setup.features),
    isRemote: config.address !== undefined,
    authorizesClients: config.auth === 'upstream',
    sharesProcess: config.era === 'modern',
    forwardHeaders: config.forwardHeaders,
    shownHeaders: shownHeadersOf(config),
    credentials,
    exchangesTokens: exchangesTokens(config),
  };
  // Modern clients would share one process, which cannot have the credentials of one of them (docs/decisions/0037).
  const openSibling = credentials?.as === 'variables' ? undefined : sibling.openModern;
  return {
    config,
    pool,
    openSibling: sibling.open,
    server,
    modern:
      openModern && openSibling && isOverHttp
        ? { isOverHttp, openForProbe: openSibling, openLegacyForProbe: sibling.open, open: openModern }
        : openSibling && {
            isOverHttp,
            openForProbe: pool.openForProbe,
            keepProbed: pool.keepProbed,
            open: pool.openModern,
          },
  };
}

/** See `Server.shownHeaders`. Texts that are kept belong to the sender, too. */
const shownHeadersOf = ({ policy, limits }: ServerConfig): readonly string[] | undefined =>
  policySettings(policy)?.showHeaders ?? (limits.resultBytes === undefined ? undefined : []);

/** What sessions know of each server, also of a view. */
export const serverFacts = (config: ServerConfig, open: OpenBackend, reruns: RerunPolicy, { cards }: Features) => ({
  name: config.name,
  digest: configurationDigest(config),
  open,
  introduction: cards?.createIntroduction(),
  startTimeoutMs: config.timeouts.startMs,
  onBackendExit: config.onExit,
  reruns,
  hibernateAfterMs: config.hibernateAfterMs || undefined,
  affinity: config.affinity === undefined ? undefined : parseAffinity(config.affinity),
});

/**
 * Two servers with the same name and digest are the same to their sessions. Only the names of variables, headers and
 * query parameters count: a digest of secrets could be guessed, and a rotated secret does not make another server.
 */
export const configurationDigest = (config: ServerConfig): string =>
  createHash('sha256')
    .update(JSON.stringify([recordVersion, ...identityOf(config), ...shownBy(config)]))
    .digest('base64url')
    .slice(0, 22);

/** A session never moves to an instance that shows its client other tools. */
const shownBy = (config: ServerConfig): unknown[] => {
  const { allowTools, denyTools, allowPrompts, denyPrompts, tools, pin } = config;
  return isUnfiltered(config) ? [] : [{ allowTools, denyTools, allowPrompts, denyPrompts, tools, pin }];
};

function identityOf(config: ServerConfig): unknown[] {
  const { address } = config;
  if (address === undefined) {
    const { command, args, cwd, env } = config;
    return [command, args, cwd ?? null, Object.keys(env).sort(), ...credentialsIn(config)];
  }
  if (!('url' in address)) return [address];
  const { transport, url } = address;
  const headers = Object.keys(config.headers).map((name) => name.toLowerCase());
  const forwarded = [...new Set(config.forwardHeaders)].sort();
  const inQuery = [...new Set(url.searchParams.keys())].sort();
  const shared = [transport, url.origin, url.pathname, inQuery, headers.sort(), forwarded, ...credentialsIn(config)];
  const auth = config.auth === 'upstream' ? ['auth: upstream'] : [];
  return [...shared, ...auth, ...tokensIn(config)];
}

/** The required client credentials count as a whole: their templates contain no secrets. */
const credentialsIn = ({ credentials }: ServerConfig): unknown[] =>
  Object.keys(credentials).length === 0 ? [] : [Object.entries(credentials).sort()];

/** A session never moves to an instance that shows another user, or another client, to its server. */
const tokensIn = ({ identity }: ServerConfig): unknown[] =>
  identity === undefined ? [] : [[identity.grant, identity.clientId, identity.issuer ?? identity.tokenUrl]];

/** Increased when the meaning of a session record changes, so that older instances leave such sessions alone. */
const recordVersion = 1;

/** The tokens of a server; undefined if it needs none. */
const upstreamTokensOf = (
  { name, identity }: ServerConfig,
  { upstreamIdentity }: Features,
  emit: Emit<ServerEvent>,
): UpstreamTokens | undefined =>
  identity && needed(upstreamIdentity, '"identity" of a server').tokensOf(name, identity, emit);

/**
 * The command that writes the pin file of a server or view.
 * @param file the configuration file; undefined for a server on the command line
 */
export const pinCommand = (name: string, file: string | undefined): string =>
  `mcp-gangway pin ${name} ${file === undefined ? 'with the same options' : `--config ${file}`}`;

/** The interceptors by which clients see and call only what a server's options allow; none if they allow everything. */
export const filterInterceptors = (
  options: Pick<ServerConfig, keyof FilterOptions | 'name'>,
  setup: GatewaySetup,
): readonly CreateInterceptor[] =>
  isUnfiltered(options)
    ? []
    : needed(setup.features.filters, 'filters of tools and prompts').interceptorsOf(options, pinsOf(options, setup));

/**
 * The pinned tools of a server or view; undefined if it has no pin file. Throws an error for the operator if the file
 * cannot be read.
 */
export const pinsOf = (
  { name, pin }: Pick<ServerConfig, 'name' | 'pin'>,
  { features, file }: Pick<GatewaySetup, 'features' | 'file'>,
): PinnedTools | undefined =>
  pin === undefined ? undefined : needed(features.definitions, 'pin files').openPins(pin, pinCommand(name, file));
