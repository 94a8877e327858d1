import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import { StoreDirectoryError } from './store-directory-error.ts';

/** Repairs a directory, and prints why it could not. */
const program = `
const [library, directory] = process.argv.slice(1);
require(library).ClassicLevel.repair(directory).catch((error) => process.stdout.write(String(error.cause ?? error)));
`;

/**
 * Repairs the files of a LevelDB. Rejects if that is not possible; see `reasonTextOf`. Some damage ends the process that
 * repairs it, by an assertion of LevelDB, so a process of its own does it (docs/decisions/0199).
 */
export async function repairFiles(directory: string): Promise<void> {
  const library = createRequire(import.meta.url).resolve('classic-level');
  const child = spawn(process.execPath, ['-e', program, library, directory], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [failure, code] = await Promise.all([text(child.stdout), ended]);
  if (failure !== '') throw new Error(failure);
  if (code === 0) return;
  throw new StoreDirectoryError(
    `The files in ${directory} are damaged and cannot be repaired, so the sessions in them are lost. ` +
      'Remove this directory, or use another one (replay.store).',
  );
}
