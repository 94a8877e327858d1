// A module of src as the build has it, for benchmarks of one part.
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

/** What the given lines of TypeScript export; their imports are relative to the root of the repository. */
export async function importSource(contents) {
  const outfile = path.join(tmpdir(), `gangway-source-${process.pid}.mjs`);
  const resolveDir = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
  const common = { bundle: true, platform: 'node', format: 'esm', target: 'node20', outfile };
  buildSync({ stdin: { contents, resolveDir }, ...common });
  try {
    return await import(outfile);
  } finally {
    rmSync(outfile);
  }
}
