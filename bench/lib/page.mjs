// The pages of the results: what programs write stands between markers.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const docs = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../docs');

/** Puts `text` between `<!-- name: … -->` and `<!-- end of name -->` of a page. Throws if it has no such markers. */
export function writeBetween(page, name, text) {
  const file = path.join(docs, page);
  const whole = readFileSync(file, 'utf8');
  const begin = new RegExp(`<!-- ${name}: [^\\n]*-->\\n`).exec(whole);
  const end = whole.indexOf(`<!-- end of ${name} -->`);
  if (begin === null || end < begin.index) throw new Error(`the page lacks its markers of ${name}`);
  const from = begin.index + begin[0].length;
  writeFileSync(file, `${whole.slice(0, from)}\n${text}\n\n${whole.slice(end)}`);
}
