import { setTimeout as delay } from 'node:timers/promises';
import { longestLineBytes } from '../../../core/backend/backend.ts';
import { CredentialMarks } from '../../../core/keys/credential-marks.ts';
import { storedKeys } from '../../../core/keys/state-keys.ts';
import { ServerHealth } from '../../../core/ops/health/server-health.ts';
import type { Log } from '../../../core/ops/log/log.ts';
import { faultText, type Reason } from '../../../core/protocol/faults.ts';
import { Sessions } from '../../../core/registry/sessions.ts';
import { quotasOf } from '../../access/create-quotas.ts';
import { createConnectedStore } from '../../create-store.ts';
import { createTelemetry } from '../../create-telemetry.ts';
import type { GatewaySetup } from '../../features/gateway-features.ts';
import { runServer } from '../../servers/run-server.ts';
import { serve } from '../../servers/served-server.ts';
import { version } from '../../version.ts';
import { failed, misconfigured } from '../outcome.ts';
import { StdioClient, withoutHint } from './stdio-client.ts';

/** How long the end of a session at the server may take, once the client has left. */
const endMs = 2_000;

/** The faults whose cause the health of the server has. */
const failuresOfStart: ReadonlySet<Reason> = new Set([
  'server_start_failed',
  'server_start_timeout',
  'server_unreachable',
]);

const missingKey =
  "Set the variable GANGWAY_HEADER to your key or token for this server, such as 'Authorization: Bearer KEY'. --header does the same, but shows the key to other users of this machine.";

const wrongKey =
  'Correct the key or token in the variable GANGWAY_HEADER or in --header: this server does not accept it.';

/**
 * Connects the client that has started this program to a server at a URL (`mcp-gangway connect URL`). It is one session
 * without a gateway: nothing listens, and nothing is kept. Logs go to stderr.
 * @param leave aborted to end the session at once
 * @returns the exit code, once the client has left
 */
export async function connectClient(setup: GatewaySetup, log: Log, leave: AbortSignal): Promise<number> {
  const { config, features } = setup;
  const [server] = config.servers;
  if (server?.address === undefined || !('url' in server.address)) {
    process.stderr.write('mcp-gangway: connect needs one URL: mcp-gangway connect https://example.com/mcp\n');
    return misconfigured;
  }
  const { limits, timeouts, sse, derived } = config;
  const health = new ServerHealth();
  const telemetry = createTelemetry(setup, log, { health });
  const { emit } = telemetry;
  health.add(server.name, { transport: server.address.transport, isRequired: false, era: () => undefined });
  const explain = (reason: Reason): string | undefined => {
    if (reason === 'server_unauthorized') return Object.keys(server.headers).length === 0 ? missingKey : wrongKey;
    return failuresOfStart.has(reason) ? health.detailsOf(server.name)?.detail : undefined;
  };
  const store = createConnectedStore(config);
  const keys = storedKeys(store);
  const onFailed = (cause: unknown): void => emit({ type: 'store-failed', cause });
  const eras = features.eras?.connect({
    config,
    version,
    keys,
    marks: new CredentialMarks(keys),
    store,
    shared: undefined,
    lasting: undefined,
    emit,
    onFailed,
  });
  const sessions = new Sessions({
    ...timeouts,
    ...sse,
    ...config.calls,
    ...derived,
    // The program ends with its client, and not before.
    sessionIdleMs: Number.MAX_SAFE_INTEGER,
    maxSessions: limits.total.sessions,
    maxCalls: limits.session.requests,
    cluster: undefined,
    store,
    telemetry: telemetry.sessions,
    quotas: quotasOf(config, store.rates, onFailed),
    connections: { store, maxEventBytes: longestLineBytes },
    groupRules: eras?.groupRules,
    formerServer: () => undefined,
    currentServer: () => served.server,
  });
  // Nothing of an earlier session is kept: this program has one.
  const running = runServer({ ...server, share: 'session' }, setup, telemetry);
  const served = serve(running, {
    setup,
    eras,
    sessions,
    knownUsers: () => 'local',
    emit,
    keys,
    values: store.values,
    rates: store.rates,
    onStoreFailure: onFailed,
    clientInterceptors: telemetry.clientInterceptors,
  });
  const client = new StdioClient({
    server: served.server,
    sessions,
    maxDepth: derived.maxDepth,
    openModern: running.modern?.open,
    findEra: async () => (served.eras === undefined ? 'legacy' : served.eras.findEra()),
    explain,
    drainMs: timeouts.drainMs,
    leave,
    input: process.stdin,
    output: process.stdout,
  });
  const end = await client.serve();
  const ended = Promise.all([running.pool.close(), served.eras?.drain(endMs, Promise.resolve())]);
  await Promise.race([ended, delay(endMs, undefined, { ref: false })]);
  await telemetry.close();
  if (end === undefined) return 0;
  const detail = explain(end);
  log.app.error({ reason: end, detail }, detail === undefined ? faultText(end) : withoutHint(faultText(end)));
  return failed;
}
