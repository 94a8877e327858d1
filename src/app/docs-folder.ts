import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/**
 * Where the pages are that messages name as `docs/…`: in the package, beside the program. Undefined where they were left out, as
 * in the image.
 */
export function findDocsFolder(): string | undefined {
  const folder = join(dirname(createRequire(import.meta.url).resolve('mcp-gangway/package.json')), 'docs');
  return existsSync(folder) ? folder : undefined;
}
