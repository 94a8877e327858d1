import { accessSync, constants, lstatSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import type { GatewayOptions } from './options/options.ts';
import type { Environment } from './sources/environment-variables.ts';

/** Where a gateway without Redis keeps its sessions in files. */
export interface StorePlace {
  readonly directory: string;
  /** True if sessions are kept in memory where the directory cannot be used. */
  readonly isOptional: boolean;
}

const filePrefix = 'file:';

/** The image uses this form, so that it also starts for a user who may not write to its volume. */
const writablePrefix = 'file-if-writable:';

/** The place of a gateway's sessions; undefined for memory, and with Redis. */
export function storePlaceOf(
  { replay: { store }, cluster }: Pick<GatewayOptions, 'replay' | 'cluster'>,
  environment: Environment,
): StorePlace | undefined {
  if (cluster.redis !== undefined) return undefined;
  if (store === 'auto') {
    const directory = userDirectory(environment);
    return directory === undefined ? undefined : { directory, isOptional: true };
  }
  if (store.startsWith(filePrefix)) return { directory: resolve(store.slice(filePrefix.length)), isOptional: false };
  if (!store.startsWith(writablePrefix)) return undefined;
  const directory = resolve(store.slice(writablePrefix.length));
  return isWritable(directory) ? { directory, isOptional: false } : undefined;
}

/** The directory for what programs of this user remember (XDG Base Directory Specification). */
export function userDirectory({ XDG_STATE_HOME: state = '', HOME: home = '' }: Environment): string | undefined {
  if (isAbsolute(state)) return join(state, 'mcp-gangway');
  return isAbsolute(home) ? join(home, '.local', 'state', 'mcp-gangway') : undefined;
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
