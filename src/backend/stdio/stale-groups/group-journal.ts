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

/** What the notes of a gateway need. */
export interface GroupJournalOptions {
  /** See `prepareStateDirectory`. */
  readonly directory: string;
  /** The gateway. */
  readonly self: ProcessIdentity & ProcessNamespace;
  /** How often the file is told that the gateway lives. */
  readonly aliveMs?: number;
  /** The file is written anew when it has twice as many bytes as there is to say, but not below this. */
  readonly rewriteBytes?: number;
  /** Groups cannot be noted any more; one clear sentence. Told once at most. */
  onUnable(why: string): void;
}

/** The notes of one gateway. */
export interface GroupJournal extends ProcessGroupListener {
  /** Removes the file: the gateway ends in order and leaves nothing. */
  close(): void;
}

/** Created by us and by nobody before: not through a link that somebody put there. */
const create = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Notes each living process group in a file, so that the next gateway can end what this one leaves behind if it is killed
 * (P10). One small write for each start and each end, without fsync: what a power failure loses is gone with its processes.
 * The file is made with the first group. Never throws: a gateway that cannot write its notes does without.
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
  let isOver = false;

  const write = (text: string): void => {
    if (file === undefined) return;
    bytes += writeSync(file, text, bytes); // not O_APPEND, with which `aliveOffset` could not be written over
  };

  /** Under another name first, so that no reader and no kill -9 ever meets half of it. */
  const writeAnew = (): void => {
    const text = formatJournal({ gateway: self, aliveTicks: nowTicks(), groups: [...groups.values()] });
    // half of it, as lines are added until it is twice as long
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

  const attempt = (what: () => void): void => {
    if (isOver) return;
    try {
      what();
    } catch (error) {
      stop();
      onUnable((error as Error).message);
    }
  };

  const stop = (): void => {
    isOver = true;
    clearInterval(timer);
    if (file !== undefined) closeSync(file);
    file = undefined;
  };

  const note = (line: string): void => {
    if (bytes + line.length > rewriteAtBytes) writeAnew();
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
        note(startedLine(leader));
      }),
    ended: (pid) =>
      attempt(() => {
        if (groups.delete(pid)) note(endedLine(pid));
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
