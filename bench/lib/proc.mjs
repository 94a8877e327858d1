// What Linux says in /proc about processes: their descendants, CPU time and memory.
import { readdirSync, readFileSync } from 'node:fs';

const ticksPerSecond = 100; // USER_HZ, on every Linux that Node.js runs on

/** The text of a file of /proc; empty if its process is gone. */
function read(file) {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return '';
    throw error;
  }
}

function stat(pid) {
  const text = read(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  const [state, parent, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state, parent: Number(parent), cpuSeconds: (Number(fields[9]) + Number(fields[10])) / ticksPerSecond };
}

export function isAlive(pid) {
  const found = stat(pid);
  return found !== undefined && found.state !== 'Z';
}

/** CPU seconds of one process, user and system, all threads, without its children. */
export const cpuSeconds = (pid) => stat(pid)?.cpuSeconds ?? 0;

/** Resident set size in KiB. */
export const residentKib = (pid) => Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);

/** The pids of all living descendants. */
export function descendants(root) {
  const children = new Map();
  for (const name of readdirSync('/proc')) {
    const found = /^\d+$/.test(name) ? stat(name) : undefined;
    if (found === undefined || found.state === 'Z') continue;
    children.set(found.parent, [...(children.get(found.parent) ?? []), Number(name)]);
  }
  const all = [];
  for (const open = [root]; open.length > 0; ) {
    const more = children.get(open.pop()) ?? [];
    all.push(...more);
    open.push(...more);
  }
  return all;
}

/** Seconds that other guests of this machine's host took from it. */
export const stealSeconds = () =>
  Number(read('/proc/stat').split('\n')[0].trim().split(/\s+/)[8] ?? 0) / ticksPerSecond;
