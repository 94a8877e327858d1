import { createRequire } from 'node:module';

/** The version of this package. The package resolves its own name, both from the sources and from the build. */
export const version: string = (createRequire(import.meta.url)('mcp-gangway/package.json') as { version: string })
  .version;
