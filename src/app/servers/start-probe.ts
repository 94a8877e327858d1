import type { BackendEnd, OpenBackend } from '../../backend/backend.ts';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import type { Environment } from '../../config/sources/environment-variables.ts';
import { helpIfEnded } from '../../ops/health/start-help.ts';
import type { Era } from '../../protocol/revisions.ts';
import { detach } from '../../util/boundary.ts';
import { discover, explainSilence, initialize, openProbeSession, type ProbeSession } from '../probes/probe-session.ts';
import { createStartupPing, silentMs } from '../probes/startup-ping.ts';
import { explainForcedEra } from './explain-forced-era.ts';
import { type RunningServer, runServer } from './run-server.ts';
import type { ServerListeners } from './server-listeners.ts';

/** How long a server that nobody used yet must live to count as started: `npx` needs seconds to find a typo in a name. */
export const probeMs = 10_000;

/** How long the first process waits for the first client before it is ended. */
const firstSpareMs = 60_000;

/** So much of what the server writes is shown with what is wrong. */
const maxOutputLines = 20;

/** What the probe needs. */
export interface StartProbe {
  readonly config: ServerConfig;
  readonly gateway: GatewayConfig;
  readonly environment: Environment;
  readonly listeners: ServerListeners;
  /** The server ended by itself soon after its start, before anybody used it. */
  onUseless(message: string): void;
}

/**
 * Starts the only server of a gateway once, so that a typo is found at once and not by the first client. The process is
 * not wasted: the first session takes it. If none comes soon it is asked whether it answers. Rejects if it cannot be started.
 */
export async function awaitStart(probe: StartProbe): Promise<RunningServer> {
  return needsRequestToConnect(probe.config) ? awaitAnswer(probe) : awaitSpare(probe);
}

/** A Streamable HTTP server does nothing until it is asked something. */
const needsRequestToConnect = ({ address }: ServerConfig): boolean =>
  address?.transport === 'http' || address?.transport === 'auto';

async function awaitAnswer({ config, gateway, environment, listeners }: StartProbe): Promise<RunningServer> {
  const running = runServer(config, gateway, environment, listeners);
  const { era, startTimeoutMs } = config;
  const answersBy = async (trial: ProbeSession, question: (trial: ProbeSession) => Promise<unknown>): Promise<void> => {
    try {
      await question(trial);
    } finally {
      await trial.close();
    }
  };
  const answersModern = async (): Promise<'modern'> => {
    if (running.modern === undefined) throw new Error('The transport of the server has no modern era.');
    await answersBy(openProbeSession(running.modern.open, startTimeoutMs, 'modern'), discover);
    return 'modern';
  };
  const answersLegacy = async (): Promise<'legacy'> => {
    await answersBy(openProbeSession(running.server.open, startTimeoutMs), initialize);
    return 'legacy';
  };
  const answers = async (): Promise<Era> => {
    if (era === 'modern') return answersModern();
    try {
      return await answersLegacy();
    } catch (error) {
      if (era === 'legacy') throw error;
      // A server that has only the other era refuses this one; what it says of its own is told by `check`.
      return answersModern().catch(() => {
        throw error;
      });
    }
  };
  try {
    listeners.onAnswered?.(await answers());
    return running;
  } catch (error) {
    const openers = { open: running.server.open, openModern: running.modern?.open };
    const told = era === 'auto' ? error : await explainForcedEra(error as Error, era, openers, startTimeoutMs);
    await running.pool.close();
    throw told;
  }
}

async function awaitSpare(probe: StartProbe): Promise<RunningServer> {
  const { config, gateway, environment, listeners, onUseless } = probe;
  let startedAt = performance.now();
  let hasStarted = false;
  /** A session has a process of the server: from now on one that ends is that session's matter. */
  let isUsed = false;
  /** Some servers choose their era by their first request: a process that was asked is no client's, unless the era is known. */
  const mustNotBeReused = (): boolean => config.era === 'auto' && !isUsed;
  /** What was written before a client came: so much may be shown. */
  const output: string[] = [];
  const question = createStartupPing({
    era: config.era,
    onAnswered() {
      listeners.onAnswered?.();
      if (!mustNotBeReused()) return;
      running.pool.renew();
      running.pool.addSpare(firstSpareMs);
    },
    onSilent: (method) => listeners.onSilent?.(explainSilence(method, silentMs, output)),
  });
  let running: RunningServer;
  return new Promise((resolve, reject) => {
    running = runServer(config, gateway, environment, {
      ...listeners,
      onStderr(line, pid) {
        if (!isUsed) output.push(line);
        if (output.length > maxOutputLines) output.shift();
        listeners.onStderr?.(line, pid);
      },
      countBackend: (open) => question.attach(listeners.countBackend?.(open) ?? open),
      onStarted() {
        if (hasStarted) return;
        hasStarted = true;
        question.begin();
        const { server, modern } = running;
        resolve({ ...running, server: { ...server, open: use }, modern: modern && { ...modern, open: use } });
      },
      onSpareEnd(end) {
        // A remote server is of use again when it is back, and may well close a connection that nobody uses.
        const isOurs = config.address === undefined;
        const isUseless = isOurs && !isUsed && performance.now() - startedAt < probeMs;
        if (isOurs && question.isOpen) {
          // Some end on any request before `initialize`: that is no fault of theirs, and the next one is not asked.
          startedAt = performance.now();
          running.pool.addSpare(firstSpareMs);
        } else if (!hasStarted)
          detach(
            'background',
            running.pool.close().then(() => reject(new Error(explain(end)))),
          );
        else if (isUseless) onUseless(explain(end));
        else listeners.onSpareEnd?.(end);
      },
    });
    const use: OpenBackend = (events, options) => {
      if (mustNotBeReused() && question.isOpen) running.pool.renew();
      isUsed = true;
      question.end();
      return running.pool.open(events, options);
    };
    running.pool.addSpare(firstSpareMs);
  });
}

function explain({ reason, detail, lastOutput = [] }: BackendEnd): string {
  if (reason === 'failed') return detail;
  const output = lastOutput.map((line) => `\n  | ${line}`).join('');
  const said = output === '' ? '' : ` Last output of the server:${output}`;
  return `The MCP server ended right after its start. ${detail}${said}\n${helpIfEnded}`;
}
