#!/usr/bin/env node
import nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

useCompileCache();
// A server's command follows `--`. What starts it starts now, beside the rest of this program.
if (process.argv.includes('--')) (await import('./app/prepare-starter.ts')).prepareStarter(process.env);
// Loaded now, so that the cache has its code.
const [{ runCommand }, { features }] = await Promise.all([
  import('./app/commands/run-command.ts'),
  import('./features.ts'),
]);
await runCommand(features);

/**
 * Lets Node.js keep the compiled code of the gateway, which shortens later starts. Does nothing before Node.js 22.8.
 * Node.js runs the code that it finds in the folder, so the folder is beside `dist`: whoever can write to it can change
 * the program itself. Where this process may not write, such as in the image, there is no cache
 * (docs/decisions/0085). `NODE_COMPILE_CACHE` and `NODE_DISABLE_COMPILE_CACHE` take precedence.
 */
function useCompileCache(): void {
  if (!('enableCompileCache' in nodeModule) || typeof nodeModule.enableCompileCache !== 'function') return;
  nodeModule.enableCompileCache(fileURLToPath(new URL('../.compiled', import.meta.url)));
}
