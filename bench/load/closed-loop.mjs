// Keeps slots busy: each makes one call after the other, for a time. Not up to a count: a fast target would be measured for less of it.
import { setTimeout as sleep } from 'node:timers/promises';
import { startMeter } from './meter.mjs';
import { Tally } from './tally.mjs';

const maxFaults = 100;
const defaultDrainMs = 6_000;

/**
 * Warms up, then measures. `slots`: functions that make one call and call back when it is over.
 * @returns rates and costs of the measured time, and all faults, also those outside of it
 */
export async function runClosedLoop(job, makeSlots) {
  const { warmMs, runMs, drainMs = defaultDrainMs } = job;
  const tally = new Tally();
  const slots = makeSlots(tally);
  let isStopping = false;
  let busy = slots.length;
  const idle = new Promise((resolve) => {
    const turn = (slot) => {
      if (!isStopping && tally.faultCount < maxFaults) {
        slot(() => turn(slot));
      } else if (--busy === 0) resolve();
    };
    for (const slot of slots) turn(slot);
  });
  await Promise.race([sleep(warmMs), idle]);
  const read = startMeter(job);
  tally.isRecording = true;
  await Promise.race([sleep(runMs), idle]);
  tally.isRecording = false;
  const used = read();
  isStopping = true;
  await Promise.race([idle, sleep(drainMs)]);
  for (let i = 0; i < busy; i++) tally.fault('no answer');
  const { answers, events, latency, faults } = tally;
  return { answers, events, latency, faults, ...used };
}
