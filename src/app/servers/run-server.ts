import { createHash } from 'node:crypto';
import type { OpenBackend } from '../../backend/backend.ts';
import { containFaults } from '../../backend/contain-faults.ts';
import { failedBackend } from '../../backend/failed-backend.ts';
import { childEnvironment } from '../../backend/stdio/launch/child-environment.ts';
import { locate } from '../../backend/stdio/launch/locate-program.ts';
import {
  findNice,
  findPrlimit,
  limitFlags,
  limitOptions,
  niceFlags,
} from '../../backend/stdio/launch/process-limits.ts';
import { findSetpriv, launcherOf } from '../../backend/stdio/launch/setpriv.ts';
import { explainSpawnFailure } from '../../backend/stdio/launch/spawn-failure.ts';
import { canWatchMemory } from '../../backend/stdio/processes/memory-limit.ts';
import { openStdio } from '../../backend/stdio/stdio-backend.ts';
import { createWarmPool, type WarmPool } from '../../backend/warm-pool.ts';
import type { GatewayConfig, LocalServer, ServerConfig } from '../../config/config.ts';
import { configuredCredentials } from '../../config/options/client-credential-options.ts';
import { flagOf } from '../../config/options/option-names.ts';
import type { Environment } from '../../config/sources/environment-variables.ts';
import { noHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Server } from '../../server/server.ts';
import { type Openers, remoteOpeners } from './remote-openers.ts';
import type { ServerListeners } from './server-listeners.ts';

/** A configured server, ready for sessions. */
export interface RunningServer {
  readonly config: ServerConfig;
  readonly server: Server;
  readonly pool: WarmPool;
  /** Opens a session's backend that is none of the pool's: for what the gateway asks on its own account. */
  readonly openSibling: OpenBackend;
  /** As clients of the modern era meet it; undefined if its transport has no such era. */
  readonly modern: ModernAccess | undefined;
}

/** How clients of the modern era reach a server. */
export interface ModernAccess {
  /** It is a server at an http(s):// URL. */
  readonly isOverHttp: boolean;
  /** Opens what they share. */
  readonly open: OpenBackend;
  /** Opens a backend that is none of the pool's: for questions to the server that no client may depend on. */
  readonly openSibling: OpenBackend;
}

/**
 * How backends of a server are opened. The gateway's own environment is not the server's: see `childEnvironment`. Throws
 * an error for the operator if a file that the server needs cannot be read.
 */
export function openersOf(
  config: ServerConfig,
  gateway: GatewayConfig,
  environment: Environment,
  listeners: ServerListeners,
): Openers {
  const { countBackend: counted = (open) => open } = listeners;
  const kept = (open: OpenBackend): OpenBackend => counted(containFaults(open));
  if (config.address !== undefined) {
    const { open, openModern, isOverHttp } = remoteOpeners(config, gateway, listeners);
    return { open: kept(open), openModern: openModern && kept(openModern), isOverHttp };
  }
  const open = kept(openerOfLocal(config, gateway, environment, listeners));
  return { open, openModern: open, isOverHttp: false };
}

function openerOfLocal(
  config: LocalServer,
  { maxLineBytes, maxQueuedBytes }: GatewayConfig,
  environment: Environment,
  { onStarted, onStderr }: ServerListeners,
): OpenBackend {
  const { command, args, cwd, env, uid, gid, isOnCommandLine } = config;
  const { stdinCloseGraceMs, terminateGraceMs, maxMemoryBytes } = config;
  if (maxMemoryBytes !== undefined && !canWatchMemory()) {
    throw new Error(
      `${flagOf('maxMemoryBytes')} needs /proc of Linux, which this system does not have. Remove the option, or limit a container instead.`,
    );
  }
  const launcher = launcherFor(config, environment);
  const own = childEnvironment(environment, env);
  const program = { command, args, cwd, env: own, uid, gid, launcher, isOnCommandLine };
  const credentials = configuredCredentials(config);
  return (events, opening) => {
    const brought = opening?.headers?.() ?? noHeaders;
    // No process runs with the credentials of nobody, or with those of the gateway's user in their place.
    const lacking = credentials && [...credentials.parts.keys()].find((name) => !Object.hasOwn(brought, name));
    if (lacking !== undefined) {
      const detail = `The server needs ${lacking} of a client, and no client is connected.`;
      return failedBackend(Promise.resolve({ reason: 'failed', detail }), events);
    }
    const backend = openStdio(
      {
        ...program,
        ...(credentials && { env: { ...program.env, ...brought } }),
        stdinCloseGraceMs,
        terminateGraceMs,
        maxMemoryBytes,
        maxLineBytes,
        maxQueuedBytes,
        onStarted: () => onStarted?.(),
        onStderr: (line) => onStderr?.(line, backend.pid),
      },
      events,
    );
    return backend;
  };
}

/**
 * Why the server's command cannot be found, without starting it; undefined if it looks as if it could be started, and for
 * a remote server.
 */
export function missingCommand(config: ServerConfig, environment: Environment): string | undefined {
  if (config.address !== undefined) return undefined;
  const { command, args, cwd, env, isOnCommandLine } = config;
  const program = { command, args, cwd, env: childEnvironment(environment, env), isOnCommandLine };
  if (locate(program) !== undefined) return undefined;
  return explainSpawnFailure(Object.assign(new Error('not found'), { code: 'ENOENT' }), program).detail;
}

/**
 * The words before the command of a server; the parent death signal comes last, as it does not outlast a change of credentials.
 * Throws an error for the operator if what sets his limits is not here.
 */
function launcherFor(config: LocalServer, environment: Environment): string[] {
  const { nice, parentDeathSignal } = config;
  const limits = limitFlags(config);
  const setpriv = parentDeathSignal === 'off' ? undefined : setprivOf(environment);
  return [
    ...(nice === 0 ? [] : [needed('nice', niceOf(environment), ['nice']), ...niceFlags(nice), '--']),
    ...(limits.length === 0 ? [] : [needed('prlimit', prlimitOf(environment), limitsOf(config)), ...limits, '--']),
    ...(setpriv === undefined || parentDeathSignal === 'off' ? [] : launcherOf(setpriv, parentDeathSignal)),
  ];
}

const limitsOf = (config: LocalServer): string[] => limitOptions.filter((key) => config[key] !== undefined);

function needed(tool: string, found: string | undefined, options: readonly string[]): string {
  if (found !== undefined) return found;
  throw new Error(
    `${options.map(flagOf).join(', ')}: the program ${tool} was not found in PATH. Install it, or limit a container instead.`,
  );
}

/** Finds a tool once, however many servers there are: each try starts a process. */
function onceForEach(
  find: (path: string | undefined) => string | undefined,
): (environment: Environment) => string | undefined {
  const found = new WeakMap<Environment, string | undefined>();
  return (environment) => {
    if (!found.has(environment)) found.set(environment, find(environment['PATH']));
    return found.get(environment);
  };
}

const setprivOf = onceForEach(findSetpriv);
const prlimitOf = onceForEach(findPrlimit);
const niceOf = onceForEach(findNice);

/** A server with its pool of warm spares. */
export function runServer(
  config: ServerConfig,
  gateway: GatewayConfig,
  environment: Environment,
  listeners: ServerListeners,
): RunningServer {
  const { open, openModern, isOverHttp } = openersOf(config, gateway, environment, listeners);
  const sibling = openersOf(config, gateway, environment, { ...listeners, onStarted: () => undefined });
  const pool = createWarmPool({
    open,
    size: config.warm,
    onSpareEnd: (end) => listeners.onSpareEnd?.(end),
  });
  const { name, era, startTimeoutMs, onBackendExit, rerun, forwardHeaders } = config;
  const hibernateAfterMs = config.hibernateAfterMs || undefined;
  const digest = configurationDigest(config);
  const isRemote = config.address !== undefined;
  const sharesProcess = era === 'modern';
  const credentials = configuredCredentials(config);
  const options = {
    isRemote,
    sharesProcess,
    startTimeoutMs,
    onBackendExit,
    rerun,
    hibernateAfterMs,
    forwardHeaders,
    credentials,
  };
  // All clients of the modern era would share one process, which can have the credentials of none (docs/decisions/0037).
  const openSibling = credentials?.as === 'variables' ? undefined : sibling.openModern;
  return {
    config,
    pool,
    openSibling: sibling.open,
    server: { name, digest, open: pool.open, ...options },
    modern: openModern && openSibling && { isOverHttp, openSibling, open: isOverHttp ? openModern : pool.open },
  };
}

/**
 * Two servers of one name are the same to their sessions if this is. Of the environment, of headers and of the query of a
 * URL only the names count: a digest of secrets could be guessed at, and a rotated one is no other server.
 */
export const configurationDigest = (config: ServerConfig): string =>
  createHash('sha256')
    .update(JSON.stringify([recordVersion, ...identityOf(config)]))
    .digest('base64url')
    .slice(0, 22);

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
  return [transport, url.origin, url.pathname, inQuery, headers.sort(), forwarded, ...credentialsIn(config)];
}

/** What is asked of clients is the same for all, and no secret. */
const credentialsIn = ({ credentials }: ServerConfig): unknown[] =>
  Object.keys(credentials).length === 0 ? [] : [Object.entries(credentials).sort()];

/** Goes up when what a session's record means changes: an instance of an older version leaves such sessions alone. */
const recordVersion = 1;
