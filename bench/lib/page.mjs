// The page of the results: what programs write stands between markers.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const docs = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../docs');
const page = path.join(docs, 'benchmarks.md');
export const imagesFolder = path.join(docs, 'images');

/** Puts `text` between `<!-- name: … -->` and `<!-- end of name -->`. Throws if the page lacks them. */
export function writeBetween(name, text) {
  const whole = readFileSync(page, 'utf8');
  const begin = new RegExp(`<!-- ${name}: [^\\n]*-->\\n`).exec(whole);
  const end = whole.indexOf(`<!-- end of ${name} -->`);
  if (begin === null || end < begin.index) throw new Error(`${page} lacks its markers of ${name}`);
  writeFileSync(page, `${whole.slice(0, begin.index + begin[0].length)}\n${text}\n\n${whole.slice(end)}`);
}
