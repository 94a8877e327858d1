import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Environment } from '../../../config/sources/environment-variables.ts';

/**
 * The directory for the sockets by which gateways of this user on this host connect to each other. Its name contains the
 * user id, because `su` and `sudo` can keep the variable of another user.
 */
export function linkDirectory(environment: Environment): string {
  const runtime = environment['XDG_RUNTIME_DIR'] ?? '';
  return join(isAbsolute(runtime) ? runtime : tmpdir(), `mcp-gangway-${process.geteuid?.()}-link`);
}
