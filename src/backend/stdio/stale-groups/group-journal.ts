import { closeSync, constants, openSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessGroupListener } from '../processes/process-group.ts';
import { nowTicks, type ProcessIdentity, type ProcessNamespace, readProcess } from '../processes/process-identity.ts';
import {
  aliveOffset,
  aliveText,
  endedLine,
  formatJournal,
  journalFileName,
  maxJournalBytes,
  startedLine,
} from './journal-format.ts';
import { prepareStateDirectory } from './state-directory.ts';

/** Options of a gateway's journal. */
export interface GroupJournalOptions {
  /** See `prepareStateDirectory`. */
  readonly directory: string;
  /** This gateway. */
  readonly self: ProcessIdentity & ProcessNamespace;
  /** Interval at which the file records that the gateway lives. */
  readonly aliveMs?: number;
  /** The file is rewritten when it is twice as long as its content needs, but not below this size. */
  readonly rewriteBytes?: number;
  /** Groups can no longer be recorded; one clear sentence. Called once at most. */
  onUnable(why: string): void;
}

/** The journal of one gateway. */
export interface GroupJournal extends ProcessGroupListener {
  /** Removes the file: the gateway ends in order and leaves no groups. */
  close(): void;
}

/** The file must be created by us and by nobody before: not through a link that somebody put there. */
const create = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Records each living process group in a file. If this gateway is killed, the next one can end the groups left behind
 * (P10). Each start and each end is one small write without fsync: a power failure that loses writes also ends the
 * processes. The file is created with the first group. Never throws: a gateway that cannot write its journal works
 * without it.
 */
export function createGroupJournal({
  directory,
  self,
  aliveMs = 2_000,
  rewriteBytes = 64 * 1024,
  onUnable,
}: GroupJournalOptions): GroupJournal {
  const path = join(directory, journalFileName(self));
  const groups = new Map<number, ProcessIdentity>();
  let file: number | undefined;
  let bytes = 0;
  let rewriteAtBytes = 0;
  let isStopped = false;

  const write = (text: string): void => {
    if (file === undefined) return;
    // not O_APPEND, with which the field at `aliveOffset` could not be overwritten
    bytes += writeSync(file, text, bytes);
  };

  /** Writes under another name first, so that no reader sees half a file, even after kill -9. */
  const rewriteFile = (): void => {
    const text = formatJournal({ gateway: self, aliveTicks: nowTicks(), groups: [...groups.values()] });
    // Half of the limit, as lines are added until the file is twice as long.
    if (text.length > maxJournalBytes / 2) throw new Error('There are too many process groups to record.');
    prepareStateDirectory(directory);
    removeFile(`${path}.new`);
    const written = openSync(`${path}.new`, create, 0o600);
    writeSync(written, text);
    renameSync(`${path}.new`, path);
    if (file !== undefined) closeSync(file);
    file = written;
    bytes = text.length;
    rewriteAtBytes = Math.max(rewriteBytes, 2 * bytes);
  };

  const attempt = (action: () => void): void => {
    if (isStopped) return;
    try {
      action();
    } catch (error) {
      stop();
      onUnable((error as Error).message);
    }
  };

  const stop = (): void => {
    isStopped = true;
    clearInterval(timer);
    if (file !== undefined) closeSync(file);
    file = undefined;
  };

  const appendLine = (line: string): void => {
    if (bytes + line.length > rewriteAtBytes) rewriteFile();
    else write(line);
  };

  const timer = setInterval(
    () =>
      attempt(() => {
        if (file !== undefined && groups.size > 0) writeSync(file, aliveText(nowTicks()), aliveOffset);
      }),
    aliveMs,
  ).unref();

  return {
    started: (pid) =>
      attempt(() => {
        const leader = readProcess(pid);
        if (leader === undefined) return;
        groups.set(pid, leader);
        appendLine(startedLine(leader));
      }),
    ended: (pid) =>
      attempt(() => {
        if (groups.delete(pid)) appendLine(endedLine(pid));
      }),
    close: () =>
      attempt(() => {
        const hasFile = file !== undefined;
        stop();
        if (hasFile) removeFile(path);
      }),
  };
}

function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
