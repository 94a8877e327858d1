import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import { StoreDirectoryError } from './disk-errors.ts';

/** Reads a directory whole, repaired if that is asked for, and prints why it could not. */
const program = `
const [library, directory, mustRepair] = process.argv.slice(1);
const { ClassicLevel } = require(library);
async function read() {
  if (mustRepair) await ClassicLevel.repair(directory);
  const database = new ClassicLevel(directory);
  for await (const _ of database.iterator({ keyEncoding: 'buffer', valueEncoding: 'buffer' }));
  await database.close();
}
read().catch((error) => process.stdout.write(String(error.cause ?? error)));
`;

/**
 * Runs that program in a process of its own, because some damage ends the process that reads or repairs it, by an
 * assertion of LevelDB (docs/decisions/0199).
 * @returns what it printed; undefined if the process was ended
 */
async function readApart(directory: string, mustRepair: boolean): Promise<string | undefined> {
  const library = createRequire(import.meta.url).resolve('classic-level');
  const words = ['-e', program, library, directory, ...(mustRepair ? ['repair'] : [])];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [printed, code] = await Promise.all([text(child.stdout), ended]);
  return code === 0 ? printed : undefined;
}

/** True if reading the files of a LevelDB does not end the process. It may fail. */
export const isSafeToRead = async (directory: string): Promise<boolean> =>
  (await readApart(directory, false)) !== undefined;

/** Repairs the files of a LevelDB. Rejects if they cannot be read even then; see `reasonTextOf`. */
export async function repairFiles(directory: string): Promise<void> {
  const failure = await readApart(directory, true);
  if (failure === '') return;
  if (failure !== undefined) throw new Error(failure);
  throw new StoreDirectoryError(
    `The files in ${directory} are damaged and cannot be repaired, so the sessions in them are lost. ` +
      'Remove this directory, or use another one (replay.store).',
  );
}
