// The gateway's memory with idle sessions, each with a GET stream.
import { setTimeout as sleep } from 'node:timers/promises';
import { descendants, residentKib } from '../lib/proc.mjs';
import { within } from '../lib/wait.mjs';
import { closeSessions, openSessions } from './client-sessions.mjs';
import { sumOf } from './meter.mjs';

const samples = 5;
const hibernateLimitMs = 60_000;
const lookMs = 250;

/** `hibernates`: what is measured are sessions whose processes have all ended. */
export async function idle({ ports, path, pids, redisPid, steps, settleMs, watchMs, hibernates }) {
  const sessions = [];
  const results = [];
  for (const count of steps) {
    sessions.push(...(await openSessions(ports, count - sessions.length, { path, onMessage: () => undefined })));
    if (hibernates) await noProcesses(pids);
    await sleep(settleMs);
    let lowest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < samples; i++) {
      await sleep(watchMs / samples);
      lowest = Math.min(lowest, sumOf(pids, residentKib));
    }
    const redis = redisPid === undefined ? {} : { redisKib: residentKib(redisPid) };
    results.push({ sessions: count, residentKib: lowest, ...redis });
  }
  const broken = sessions.reduce((sum, session) => sum + session.brokenStreams, 0);
  const faults = broken > 0 ? { 'a GET stream broke': broken } : {};
  return { answers: sessions.length, steps: results, faults, notClosed: await closeSessions(sessions) };
}

/** The starter of a gateway stays. */
async function noProcesses(pids) {
  const areGone = () => pids.every((pid) => descendants(pid).length <= 1);
  const isOver = await within(hibernateLimitMs, areGone, lookMs);
  if (!isOver) throw new Error('sessions do not hibernate');
}
