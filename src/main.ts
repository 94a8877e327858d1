#!/usr/bin/env node
import { useCompileCache } from './app/compile-cache.ts';

useCompileCache();
// A server's command follows `--`. What starts it starts now, beside the rest of this program.
if (process.argv.includes('--')) (await import('./app/prepare-starter.ts')).prepareStarter(process.env);
// Loaded now, so that the cache has its code.
const { runCommand } = await import('./app/commands/run-command.ts');
await runCommand();
