import type { Logger } from 'pino';
import { usesClientCredentials } from '../../config/options/client-credential-options.ts';
import { type ServerFailure, serverFailure } from '../../ops/health/server-failure.ts';
import type { ServerHealth } from '../../ops/health/server-health.ts';
import { readGatewayMessage } from '../../protocol/message/message.ts';
import { ownRequest } from '../../protocol/modern/envelope.ts';
import { detach } from '../../util/boundary.ts';
import { discover, initialize, openProbeSession, ServerUnusableError } from '../probes/probe-session.ts';
import { version } from '../version.ts';
import type { ServedServer } from './served-server.ts';

/** Asks a server from time to time whether it is well. */
export interface ServerProbe {
  /** Asks no more. What is under way ends by itself. */
  stop(): void;
}

/**
 * Begins to probe a server, where that is configured: at once, and then `probeEveryMs` after each answer. A server of the
 * modern era is asked `server/discover` by what all its clients share; where users are kept apart, on a process of its own.
 * One of the legacy era gets a session of the gateway's own for each probe, with a `ping` in it, as every client has its own. It is up and down after so many
 * answers of a kind in a row: one that is lost says little. The log has each change, and each other reason, once.
 * @returns undefined for a server that is not probed: what only clients bring, the gateway does not have
 */
export function startProbing(served: ServedServer, health: ServerHealth, logger: Logger): ServerProbe | undefined {
  const { config } = served;
  const { name, probeEveryMs, probeFailures, probeSuccesses } = config;
  if (probeEveryMs === 0 || usesClientCredentials(config)) return undefined;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let state: 'up' | 'down' | undefined;
  let inARow = 0;
  let wasWell: boolean | undefined;
  let told: string | undefined;

  const judge = (outcome: 'well' | Error): void => {
    const isWell = outcome === 'well';
    inARow = isWell === wasWell ? inARow + 1 : 1;
    wasWell = isWell;
    // Nothing is known before the first answer, so that one counts at once.
    const needed = state === undefined ? 1 : isWell ? probeSuccesses : probeFailures;
    if (inARow >= needed) state = isWell ? 'up' : 'down';
    if (outcome === 'well') health.started(name);
    else if (outcome instanceof ServerUnusableError && outcome.end !== undefined)
      health.ended(name, outcome.end, { isAtStart: true, ifClosed: serverFailure('no_answer') });
    // Of a server that could not be started, who started it has told why.
    else if (!(outcome instanceof NotStarted)) health.failed(name, serverFailure('no_answer'));
    if (state === undefined) return;
    health.probed(name, state);
    if (state === 'up') tell();
    else if (!isWell) tell(health.lastFailureOf(name) ?? serverFailure('no_answer'), outcome);
  };

  const tell = (failure?: ServerFailure, outcome?: unknown): void => {
    const news = failure?.why ?? 'up';
    if (told === news) return;
    told = news;
    if (failure === undefined) return logger.info({ server: name }, 'server is up according to its probes');
    const { reason, why: detail, help } = failure;
    // Nobody but the gateway has spoken to a server that is asked in a session of its own.
    const lastOutput = outcome instanceof ServerUnusableError && outcome.output.length > 0 ? outcome.output : undefined;
    logger.warn({ server: name, reason, detail, lastOutput, help }, 'server is down according to its probes');
  };

  const ask = async (): Promise<void> => {
    const outcome = await answers(served).then(
      () => 'well' as const,
      (error: Error) => error,
    );
    if (isStopped) return;
    judge(outcome);
    timer = setTimeout(() => detach('background', ask()), probeEveryMs).unref();
  };

  detach('background', ask());
  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** The server could not be started, to find out its era. */
class NotStarted extends Error {}

/** Resolves if the server answers in time; rejects if it does not, whyever. */
async function answers(served: ServedServer): Promise<void> {
  const { modern, config } = served;
  const { probeTimeoutMs } = config;
  const era = await inTime(modern.findEra(undefined, undefined, true), probeTimeoutMs);
  if (era === 'modern' && modern.isShared) return askModern(served);
  if (era === 'server_start_failed' || era === 'server_unauthorized') throw new NotStarted(era);
  if (era !== 'legacy' && era !== 'modern')
    throw new Error(`the gateway could not detect the era of the server: ${era}`);
  const trial = openProbeSession(served.running.openSibling, probeTimeoutMs, era);
  try {
    if (era === 'modern') await discover(trial);
    else {
      await initialize(trial);
      await trial.request('ping', {});
    }
  } finally {
    await trial.close();
  }
}

/** What the answer is, if it is there in time; a server that hangs at its start is not waited for as clients do. */
async function inTime<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the server did not answer in time')), timeoutMs).unref();
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

function askModern({ modern, config }: ServedServer): Promise<void> {
  const question = ownRequest('probe', 'server/discover', {}, { version, protocolVersion: modern.revision });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      cancel();
      reject(new Error('the server did not answer in time'));
    }, config.probeTimeoutMs);
    const settle = (settled: () => void): void => {
      clearTimeout(timer);
      settled();
    };
    const cancel = modern.probe(readGatewayMessage(question), {
      message: () => false,
      response: () => settle(resolve),
      fault: (reason) => settle(() => reject(new Error(reason))),
    });
  });
}
