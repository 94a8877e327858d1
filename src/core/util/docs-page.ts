import { createRequire } from 'node:module';

const { homepage } = createRequire(import.meta.url)('mcp-gangway/package.json') as { homepage: string };

/**
 * Returns the URL of a page of the docs, for messages. An image has no docs, and users of npx do not know where theirs
 * are.
 * @param page below `docs`, such as `reference/metrics.md`
 */
export const docsPage = (page: string): string => `${homepage}/blob/main/docs/${page}`;
