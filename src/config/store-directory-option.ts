import { accessSync, constants, lstatSync } from 'node:fs';
import { resolve } from 'node:path';
import type { GatewayOptions } from './options/options.ts';

const filePrefix = 'file:';

/** The image uses this form, so that it also starts for a user who may not write to its volume. */
const writablePrefix = 'file-if-writable:';

/** The directory in which a gateway without Redis keeps its sessions; undefined for memory, and with Redis. */
export function storeDirectoryOf({
  replay: { store },
  cluster,
}: Pick<GatewayOptions, 'replay' | 'cluster'>): string | undefined {
  if (cluster.redis !== undefined) return undefined;
  if (store.startsWith(filePrefix)) return resolve(store.slice(filePrefix.length));
  if (!store.startsWith(writablePrefix)) return undefined;
  const directory = resolve(store.slice(writablePrefix.length));
  return isWritable(directory) ? directory : undefined;
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    // The store uses no link, and no directory of another user.
    const found = lstatSync(directory);
    const user = process.geteuid?.();
    return !found.isSymbolicLink() && (user === 0 || found.uid === 0 || found.uid === user);
  } catch {
    return false; // it is missing, or belongs to another user, or the file system is read-only
  }
}
