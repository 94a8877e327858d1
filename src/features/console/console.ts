import type { IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import {
  backendOwnerKey,
  KnownInstances,
  OperatorActions,
  OtherSessions,
  PageSubscriptions,
  PlaygroundSessions,
  ProcessMemory,
  readAssets,
  redactStart,
  type ServerHealthView,
  type ServerState,
  type SessionState,
  SharedTopic,
  SnapshotBuilder,
  tellingLines,
} from '@mcp-gangway/console';
import type { HttpContext } from '../../core/http/http-context.ts';
import type { ConsoleParts, ConsoleServer, ConsoleSession, StatusPage } from '../../core/ops/console-hook.ts';
import type { FailureDetails } from '../../core/ops/health/server-failure.ts';
import type { MonitoredStatus } from '../../core/ops/health/server-health.ts';
import { newestLegacy, newestModern } from '../../core/protocol/known-revisions.ts';
import { ownsOrShares, type Principal } from '../../core/protocol/principal.ts';
import type { Revision } from '../../core/protocol/revisions.ts';
import { type SessionName, sessionName } from '../../core/session/session-events.ts';
import { keyFromId } from '../../core/session/session-key.ts';
import { detach } from '../../core/util/boundary.ts';
import { docsPage } from '../../core/util/docs-page.ts';
import { type AccessPolicy, denyAll, makeStartToken, requireScope, requireStartToken } from './access-policy.ts';
import { consoleHost } from './console-host.ts';
import { addConsoleRoutes } from './console-routes.ts';
import type { GatewayRecord } from './gateway-record.ts';
import { clientNameOf } from './session-client.ts';

/** The header with the credentials of the playground for the endpoint. `Authorization` has those for the admin port. */
const authorizationHeader = 'x-gangway-authorization';

/** The address at which clients reach a server. */
interface EndpointAddress {
  readonly path: string;
  /** A host name that the endpoint accepts. */
  readonly host: string;
}

/** The time that a page may reconnect later than the delay says, for a changed network or a reopened tunnel. */
const awayMarginMs = 10_000;

/** Creates the status page of a gateway (docs/decisions/0044). */
export function createStatusPage({ inspects, record, tap, backends }: GatewayRecord, parts: ConsoleParts): StatusPage {
  const { logger, version, maxSessions, base, changes, readiness, drain } = parts;
  const onFailed = (cause: unknown): void => logger.debug({ err: cause }, 'cannot send an event to the status page');
  const memory = new ProcessMemory(parts.usageOf, onFailed);
  const startToken = makeStartToken();
  const access = accessPolicyOf(parts, startToken);
  const findServer = (server: string): ConsoleServer | undefined => parts.servers().find(({ name }) => name === server);
  const name = `${hostname()}:${process.pid}`;
  const snapshots = new SnapshotBuilder({
    record,
    backends,
    version,
    maxSessions,
    readiness,
    name,
    sessionCount: parts.sessionCount,
    sessions: () => parts.sessions().map(shownSession),
    tasks: parts.tasks,
    openStreams: parts.openStreams,
    store: parts.store,
    servers() {
      const calls = new Map(parts.servers().map((server) => [server.name, server.callsInFlight]));
      return parts
        .health()
        .map((status) => serverStateOf(status, parts.failureDetails(status.server), calls.get(status.server)));
    },
    memoryOf: (pids, maxAgeMs) => memory.of(pids, maxAgeMs),
  });
  record.start(
    () => {
      snapshots.observe();
      return snapshots.gauges();
    },
    () => readiness() === 'draining',
  );
  const instances = new KnownInstances({
    name,
    changes,
    onFailed,
    summary: () => snapshots.summary(),
    onDraining: (instance) => record.events.addDrain(instance),
  });
  const own = (search: string, limit: number) => snapshots.ownSessions(search, limit);
  const otherSessions = new OtherSessions({ name, changes, own, onFailed });
  // A task of another instance is cancelled there.
  const cancellations = new SharedTopic({
    changes,
    topic: 'status-cancel-task',
    onFailed,
    onMessage: (task) => parts.cancelTask(task.toString()),
  });
  const runsElsewhere = (task: string): boolean =>
    instances.list().some(({ isThis, tasks }) => !isThis && tasks?.newest.some((known) => known.task === task));
  const subscriptions = new PageSubscriptions({
    host: consoleHost,
    tap,
    events: record.events,
    failedCalls: record.failedCalls,
    clients() {
      const bySession = new Map(
        parts.sessions().map(({ name, snapshot }) => [backendOwnerKey(name), snapshot] as const),
      );
      return (server, session) => {
        const snapshot = bySession.get(backendOwnerKey({ server, session }));
        return snapshot && clientNameOf(snapshot);
      };
    },
    snapshot: (query) =>
      snapshots.snapshot(query, {
        instances: instances.list(),
        sessions: query.isEverywhere ? otherSessions.find(query.search) : [],
      }),
    session: (watched) => snapshots.session(watched),
    instanceOf: ({ server, session = '' }) =>
      otherSessions
        .find(session)
        .find(({ sessions }) => sessions.some((other) => other.server === server && other.session === session))
        ?.instance,
  });
  const findSession = ({ server, session }: SessionName) =>
    parts.sessions().find(({ name }) => name.server === server && name.session === session);
  const playgroundSessions = new PlaygroundSessions<Principal>({
    awayMs: parts.retryMs + awayMarginMs,
    onGone: (name, sender) => {
      const session = findSession(name);
      if (session !== undefined && ownsOrShares(session.principal, sender, session.server.authorizesClients))
        detach('admin', session.end('client_gone'));
    },
  });
  const actions = new OperatorActions({
    host: consoleHost,
    logger,
    checkServer: parts.check,
    drain() {
      record.recordDrain();
      drain();
    },
    endSession(server, session) {
      const found = findSession({ server, session });
      detach('admin', found?.end('operator'));
      return found !== undefined;
    },
    cancelTask(task) {
      if (parts.cancelTask(task)) return true;
      if (!runsElsewhere(task)) return false;
      cancellations.publish(Buffer.from(task));
      return true;
    },
    restartServer(server) {
      const found = findServer(server);
      found?.renewUnused();
      return found && backends.restart(server);
    },
  });
  const relay = (name: string, context: HttpContext): boolean => {
    const { incoming, outgoing } = context;
    const server = findServer(name);
    if (server === undefined) return false;
    const id = incoming.headers['mcp-session-id'];
    if (typeof id === 'string') {
      const key = keyFromId(id);
      // A request of the modern era has no session, whatever its headers say.
      const senderOf = (): Principal | undefined =>
        context.sessionKey === key && context.fault === undefined ? context.sender.principal : undefined;
      playgroundSessions.trackRequest(sessionName(key, name), outgoing, senderOf);
    }
    relayToEndpoint(incoming, { path: server.path, host: new URL(base).host });
    parts.playground(context);
    return true;
  };
  const about = () => ({
    servers: parts.servers().map(({ name, path, takesTokens }) => ({ name, url: base + path, takesTokens })),
    needsToken: parts.operators !== undefined,
    revisions: { legacy: shownOf(newestLegacy), modern: shownOf(newestModern) },
    inspects,
    docs: {
      page: docsPage('status-page.md'),
      troubleshooting: docsPage('troubleshooting.md'),
      errors: docsPage('reference/errors.md'),
    },
  });
  const urlAt = (adminUrl: string): string | undefined => (access === denyAll ? undefined : `${adminUrl}/`);
  return {
    urlAt,
    secretUrlAt(adminUrl) {
      const url = urlAt(adminUrl);
      // With authentication, operators need a key or token instead of the start token.
      return url === undefined || parts.operators !== undefined ? url : `${url}#${startToken}`;
    },
    has: (path) => path === '/' || /^\/(?:page|status)\//.test(path),
    addRoutes(app) {
      const { history } = record;
      addConsoleRoutes(app, { readAssets, access, subscriptions, history, actions, about, relay });
    },
    async close() {
      record.stop();
      subscriptions.close();
      playgroundSessions.close();
      await Promise.all([instances.close(), otherSessions.close(), cancellations.close()]);
    },
  };
}

/** A session as the page shows it: of its `initialize`, only the name of the client. */
function shownSession({ name, protocolVersion, snapshot }: ConsoleSession): SessionState {
  return { name, protocolVersion, snapshot: { ...snapshot, client: clientNameOf(snapshot) } };
}

/** The state of a server, with the calls that modern clients have in flight. */
function serverStateOf(status: MonitoredStatus, details: FailureDetails | undefined, sharedCalls = 0): ServerState {
  const { server: name, transport, package: itsPackage, era = 'unknown', members } = status;
  return {
    name,
    transport,
    package: itsPackage,
    era,
    members,
    sharedCalls,
    health: healthOf(status, details),
    isProbed: status.probe !== undefined,
  };
}

/** How much of the output of a failed server is shown (P8). */
const maxOutputLines = 5;
const maxOutputLine = 500;

/** The health of a server: the result of the last probe, else of the last start. */
function healthOf({ last, probe }: MonitoredStatus, details: FailureDetails | undefined): ServerHealthView {
  const found = last === undefined ? undefined : last.state === 'started' ? 'up' : 'down';
  return {
    state: probe ?? found ?? 'unknown',
    ...(last?.state === 'failed' &&
      (details === undefined ? { why: last.why, help: last.help } : shownDetails(details))),
    at: last?.at.getTime(),
  };
}

const shownDetails = ({ detail, help, output }: FailureDetails): Omit<ServerHealthView, 'state'> => ({
  why: consoleHost.redact(detail),
  help,
  output: tellingLines(output, maxOutputLines).map((line) => redactStart(consoleHost, line, maxOutputLine)),
});

/**
 * With authentication, operators need a key or token on every address: servers, and clients through tools, can reach a
 * loopback port too (docs/decisions/0044). Without authentication, the page needs the token of the printed URL and is
 * available on this machine only.
 */
function accessPolicyOf({ operators, isOnLoopback }: ConsoleParts, startToken: string): AccessPolicy {
  if (operators !== undefined) return requireScope(operators);
  return isOnLoopback ? requireStartToken(startToken) : denyAll;
}

/** The part of a revision that the page needs. */
const shownOf = ({ name, headers }: Revision): Pick<Revision, 'name' | 'headers'> => ({ name, headers });

/**
 * Turns a request of the playground into a request to the endpoint at this path. The endpoint authenticates it and
 * treats it like that of any client. The admin port has checked the Origin, which would mean nothing to the endpoint.
 */
function relayToEndpoint(incoming: IncomingMessage, { path, host }: EndpointAddress): void {
  const { headers } = incoming;
  const authorization = headers[authorizationHeader];
  delete headers[authorizationHeader];
  delete headers.origin;
  delete headers.authorization;
  if (typeof authorization === 'string') headers.authorization = authorization;
  headers.host = host;
  incoming.url = path;
}
