// Sessions opened in bursts, then all deleted.
import { setTimeout as sleep } from 'node:timers/promises';
import { McpSession } from '../lib/mcp-session.mjs';
import { closeSessions } from './client-sessions.mjs';
import { startMeter } from './meter.mjs';
import { Tally } from './tally.mjs';

const maxFaults = 20;

/** `restMs` after each burst is what a gateway with warm spares has to start the next ones. */
export async function sessions(job) {
  const { ports, inflight, restMs, maxCount, runMs } = job;
  const tally = new Tally();
  tally.isRecording = true;
  const open = async () => {
    const session = new McpSession(ports);
    const startedAt = performance.now();
    try {
      await session.open();
      tally.answered(performance.now() - startedAt);
    } catch (error) {
      tally.fault(error.message);
    }
    return session;
  };
  const opened = [];
  const until = performance.now() + runMs;
  const read = startMeter(job);
  while (opened.length < maxCount && performance.now() < until && tally.faultCount < maxFaults) {
    opened.push(...(await Promise.all(Array.from({ length: inflight }, open))));
    if (restMs > 0) await sleep(restMs);
  }
  const used = read();
  const notClosed = await closeSessions(opened);
  const { answers, latency, faults } = tally;
  return { answers, latency, faults, notClosed, ...used };
}
