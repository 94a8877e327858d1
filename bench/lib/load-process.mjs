// Runs one load job in a process of its own, so that the load generator's work is not the gateway's.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const program = path.join(path.dirname(fileURLToPath(import.meta.url)), '../load.mjs');

/** Resolves with the job's result; never rejects: what went wrong is `failed` in the result. */
export const runJob = (job, signal) =>
  new Promise((resolve) => {
    const limits = { timeout: job.limitMs + 5_000, killSignal: 'SIGKILL', maxBuffer: 1e7, signal };
    execFile(
      process.execPath,
      ['--max-semi-space-size=32', program, JSON.stringify(job)],
      limits,
      (error, out, errors) =>
        resolve(
          error === null
            ? JSON.parse(out)
            : { failed: `load process ended by ${error.signal ?? error.code} ${errors.slice(-400)}` },
        ),
    );
  });
