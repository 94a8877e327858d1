#!/usr/bin/env node
import { useCompileCache } from './app/compile-cache.ts';

useCompileCache();
// Loaded now, so that the cache has its code.
const { runCommand } = await import('./app/commands/run-command.ts');
await runCommand();
