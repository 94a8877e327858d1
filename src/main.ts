#!/usr/bin/env node
import nodeModule, { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { requireCompiled } from './app/compiled-code.ts';

const { runCommand, features } = loadStart();
await runCommand(features);

/**
 * Loads `start.ts` with the compiled code that an earlier start has kept. Node.js runs the code that it finds in the
 * folder, so the folder is beside `dist`: whoever can write to it can change the program itself. Where this process may
 * not write, such as in the image, nothing is kept (docs/decisions/0085). Since Node.js 22.8, Node.js does all this, and
 * `NODE_COMPILE_CACHE` takes precedence. `NODE_DISABLE_COMPILE_CACHE` ends it in all versions; before 22.8, only
 * then does `--enable-source-maps` have an effect.
 */
function loadStart(): typeof import('./start.ts') {
  const file = fileURLToPath(new URL('./start.cjs', import.meta.url));
  const folder = fileURLToPath(new URL('../.compiled', import.meta.url));
  if ('enableCompileCache' in nodeModule && typeof nodeModule.enableCompileCache === 'function')
    nodeModule.enableCompileCache(folder);
  else if (process.env['NODE_DISABLE_COMPILE_CACHE'] === undefined) return requireCompiled(file, folder);
  return createRequire(import.meta.url)(file);
}
