// Runs one load job in a process of its own, so that the load generator's work is not the gateway's.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const program = path.join(path.dirname(fileURLToPath(import.meta.url)), '../load.mjs');

/** Resolves with the job's result; never rejects: what went wrong is `failed` in the result. */
export function runJob(job, signal) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--max-semi-space-size=32', program, JSON.stringify(job)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
      killSignal: 'SIGKILL',
    });
    let isOverdue = false;
    const timer = setTimeout(() => {
      isOverdue = true;
      child.kill('SIGKILL');
    }, job.limitMs + 5_000);
    let out = '';
    let errors = '';
    child.stdout.on('data', (text) => {
      out += text;
    });
    child.stderr.on('data', (text) => {
      errors += text;
    });
    child.once('error', (error) => {
      errors += error.message; // also of an abort; `close` follows
    });
    child.once('close', (code, killedBy) => {
      clearTimeout(timer);
      const isWhole = code === 0 && out.endsWith('\n');
      const end = isOverdue ? 'ran past its limit' : `ended by ${killedBy ?? `exit ${code}`}`;
      resolve(isWhole ? JSON.parse(out) : { failed: `load process ${end} ${errors.slice(-400)}` });
    });
  });
}
