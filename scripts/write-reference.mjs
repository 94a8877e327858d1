// Writes docs/configuration.md from the table of options and docs/metrics.md from the catalogue of metrics. Reads the built
// program, since Node.js 20 runs no TypeScript: npm run build && node scripts/write-reference.mjs
import { writeFileSync } from 'node:fs';
import { renderMetricsReference } from '../dist/metrics-reference.js';
import { renderReference } from '../dist/reference.js';

writeFileSync(new URL('../docs/configuration.md', import.meta.url), renderReference());
writeFileSync(new URL('../docs/metrics.md', import.meta.url), renderMetricsReference());
