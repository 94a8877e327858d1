import type { StoreUnavailable } from '../../core/store/store-unavailable.ts';
import { errorCodeOf } from '../../core/util/text/error-code.ts';

/** The failure to open a database has the failure of LevelDB as its cause. */
const rootOf = (error: unknown): unknown => (error instanceof Error && error.cause !== undefined ? error.cause : error);
const codeOf = (error: unknown): string => errorCodeOf(rootOf(error));

/** True if another process, or another store of this process, has opened the same files. */
export const isInUse = (error: unknown): boolean => codeOf(error) === 'LEVEL_LOCKED';

/** True if files are damaged, or missing. */
export const isDamage = (error: unknown): boolean =>
  codeOf(error) === 'LEVEL_CORRUPTION' || reasonTextOf(error) === 'No such file or directory';

/** What LevelDB says about a failure, without the path of the file. */
export const reasonTextOf = (error: unknown): string => /[^:]*$/.exec(String(rootOf(error)))?.[0].trim() ?? '';

const noRoom = new Set(['No space left on device', 'Disk quota exceeded', 'File too large']);

/** Why a write has failed. LevelDB tells it only in its text. */
export const unavailabilityOf = (error: unknown): StoreUnavailable['reason'] =>
  noRoom.has(reasonTextOf(error)) ? 'full' : 'refused';

/** Why the files of the store cannot be written, and the remedy. */
export function explainDisk({ reason, cause }: StoreUnavailable): { readonly detail: string; readonly help: string } {
  const why = reasonTextOf(cause);
  if (reason === 'full') {
    return {
      detail: `There is no room for the files of the store (${why}). New sessions are refused, and streams wait.`,
      help: 'Free space on the disk, or raise its limit. The gateway tries again, and then continues.',
    };
  }
  return {
    detail: `The files of the store cannot be written (${why}). New sessions are refused, and streams wait.`,
    help: 'Check the disk and the permissions of the directory. The gateway tries again, and then continues.',
  };
}

/** An error for the operator: the directory of the store cannot be used. */
export class StoreDirectoryError extends Error {
  override readonly name = 'StoreDirectoryError';
}
