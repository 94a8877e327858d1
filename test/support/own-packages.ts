import { join } from 'node:path';

/** A copy of the sources, such as one with deliberate errors, uses its own packages and not those that npm has linked. */
export const ownPackages = [
  { find: /^@mcp-gangway\/(.+)$/, replacement: join(import.meta.dirname, '../../packages/$1/src/index.ts') },
];
