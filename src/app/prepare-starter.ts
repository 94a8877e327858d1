import type { Environment } from '../config/sources/environment-variables.ts';
import { starter } from '../core/backend/stdio/starter/starter.ts';

/** Starts the process that starts servers, if it does not run. This file does so by itself where it is needed. */
export function prepareStarter({ LD_LIBRARY_PATH }: Environment): void {
  // A Node.js whose libraries are not where the system looks for them needs this variable to start at all.
  if (LD_LIBRARY_PATH !== undefined) starter.environment = { LD_LIBRARY_PATH };
  starter.prepare();
}

// A server's command follows `--`. The process comes up while the rest of the program is still read.
if (process.argv.includes('--')) prepareStarter(process.env);
