// Echo calls at a rate that leaves the target idle for a part of the time: what a call takes when nobody waits in a queue.
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../lib/random.mjs';
import { runClosedLoop } from './closed-loop.mjs';
import { openEcho } from './echo.mjs';
import { startMeter } from './meter.mjs';
import { Tally } from './tally.mjs';

const calibrateMs = 1_000;
const drainMs = 6_000;
/** Calls that wait for a slot. With more, the target is slower than it was a moment before. */
const maxWaiting = 10_000;

/** `share`: the part of the target's own highest rate, which is measured first with all slots busy. */
export async function paced(job) {
  const { makeSlots, close } = await openEcho(job);
  const busy = await runClosedLoop({ ...job, runMs: Math.min(job.runMs, calibrateMs) }, makeSlots);
  const fullRate = busy.answers / busy.seconds;
  const result = await runPaced(job, fullRate * job.share, makeSlots);
  const faults = { ...busy.faults, ...result.faults };
  return { ...result, faults, fullRate, notClosed: await close() };
}

/**
 * Starts calls at random times, `rate` a second on average. A latency counts from the time at which the call was due, also if the
 * load generator or the target was late. The event loop turns all the time, since its timers are too coarse.
 */
async function runPaced(job, rate, makeSlots) {
  const tally = new Tally();
  const free = makeSlots(tally);
  const slotCount = free.length;
  const due = [];
  const random = createRandom();
  // Between calls of many independent clients.
  const gapMs = () => (-Math.log(1 - random()) * 1_000) / rate;
  const read = startMeter(job);
  const until = performance.now() + job.runMs;
  let next = performance.now() + gapMs();
  tally.isRecording = true;
  const start = (slot, dueAt) =>
    slot(() => {
      free.push(slot);
      if (due.length > 0) start(free.shift(), due.shift());
    }, dueAt);
  await new Promise((resolve) => {
    const turn = () => {
      const now = performance.now();
      for (; next <= now && next < until; next += gapMs()) due.push(next);
      while (free.length > 0 && due.length > 0) start(free.shift(), due.shift());
      if (due.length > maxWaiting) tally.fault('calls are due faster than they are answered');
      if (now < until && due.length <= maxWaiting) setImmediate(turn);
      else resolve();
    };
    turn();
  });
  const used = read();
  const limit = performance.now() + drainMs;
  while (free.length < slotCount && performance.now() < limit) await sleep(10);
  if (free.length < slotCount) tally.fault('no answer');
  const { answers, latency, faults } = tally;
  return { answers, latency, faults, ...used };
}
