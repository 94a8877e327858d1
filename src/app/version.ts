import { readFileSync } from 'node:fs';

/** The version of this package; the file lies beside `src` and beside `dist`. */
export const version: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
