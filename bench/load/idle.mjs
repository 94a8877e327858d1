// The gateway's memory and CPU with idle sessions, each with a GET stream.
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds, descendants, residentKib } from '../lib/proc.mjs';
import { closeSessions, openSessions } from './client-sessions.mjs';
import { sumOf } from './meter.mjs';

const samples = 5;
const lookMs = 250;
const hibernateLimitMs = 60_000;

/** `hibernates`: what is measured are sessions whose processes have all ended. */
export async function idle({ ports, path, pids, steps, settleMs, watchMs, hibernates }) {
  const sessions = [];
  const results = [];
  for (const count of steps) {
    sessions.push(...(await openSessions(ports, count - sessions.length, { path, onMessage: () => undefined })));
    if (hibernates) await noProcesses(pids);
    await sleep(settleMs);
    const before = sumOf(pids, cpuSeconds);
    let lowest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < samples; i++) {
      await sleep(watchMs / samples);
      lowest = Math.min(lowest, sumOf(pids, residentKib));
    }
    const cpuPercent = ((sumOf(pids, cpuSeconds) - before) / watchMs) * 1e5;
    results.push({ sessions: count, residentKib: lowest, cpuPercent });
  }
  const broken = sessions.reduce((sum, session) => sum + session.brokenStreams, 0);
  const faults = broken > 0 ? { 'a GET stream broke': broken } : {};
  return { answers: sessions.length, steps: results, faults, notClosed: await closeSessions(sessions) };
}

async function noProcesses(pids) {
  const until = performance.now() + hibernateLimitMs;
  while (pids.some((pid) => descendants(pid).length > 0)) {
    if (performance.now() > until) throw new Error('sessions do not hibernate');
    await sleep(lookMs);
  }
}
