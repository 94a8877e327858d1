import { detach } from '../../../util/boundary.ts';
import { processesOf, residentBytes } from './process-usage.ts';

/** Interval between two checks of all processes. */
const checkIntervalMs = 500;

/** The checks take no more than this share of the time, however many processes there are. */
const maxShare = 0.05;

/** The limit of a process group: its processes together may use `maxBytes`. */
interface WatchedGroup {
  readonly maxBytes: number;
  readonly onOver: (bytes: number) => void;
}

const watched = new Map<number, WatchedGroup>();
let isChecking = false;

/** Whether memory can be watched here: only Linux' /proc reports it. */
export function canWatchMemory(): boolean {
  try {
    return residentBytes(process.pid) > 0;
  } catch {
    return false; // expected: no /proc
  }
}

/**
 * Calls `onOver`, once, when the processes of a group together hold more memory than `maxBytes`. It counts resident
 * pages, with shared pages in each process (proc(5), VmRSS). Use between two checks is not seen.
 * @returns ends the watch
 */
export function watchMemory(group: number, maxBytes: number, onOver: (bytes: number) => void): () => void {
  const entry: WatchedGroup = { maxBytes, onOver };
  watched.set(group, entry);
  if (!isChecking) detach('backend', checkRepeatedly());
  return () => {
    if (watched.get(group) === entry) watched.delete(group);
  };
}

/** Checks for as long as a group is watched. */
async function checkRepeatedly(): Promise<void> {
  isChecking = true;
  while (watched.size > 0) {
    const from = performance.now();
    try {
      await checkAll();
    } catch {
      // Too many open files for once. /proc itself was readable at the start.
    }
    const pauseMs = Math.max(checkIntervalMs, (performance.now() - from) / maxShare);
    await new Promise<void>((resolve) => setTimeout(resolve, pauseMs).unref());
  }
  isChecking = false;
}

async function checkAll(): Promise<void> {
  const bytes = new Map<number, number>();
  for await (const { group, pid } of processesOf(watched)) {
    bytes.set(group, (bytes.get(group) ?? 0) + residentBytes(pid));
  }
  for (const [group, entry] of [...watched]) {
    const used = bytes.get(group) ?? 0;
    if (used <= entry.maxBytes || watched.get(group) !== entry) continue;
    watched.delete(group);
    entry.onOver(used);
  }
}
