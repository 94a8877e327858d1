#!/usr/bin/env node
import module from 'node:module';

// Node.js 22 and later can keep what they have compiled, in the folder for temporary files: a start takes less time from the second on.
(module as { enableCompileCache?(): unknown }).enableCompileCache?.();
const { main } = await import('./app/main.ts');

await main();
