// Writes docs/configuration.md from the table of options. Reads the built program, since Node.js 20 runs no TypeScript:
// npm run build && node scripts/write-reference.mjs
import { writeFileSync } from 'node:fs';
import { renderReference } from '../dist/reference.js';

writeFileSync(new URL('../docs/configuration.md', import.meta.url), renderReference());
