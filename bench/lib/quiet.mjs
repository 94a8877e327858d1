// Whether the machine has anything else to do: what is measured beside it says little.
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { stealSeconds } from './proc.mjs';

const watchMs = 1_000;
/** Of all cores, while nothing of ours runs. */
export const maxBusyShare = 0.1;
export const maxStealShare = 0.02;

/** Watches the machine for a second: its load average, and the shares of its time that were used, and taken by other guests. */
export async function watchMachine() {
  const before = { ...cpuTimes(), steal: stealSeconds() };
  await sleep(watchMs);
  const after = { ...cpuTimes(), steal: stealSeconds() };
  const all = after.all - before.all;
  const rounded = (value) => Math.round(value * 1000) / 1000;
  return {
    load: rounded(os.loadavg()[0]),
    busyShare: rounded((after.busy - before.busy) / all),
    stealShare: rounded(((after.steal - before.steal) * 1000) / all),
  };
}

/** What to say of a machine that is not quiet; undefined if it is. */
export const unquietness = ({ busyShare, stealShare }) =>
  busyShare > maxBusyShare || stealShare > maxStealShare
    ? `the machine is not quiet: ${percent(busyShare)} of its time were used by others, ${percent(stealShare)} stolen`
    : undefined;

const percent = (share) => `${(share * 100).toFixed(0)} %`;

/** In milliseconds, summed over the cores. */
function cpuTimes() {
  const times = os.cpus().map((cpu) => cpu.times);
  const busy = times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0);
  return { busy, all: busy + times.reduce((sum, { idle }) => sum + idle, 0) };
}
