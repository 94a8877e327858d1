import type { Logger } from 'pino';
import type { ServerConfig } from '../../config/config.ts';
import { usesClientCredentials } from '../../config/options/client-credential-options.ts';
import { type ServerFailure, serverFailure } from '../../core/ops/health/server-failure.ts';
import type { ServerHealth } from '../../core/ops/health/server-health.ts';
import { detach } from '../../core/util/boundary.ts';
import { within } from '../../core/util/timing/within.ts';
import { askServer } from '../probes/ask-server.ts';
import { ServerUnusableError } from '../probes/probe-session.ts';
import type { ServedServer } from './served-server.ts';

/**
 * A server that starts and answers later than this is of no use to a client that waits. A probe waits no longer than a
 * client would.
 */
const probeTimeoutOf = ({ timeouts }: ServerConfig): number => Math.min(10_000, timeouts.startMs);

/** One lost answer, or one slow start, does not make a server down. */
const probeFailures = 3;

/** A server that answers once between two failures is not yet up. */
const probeSuccesses = 2;

/** Probes a server periodically. */
export interface ServerProbe {
  /** Starts no further probe. A running probe ends by itself. */
  stop(): void;
}

/**
 * Begins to probe a server if probes are configured: at once, and then `probes.every` after each answer. A modern
 * server gets `server/discover` in the process that all clients share, or in a separate process if users are isolated.
 * A legacy server gets a separate session with a `ping` for each probe. The server counts as up or down only after
 * several equal results in a row. The log has each change and each new reason once.
 * @returns undefined for a server that is not probed, such as one that needs client credentials
 */
export function startProbing(served: ServedServer, health: ServerHealth, logger: Logger): ServerProbe | undefined {
  const { config } = served;
  const { name, probes } = config;
  if (probes.everyMs === 0 || usesClientCredentials(config)) return undefined;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let state: 'up' | 'down' | undefined;
  let inARow = 0;
  let wasWell: boolean | undefined;
  let logged: string | undefined;

  const recordOutcome = (outcome: 'well' | Error): void => {
    const isWell = outcome === 'well';
    inARow = isWell === wasWell ? inARow + 1 : 1;
    wasWell = isWell;
    // The state is unknown before the first result, so that result counts at once.
    const needed = state === undefined ? 1 : isWell ? probeSuccesses : probeFailures;
    if (inARow >= needed) state = isWell ? 'up' : 'down';
    if (outcome === 'well') health.started(name);
    else if (outcome instanceof ServerUnusableError && outcome.end !== undefined)
      health.ended(name, outcome.end, { isAtStart: true, ifClosed: serverFailure('no_answer') });
    // The code that failed to start the server has already recorded the reason.
    else if (!(outcome instanceof NotStarted)) health.failed(name, serverFailure('no_answer'));
    if (state === undefined) return;
    health.probed(name, state);
    if (state === 'up') logChange();
    else if (!isWell) logChange(health.lastFailureOf(name) ?? serverFailure('no_answer'), outcome);
  };

  const logChange = (failure?: ServerFailure, outcome?: unknown): void => {
    const news = failure?.why ?? 'up';
    if (logged === news) return;
    logged = news;
    if (failure === undefined) return logger.info({ server: name }, 'server is up according to its probes');
    const { reason, why, help } = failure;
    const detail = health.detailsOf(name)?.detail ?? why;
    // Only the gateway has spoken to the process of a separate session, so its output contains no client data.
    const lastOutput = outcome instanceof ServerUnusableError && outcome.output.length > 0 ? outcome.output : undefined;
    logger.warn({ server: name, reason, detail, lastOutput, help }, 'server is down according to its probes');
  };

  const probe = async (): Promise<void> => {
    const outcome = await probeOnce(served).then(
      () => 'well' as const,
      (error: Error) => error,
    );
    if (isStopped) return;
    recordOutcome(outcome);
    timer = setTimeout(() => detach('background', probe()), probes.everyMs).unref();
  };

  detach('background', probe());
  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** The server could not be started for the detection of its era. */
class NotStarted extends Error {}

/** Resolves if the server answers in time; rejects with the reason if it does not. */
async function probeOnce(served: ServedServer): Promise<void> {
  const { eras, config } = served;
  const probeTimeoutMs = probeTimeoutOf(config);
  const era = eras === undefined ? 'legacy' : await within(eras.findEra(), probeTimeoutMs, failLate);
  if (era === 'modern' && eras?.askShared !== undefined) return eras.askShared(probeTimeoutMs);
  if (era === 'server_start_failed' || era === 'server_unauthorized') throw new NotStarted(era);
  if (era !== 'legacy' && era !== 'modern')
    throw new Error(`the gateway could not detect the era of the server: ${era}`);
  await askServer(served.running.openSibling, era, probeTimeoutMs, (session) =>
    era === 'modern' ? undefined : session.request('ping', {}),
  );
}

/** A probe waits less for a server that hangs at its start than a client does. */
function failLate(): never {
  throw new Error('the server did not answer in time');
}
