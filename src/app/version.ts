import { createRequire } from 'node:module';

/** The version of this package, which it knows by its own name, from its sources and from what is built of them. */
export const version: string = (createRequire(import.meta.url)('mcp-gangway/package.json') as { version: string })
  .version;
