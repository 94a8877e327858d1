// What a result depends on beside the programs: machine, versions, backend, time, and whether the machine has anything else to do.
import { spawnSync } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ourProgram } from '../targets.mjs';
import { stealSeconds } from './proc.mjs';

const watchMs = 1_000;
/** Of all cores, while nothing of ours runs. */
const maxBusyShare = 0.1;
const maxStealShare = 0.02;

export const describeMachine = (backend, targets) => ({
  machine: {
    cpus: os.cpus().length,
    cpu: os.cpus()[0].model,
    gib: Math.round(os.totalmem() / 2 ** 30),
    kernel: os.release(),
  },
  node: process.version,
  backend: backend.name,
  commit: commitOf(ourProgram),
  peers: Object.fromEntries(targets.filter(({ isPeer }) => isPeer).map(({ name, version }) => [name, version()])),
  at: new Date().toISOString(),
});

/** The commit that a program was built from, as far as its folder says; `-dirty` if there are changes beside. */
function commitOf(program) {
  const { stdout } = spawnSync('git', ['describe', '--always', '--dirty', '--exclude', '*'], {
    cwd: path.dirname(program),
    encoding: 'utf8',
  });
  return stdout?.trim() || undefined;
}

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
