// The pages of the results: what programs write stands between markers.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './command.mjs';

const docs = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../docs');

/** Puts `text` between `<!-- name: … -->` and `<!-- end of name -->` of a page. */
export function writeBetween(name, text, { page = 'benchmarks.md', ...options } = {}) {
  const file = path.join(docs, page);
  writeFileSync(file, putBetween(readFileSync(file, 'utf8'), name, text, { page, ...options }));
}

/**
 * A page with `text` between the markers of that name. Throws if it has none; or if something would be lost, a run of a part having taken the
 * place of all, unless that `isReplaced` knowingly.
 */
export function putBetween(whole, name, text, { page = 'benchmarks.md', isReplaced = false } = {}) {
  const begin = new RegExp(`<!-- ${name}: [^\\n]*-->\\n`).exec(whole);
  const end = whole.indexOf(`<!-- end of ${name} -->`);
  if (begin === null || end < begin.index) throw new Error(`the page lacks its markers of ${name}`);
  const from = begin.index + begin[0].length;
  const lost = isReplaced ? [] : lostIn(whole.slice(from, end), text);
  if (lost.length > 0)
    throw new UsageError(
      `docs/${page} has more in its ${name}: ${lost.join('; ')}; it is left as it is. Write nonetheless: --replace`,
    );
  return `${whole.slice(0, from)}\n${text}\n\n${whole.slice(end)}`;
}

/** What is in one text and not in the other one. */
function lostIn(old, text) {
  const before = extentOf(old);
  const after = extentOf(text);
  const fewer = Object.keys(before).filter((key) => after[key] < before[key]);
  return fewer.map((key) => `${after[key]} ${key} in place of ${before[key]}`);
}

/** The rows of the tables in a text, and the values in them. */
function extentOf(text) {
  const rows = text.split('\n').filter((line) => /^\|(?!:?--)/.test(line));
  const cells = rows.flatMap((row) => row.split('|').slice(2, -1));
  return { 'table rows': rows.length, values: cells.filter((cell) => !/^ *(–|not measured)? *$/.test(cell)).length };
}
