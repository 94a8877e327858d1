// Writes the generated pages of docs/reference, and generated comments: npm run docs. It bundles the TypeScript first, which Node.js 20 cannot run.
import { rmSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

// Below the root, so that the bundle finds package.json and the dependencies.
const bundle = `.reference-${process.pid}.mjs`;
try {
  await build({
    entryPoints: ['scripts/docs/pages.ts'],
    outfile: bundle,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    logLevel: 'warning',
  });
  const { pages, commentedFiles } = await import(pathToFileURL(bundle).href);
  for (const [name, render] of pages) writeFileSync(`docs/reference/${name}`, render());
  for (const [name, render] of commentedFiles) writeFileSync(name, render());
} finally {
  rmSync(bundle, { force: true });
}
