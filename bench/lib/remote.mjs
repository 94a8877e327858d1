// The servers of a run that run by themselves: one for each transport that a target needs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const program = path.join(path.dirname(fileURLToPath(import.meta.url)), '../backend/remote.mjs');

/** Starts a server for each of these transports. */
export async function startRemotes(transports) {
  const urls = {};
  const children = [];
  for (const transport of new Set(transports)) {
    const child = spawn(process.execPath, [program, transport], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const [line] = await once(child.stdout, 'data');
    urls[transport] = `${line}`.trim();
  }
  return {
    /** Where they are, by transport. */
    urls,
    async stop() {
      for (const child of children) {
        const exited = once(child, 'exit');
        child.kill();
        await exited;
      }
    },
  };
}
