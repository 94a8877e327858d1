import { readdirSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isSame, listProcesses, type Place, type ProcessIdentity, readProcess } from '../processes/process-identity.ts';
import { holderOf, maxNotesBytes, type Notes, notesName, parseNotes } from './journal-format.ts';
import { type EndedGroups, endGroups, findLeftGroups } from './stale-groups.ts';
import { codeOf, prepareStateDirectory, readOwnFile } from './state-directory.ts';

/** What the clean-up needs. */
export interface CleanUp {
  /** Where gateways of this user keep their notes. */
  readonly directory: string;
  /** This gateway. */
  readonly self: ProcessIdentity & Place;
  /** From SIGTERM to SIGKILL. */
  readonly terminateGraceMs?: number;
}

/** What was found of gateways that were killed: groups that were ended (by SIGTERM, or only by SIGKILL), and others. */
export interface LeftBehind extends EndedGroups {
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
export async function endLeftBehind({ directory, self, terminateGraceMs = 3_000 }: CleanUp): Promise<LeftBehind> {
  prepareStateDirectory(directory);
  const ignored: string[] = [];
  const taken = readdirSync(directory)
    .slice(0, maxFiles)
    .map((name) => take(name, directory, self, (fault) => ignored.push(`${join(directory, name)}: ${fault}`)))
    .filter((found) => found !== undefined);

  const processes = taken.length > 0 ? listProcesses() : [];
  const ownGroup = readProcess(self.pid)?.group ?? 0;
  const found = taken.map(({ notes }) => findLeftGroups(notes, processes, ownGroup));
  const ends = await endGroups(
    found.flatMap(({ groups }) => groups),
    terminateGraceMs,
  );
  for (const { path } of taken) rmSync(path, { force: true });
  const unknown = [...found.flatMap((each) => each.unknown), ...ends.unknown];
  return { ...ends, unknown, gateways: taken.length, ignored };
}

interface Taken {
  readonly path: string;
  readonly notes: Notes;
}

/** Takes the file if its gateway is gone. */
function take(
  name: string,
  directory: string,
  self: ProcessIdentity & Place,
  onIgnored: (fault: string) => void,
): Taken | undefined {
  const path = join(directory, name);
  try {
    const holder = holderOf(name);
    if (holder === undefined) return undefined; // `.new`, or not ours at all
    const read = readOwnFile(path, maxNotesBytes);
    const notes = 'text' in read ? parseNotes(read.text) : undefined;
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
    const takenPath = join(directory, notesName(self, notes.gateway));
    renameSync(path, takenPath);
    return { path: takenPath, notes };
  } catch (error) {
    // ENOENT: another gateway that starts just now was faster
    if (codeOf(error) !== 'ENOENT') onIgnored(`it cannot be taken (${codeOf(error)})`);
    return undefined;
  }
}

/** A gateway that was killed stays as a zombie until its parent notices. */
function isRunning(gateway: ProcessIdentity): boolean {
  const now = readProcess(gateway.pid);
  return isSame(gateway, now) && now?.isZombie === false;
}
