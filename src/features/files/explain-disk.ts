import type { StoreUnavailable } from '../../core/store/store-unavailable.ts';
import { reasonTextOf } from './level-errors.ts';

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
