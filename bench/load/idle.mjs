// The gateway's memory and CPU with idle sessions, each with a GET stream.
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds, residentKib } from '../lib/proc.mjs';
import { closeSessions, openSessions } from './client-sessions.mjs';

const samples = 5;

export async function idle({ port, pid, steps, settleMs, watchMs }) {
  const sessions = [];
  const results = [];
  for (const count of steps) {
    sessions.push(...(await openSessions(port, count - sessions.length, { onMessage: () => undefined })));
    await sleep(settleMs);
    const before = cpuSeconds(pid);
    let lowest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < samples; i++) {
      await sleep(watchMs / samples);
      lowest = Math.min(lowest, residentKib(pid));
    }
    results.push({ sessions: count, residentKib: lowest, cpuPercent: ((cpuSeconds(pid) - before) / watchMs) * 1e5 });
  }
  const broken = sessions.reduce((sum, session) => sum + session.brokenStreams, 0);
  const faults = broken > 0 ? { 'a GET stream broke': broken } : {};
  return { answers: sessions.length, steps: results, faults, notClosed: await closeSessions(sessions) };
}
