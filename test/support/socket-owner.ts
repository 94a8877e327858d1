import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Finds the one of these processes that has a connection on loopback from one port to another, as Linux tells. Undefined
 * if none has it. A proxy knows by this who its client is.
 */
export function processOf(fromPort: number, toPort: number, pids: readonly number[]): number | undefined {
  const [from, to] = [fromPort, toPort].map((port) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`);
  const row = readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .find(([, local = '', remote = '']) => local.endsWith(from as string) && remote.endsWith(to as string));
  const link = `socket:[${row?.[9]}]`;
  return row && pids.find((pid) => linksOf(pid).includes(link));
}

function linksOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  } catch {
    return []; // it has just ended
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // it has just been closed
  }
}
