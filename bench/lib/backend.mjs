// The MCP server behind every target: the C one if it can be built, so that it costs next to nothing, else the Node one.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), '../backend');
const source = path.join(folder, 'mini.c');
const program = path.join(folder, 'mini');

/** The one in Node.js, as most servers are. */
export const nodeBackend = { name: 'Node.js', command: [process.execPath, path.join(folder, 'mini.mjs')] };

/** What the server is called in results, and its command line. */
export function prepareBackend() {
  const isBuilt = existsSync(program) && statSync(program).mtimeMs >= statSync(source).mtimeMs;
  const build = ['-O2', '-Wall', '-Wextra', '-o', program, source];
  const hasProgram = isBuilt || spawnSync('gcc', build, { timeout: 60_000 }).status === 0;
  return hasProgram ? { name: 'C', command: [program] } : nodeBackend;
}
