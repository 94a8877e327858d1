import type { Logger } from 'pino';
import { setProcessGroupListener } from '../../backend/stdio/processes/process-group.ts';
import { ownIdentity } from '../../backend/stdio/processes/process-identity.ts';
import { createGroupJournal } from '../../backend/stdio/stale-groups/group-journal.ts';
import { killStaleProcessGroups } from '../../backend/stdio/stale-groups/kill-stale-groups.ts';
import { stateDirectory } from '../runtime-directory.ts';

/**
 * Ends the processes that killed gateways left on this host, before new servers need the same files and ports (P10).
 * Logs one line with the result.
 * @returns false if this system cannot clean up, so that there is no use in recording processes either
 */
export async function cleanUpProcesses(logger: Logger): Promise<boolean> {
  const self = ownIdentity();
  if (self === undefined) {
    logger.debug('this system has no /proc: server processes of a killed gateway are not cleaned up at the next start');
    return false;
  }
  try {
    const { gateways, ignored, ...groups } = await killStaleProcessGroups({
      directory: stateDirectory(process.env),
      self,
    });
    for (const file of ignored)
      logger.warn({ file }, 'ignored a process record that another user may have written; remove it');
    const isClean = groups.survived.length + groups.unknown.length === 0;
    const found = Object.values(groups).flat().length;
    const text =
      found === 0
        ? 'a gateway was killed before; none of its server processes is left'
        : 'cleaned up the server processes that a killed gateway left running';
    if (gateways > 0) logger[isClean ? 'info' : 'warn']({ gateways, ...groups }, text);
    return true;
  } catch (error) {
    logger.warn({ why: (error as Error).message }, 'cannot clean up the server processes of a killed gateway');
    return false;
  }
}

/** Records the processes that this gateway starts, for the clean-up at the next start, until a graceful exit. */
export function journalGroups(onUnable: (why: string) => void): void {
  const self = ownIdentity();
  // In a container, all processes end with process 1.
  if (self === undefined || self.pid === 1) return;
  const notes = createGroupJournal({ directory: stateDirectory(process.env), self, onUnable });
  setProcessGroupListener(notes);
  process.on('exit', notes.close);
}
