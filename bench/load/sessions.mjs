// Sessions opened in bursts, then all deleted; none of their processes may be left.
import { setTimeout as sleep } from 'node:timers/promises';
import { McpSession } from '../lib/mcp-session.mjs';
import { descendants } from '../lib/proc.mjs';
import { within } from '../lib/wait.mjs';
import { closeSessions } from './client-sessions.mjs';
import { startMeter, sumOf } from './meter.mjs';
import { Tally } from './tally.mjs';

const maxFaults = 20;
const reapLimitMs = 6_000;

/** `restMs` after each burst is what a gateway with warm spares has to start the next ones. */
export async function sessions({ ports, pids, inflight, restMs, maxCount, runMs }) {
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
  const children = () => sumOf(pids, (pid) => descendants(pid).length);
  const before = children();
  const opened = [];
  const until = performance.now() + runMs;
  const read = startMeter(pids);
  while (opened.length < maxCount && performance.now() < until && tally.faultCount < maxFaults) {
    opened.push(...(await Promise.all(Array.from({ length: inflight }, open))));
    if (restMs > 0) await sleep(restMs);
  }
  const used = read();
  const notClosed = await closeSessions(opened);
  await within(reapLimitMs, () => children() <= before);
  const left = Math.max(0, children() - before);
  if (left > 0) tally.fault(`${left} processes left of ${opened.length} sessions`);
  const { answers, latency, faults } = tally;
  return { answers, latency, faults, notClosed, ...used };
}
