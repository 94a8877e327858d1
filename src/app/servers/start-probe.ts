import { basename } from 'node:path';
import type { ServerConfig } from '../../config/config.ts';
import { isServedOverHttp } from '../../config/servers/process-sharing.ts';
import { formatDuration } from '../../config/units.ts';
import type { BackendEnd } from '../../core/backend/backend.ts';
import { helpForCommand, helpIfDownloading, helpIfEnded } from '../../core/ops/health/start-help.ts';
import type { ServerEvent } from '../../core/ops/server-events.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import { detach } from '../../core/util/boundary.ts';
import type { EventOf } from '../../core/util/telemetry/emit.ts';
import type { GatewaySetup } from '../features/gateway-features.ts';
import { askServer, explainForcedEra } from '../probes/ask-server.ts';
import { explainSilence } from '../probes/probe-session.ts';
import { createStartupPing, pingAfterMs } from '../probes/startup-ping.ts';
import { type ProcessInterceptorsOf, type RunningServer, runServer, type ServerTelemetry } from './run-server.ts';

/** An unused server that survives this time counts as started: `npx` needs seconds to find a typo in a name. */
export const probeMs = 10_000;

/** The first process ends after this time without a client, but not while it may still start. */
const firstSpareMs = 60_000;

/** The number of the server's last output lines that a failure shows. */
const maxOutputLines = 20;

/** The options of the probe at the start. */
export interface StartProbe {
  readonly config: ServerConfig;
  readonly setup: GatewaySetup;
  readonly telemetry: ServerTelemetry;
  /** The server ended by itself soon after its start, before a client used it. */
  onUseless(message: string): void;
}

/**
 * Starts the only server of a gateway once, so that a typo is found at the start and not by the first client. The first
 * session takes the process. If no session comes soon, the server is pinged. Rejects if the server cannot be started.
 */
export async function awaitStart(probe: StartProbe): Promise<RunningServer> {
  // A Streamable HTTP server has no connection before the first request.
  return isServedOverHttp(probe.config.address) ? awaitAnswer(probe) : awaitSpare(probe);
}

async function awaitAnswer({ config, setup, telemetry }: StartProbe): Promise<RunningServer> {
  const running = runServer(config, setup, telemetry);
  const { era, timeouts } = config;
  const startTimeoutMs = timeouts.startMs;
  const openers = { open: running.server.open, openModern: running.modern?.open };
  const answersModern = (): Promise<Era> =>
    openers.openModern === undefined
      ? Promise.reject(new Error('The transport of the server has no modern era.'))
      : askServer(openers.openModern, 'modern', startTimeoutMs, () => 'modern');
  const answersLegacy = (): Promise<Era> => askServer(openers.open, 'legacy', startTimeoutMs, () => 'legacy');
  // A modern-only server refuses `initialize`. If it fails `server/discover` too, the first error is reported.
  const answersEither = (): Promise<Era> =>
    answersLegacy().catch((error) => answersModern().catch(() => Promise.reject(error)));
  const answers = { modern: answersModern, legacy: answersLegacy, auto: answersEither }[era];
  try {
    telemetry.emit({ type: 'server-answered', server: config.name, era: await answers() });
    return running;
  } catch (error) {
    const explained = era === 'auto' ? error : await explainForcedEra(error as Error, era, openers, startTimeoutMs);
    await running.pool.close();
    throw explained;
  }
}

async function awaitSpare(probe: StartProbe): Promise<RunningServer> {
  const { config, setup, telemetry, onUseless } = probe;
  const { name: server, timeouts } = config;
  const startTimeoutMs = timeouts.startMs;
  const spareMs = Math.max(firstSpareMs, startTimeoutMs + pingAfterMs);
  let startedAt = performance.now();
  let hasStarted = false;
  /** True once a session has used a process of the server. From then on, sessions report the ends of processes. */
  let isUsed = false;
  /** Some servers choose their era at the first request. With an unknown era, no client may get a pinged process. */
  const mustNotBeReused = (): boolean => config.era === 'auto' && !isUsed;
  /** Output from the time before the first client, which may be logged. */
  const output: string[] = [];
  const ping = createStartupPing({
    era: config.era,
    startTimeoutMs,
    onAnswered(wasSlow) {
      telemetry.emit({ type: 'server-answered', server, ...(wasSlow && { wasSlow }) });
      if (!mustNotBeReused()) return;
      // Of some servers, only one process can run.
      const renewed = running.pool.renew().then(() => {
        if (!isUsed) running.pool.addSpare(spareMs);
      });
      detach('background', renewed);
    },
    onSlow() {
      const limit = `The gateway waits up to ${formatDuration(startTimeoutMs)} (--defaults.timeouts.start).`;
      const launcher = downloaderOf(config);
      const detail = launcher === undefined ? limit : `${launcher} may be downloading the package. ${limit}`;
      telemetry.emit({ type: 'server-slow', server, detail });
    },
    onSilent(method) {
      const { message: detail, help: known } = explainSilence(method, startTimeoutMs);
      const launcher = output.length === 0 ? downloaderOf(config) : undefined;
      const command = config.address === undefined ? [config.command, ...config.args] : [];
      const help = launcher === undefined ? helpForCommand(known, command) : helpIfDownloading(launcher);
      telemetry.emit({ type: 'server-silent', server, detail, help, output });
    },
  });
  let running: RunningServer;
  return new Promise((resolve, reject) => {
    const handleSpareEnd = (event: EventOf<ServerEvent, 'spare-ended'>): void => {
      const { end } = event;
      // A remote server may close an unused connection, and is useful again once it is back.
      const isOurs = config.address === undefined;
      const lifetimeMs = performance.now() - startedAt;
      const isUseless = isOurs && !isUsed && lifetimeMs < probeMs;
      if (isOurs && ping.isOpen) {
        // Some servers exit on any request before `initialize`. That is not a fault, and the next process gets no ping.
        startedAt = performance.now();
        running.pool.addSpare(spareMs);
      } else if (!hasStarted)
        detach(
          'background',
          running.pool.close().then(() => reject(new Error(explain(end, lifetimeMs)))),
        );
      else if (isUseless) onUseless(explain(end, lifetimeMs));
      else telemetry.emit(event);
    };
    const emit = (event: ServerEvent): void => {
      if (event.type === 'spare-ended') return handleSpareEnd(event);
      if (event.type === 'server-stderr') {
        if (!isUsed) output.push(event.line);
        if (output.length > maxOutputLines) output.shift();
      }
      telemetry.emit(event);
    };
    const noteUse = (): void => {
      if (mustNotBeReused() && ping.isOpen) detach('background', running.pool.renew());
      isUsed = true;
      ping.end();
    };
    const onStarted = (): void => {
      if (hasStarted) return;
      hasStarted = true;
      ping.begin();
      const { server: opened, modern, pool } = running;
      const noting =
        <Args extends unknown[], Opened>(open: (...args: Args) => Opened) =>
        (...args: Args): Opened => {
          noteUse();
          return open(...args);
        };
      resolve({
        ...running,
        server: { ...opened, open: noting(pool.open) },
        modern: modern && { ...modern, open: noting(pool.openModern), openForProbe: noting(pool.openForProbe) },
      });
    };
    const processInterceptors: ProcessInterceptorsOf = (name, address) => [
      ...telemetry.processInterceptors(name, address),
      ping.intercept,
    ];
    running = runServer(config, setup, { ...telemetry, emit, processInterceptors }, onStarted);
    running.pool.addSpare(spareMs);
  });
}

/** Programs that download what they run. */
const downloaders = new Set(['npx', 'npm', 'pnpm', 'bunx', 'yarn', 'uvx', 'uv', 'pipx', 'docker', 'podman']);

/** The name of the program that may still be downloading the server; undefined if the server runs without one. */
function downloaderOf(config: ServerConfig): string | undefined {
  if (config.address !== undefined) return undefined;
  const name = basename(config.command);
  return downloaders.has(name) ? name : undefined;
}

function explain({ reason, detail, lastOutput = [] }: BackendEnd, lifetimeMs: number): string {
  if (reason === 'failed') return detail;
  const output = lastOutput.map((line) => `\n  | ${line}`).join('');
  const said = output === '' ? '' : ` Last output of the server:${output}`;
  const when = lifetimeMs < 1_000 ? 'right' : `${(lifetimeMs / 1_000).toFixed(1)} s`;
  return `The MCP server ended ${when} after its start. ${detail}${said}\n${helpIfEnded(lastOutput)}`;
}
