// src/backend/stdio/stale-groups: a journal of process groups, by which the next gateway ends those of a killed one.
import { readdirSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { errorCodeOf } from '../../../util/text/error-code.ts';
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
import { prepareStateDirectory, readOwnFile } from './state-directory.ts';

/** Options of the clean-up. */
export interface StaleGroupCleanup {
  /** Where the gateways of this user keep their journals. */
  readonly directory: string;
  /** This gateway. */
  readonly self: ProcessIdentity & ProcessNamespace;
  /** From SIGTERM to SIGKILL. */
  readonly terminateGraceMs?: number;
}

/**
 * Result of the clean-up after gateways that were killed: the groups ended by SIGTERM, the groups killed by SIGKILL,
 * and others.
 */
export interface StaleGroupReport extends KilledGroups {
  /** How many gateways had not ended in order. */
  readonly gateways: number;
  /** Files that cannot be trusted, each with the reason: left alone. */
  readonly ignored: readonly string[];
}

/** A user who fills the directory must not delay the start. */
const maxFiles = 1_000;

/**
 * Ends process groups left behind by killed gateways of this user on this host, and removes their journals (P10). Two
 * gateways that start at once share the work: a file is claimed by renaming it, and only one can. The journals of a
 * living gateway, or of another container, are not touched. Resolves at once if nothing is left, else after the grace
 * at the latest. Rejects if the directory or the process table cannot be used.
 */
export async function killStaleProcessGroups({
  directory,
  self,
  terminateGraceMs = 3_000,
}: StaleGroupCleanup): Promise<StaleGroupReport> {
  prepareStateDirectory(directory);
  const ignored: string[] = [];
  const claimed = readdirSync(directory)
    .slice(0, maxFiles)
    .map((name) => claimFile(name, directory, self, (fault) => ignored.push(`${join(directory, name)}: ${fault}`)))
    .filter((found) => found !== undefined);

  const processes = claimed.length > 0 ? listProcesses() : [];
  const ownGroup = readProcess(self.pid)?.group ?? 0;
  const found = claimed.map(({ journal }) => findStaleGroups(journal, processes, ownGroup));
  const ends = await killStaleGroups(
    found.flatMap(({ groups }) => groups),
    terminateGraceMs,
  );
  for (const { path } of claimed) rmSync(path, { force: true });
  const unknown = [...found.flatMap((each) => each.unknown), ...ends.unknown];
  return { ...ends, unknown, gateways: claimed.length, ignored };
}

interface ClaimedJournal {
  readonly path: string;
  readonly journal: GroupJournalContents;
}

/** Claims the file if its gateway is gone. */
function claimFile(
  name: string,
  directory: string,
  self: ProcessIdentity & ProcessNamespace,
  onIgnored: (fault: string) => void,
): ClaimedJournal | undefined {
  const path = join(directory, name);
  try {
    const owner = gatewayOfJournal(name);
    if (owner === undefined) return undefined; // `.new`, or not ours at all
    const read = readOwnFile(path, maxJournalBytes);
    const journal = 'text' in read ? parseJournal(read.text) : undefined;
    if (journal === undefined) {
      onIgnored('fault' in read ? read.fault : 'it has an unknown format');
      return undefined;
    }
    if (journal.gateway.bootId !== self.bootId) {
      unlinkSync(path); // all its groups ended with the last boot
      return undefined;
    }
    // In another container the same numbers are other processes, so this gateway cannot judge them.
    if (journal.gateway.pidNamespace !== self.pidNamespace) return undefined;
    if (isRunning(owner)) return undefined;
    const claimedPath = join(directory, journalFileName(self, journal.gateway));
    renameSync(path, claimedPath);
    return { path: claimedPath, journal };
  } catch (error) {
    // ENOENT: another gateway that starts just now was faster
    if (errorCodeOf(error) !== 'ENOENT') onIgnored(`it cannot be renamed or deleted (${errorCodeOf(error)})`);
    return undefined;
  }
}

/** A killed gateway stays a zombie until its parent reaps it. */
function isRunning(gateway: ProcessIdentity): boolean {
  const now = readProcess(gateway.pid);
  return isSameProcess(gateway, now) && now?.isZombie === false;
}
