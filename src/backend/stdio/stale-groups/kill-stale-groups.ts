import { readdirSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import {
  isSameProcess,
  listProcesses,
  type ProcessIdentity,
  type ProcessNamespace,
  readProcess,
} from '../processes/process-identity.ts';
import {
  type GroupJournalContents,
  gatewayOfJournal,
  journalFileName,
  maxJournalBytes,
  parseJournal,
} from './journal-format.ts';
import { findStaleGroups, type KilledGroups, killStaleGroups } from './stale-groups.ts';
import { fileErrorCode, prepareStateDirectory, readOwnFile } from './state-directory.ts';

/** What the clean-up needs. */
export interface StaleGroupCleanup {
  /** Where gateways of this user keep their notes. */
  readonly directory: string;
  /** This gateway. */
  readonly self: ProcessIdentity & ProcessNamespace;
  /** From SIGTERM to SIGKILL. */
  readonly terminateGraceMs?: number;
}

/** What was found of gateways that were killed: groups that were ended (by SIGTERM, or only by SIGKILL), and others. */
export interface StaleGroupReport extends KilledGroups {
  /** How many gateways had not ended in order. */
  readonly gateways: number;
  /** Files that are not to be trusted, each with the reason: left alone. */
  readonly ignored: readonly string[];
}

/** Stops whoever fills the directory from holding up the start. */
const maxFiles = 1_000;

/**
 * Ends what gateways of this user that were killed on this host left behind, and removes their notes (P10). Two that start
 * at once share the work: a file is taken by renaming it, which only one can. The notes of a gateway that lives are not
 * touched, nor those of another container. Resolves at once if nothing is left, else after the grace at the latest.
 * Rejects if the directory or the process table cannot be used.
 */
export async function killStaleProcessGroups({
  directory,
  self,
  terminateGraceMs = 3_000,
}: StaleGroupCleanup): Promise<StaleGroupReport> {
  prepareStateDirectory(directory);
  const ignored: string[] = [];
  const taken = readdirSync(directory)
    .slice(0, maxFiles)
    .map((name) => take(name, directory, self, (fault) => ignored.push(`${join(directory, name)}: ${fault}`)))
    .filter((found) => found !== undefined);

  const processes = taken.length > 0 ? listProcesses() : [];
  const ownGroup = readProcess(self.pid)?.group ?? 0;
  const found = taken.map(({ notes }) => findStaleGroups(notes, processes, ownGroup));
  const ends = await killStaleGroups(
    found.flatMap(({ groups }) => groups),
    terminateGraceMs,
  );
  for (const { path } of taken) rmSync(path, { force: true });
  const unknown = [...found.flatMap((each) => each.unknown), ...ends.unknown];
  return { ...ends, unknown, gateways: taken.length, ignored };
}

interface Taken {
  readonly path: string;
  readonly notes: GroupJournalContents;
}

/** Takes the file if its gateway is gone. */
function take(
  name: string,
  directory: string,
  self: ProcessIdentity & ProcessNamespace,
  onIgnored: (fault: string) => void,
): Taken | undefined {
  const path = join(directory, name);
  try {
    const holder = gatewayOfJournal(name);
    if (holder === undefined) return undefined; // `.new`, or not ours at all
    const read = readOwnFile(path, maxJournalBytes);
    const notes = 'text' in read ? parseJournal(read.text) : undefined;
    if (notes === undefined) {
      onIgnored('fault' in read ? read.fault : 'it has an unknown format');
      return undefined;
    }
    if (notes.gateway.bootId !== self.bootId) {
      unlinkSync(path); // all of it ended with the last boot
      return undefined;
    }
    // In another container the same numbers are other processes, and ours to judge neither.
    if (notes.gateway.pidNamespace !== self.pidNamespace) return undefined;
    if (isRunning(holder)) return undefined;
    const takenPath = join(directory, journalFileName(self, notes.gateway));
    renameSync(path, takenPath);
    return { path: takenPath, notes };
  } catch (error) {
    // ENOENT: another gateway that starts just now was faster
    if (fileErrorCode(error) !== 'ENOENT') onIgnored(`it cannot be taken (${fileErrorCode(error)})`);
    return undefined;
  }
}

/** A gateway that was killed stays as a zombie until its parent notices. */
function isRunning(gateway: ProcessIdentity): boolean {
  const now = readProcess(gateway.pid);
  return isSameProcess(gateway, now) && now?.isZombie === false;
}
