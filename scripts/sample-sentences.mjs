// Draws sentences of README, docs and error texts, so that a reader can mark the odd ones.
//
// node scripts/sample-sentences.mjs [count] [seed]
//
// Takes prose and table cells of at least five words, and texts for users from the source. Leaves out code, and the
// pages that tests and benchmarks write. The same seed draws the same sentences of the same texts.
import { readdirSync, readFileSync } from 'node:fs';

const [count = 300, seed = 1] = process.argv.slice(2).map(Number);
const written = new Set(['docs/benchmarks.md', 'docs/soak.md']);
/** The source with texts for users that no page repeats: configuration errors, advice, log lines and start failures. */
const sourceFolders = [
  'src/config',
  'src/app',
  'src/core/backend',
  'src/core/ops',
  'src/features/console',
  'packages/console/src',
];

const filesOf = (folder, ending) =>
  readdirSync(folder, { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((path) => path.endsWith(ending))
    .sort();

const pages = ['README.md', ...filesOf('docs', '.md')].filter((page) => !written.has(page));

/** Splits the text of a page into its sentences and table cells, with the number of their line. */
function* sentencesIn(page) {
  let isCode = false;
  let paragraph = '';
  let paragraphLine = 0;
  const lines = readFileSync(page, 'utf8').split('\n');
  const flush = function* () {
    for (const sentence of paragraph.split(/(?<=[.!?:])\s+(?=[A-Z`*[])/)) yield { page, line: paragraphLine, sentence };
    paragraph = '';
  };
  for (const [index, line] of [...lines, ''].entries()) {
    if (line.trimStart().startsWith('```')) isCode = !isCode;
    const isTable = line.trimStart().startsWith('|');
    const isBreak = isCode || isTable || /^\s*($|#|<|```|[-*] |\d+\. )/.test(line);
    if (isBreak) yield* flush();
    if (isCode || line.trimStart().startsWith('```') || /^\s*(#|<)/.test(line)) continue;
    if (isTable) {
      for (const cell of line.split(/(?<!\\)\|/)) yield { page, line: index + 1, sentence: cell };
    } else {
      if (paragraph === '') paragraphLine = index + 1;
      paragraph += ` ${line.trim().replace(/^([-*]|\d+\.) /, '')}`;
    }
  }
  yield* flush();
}

/** Finds the string literals of a source file that read like text, with `…` in place of inserted values. */
function* textsIn(page) {
  const source = readFileSync(page, 'utf8').replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*/gm, (comment) =>
    comment.replace(/./g, ' '),
  );
  for (const { 0: literal, index } of source.matchAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\\n]|\\.)*`/g)) {
    const text = literal.slice(1, -1).replace(/\$\{[^}]*\}/g, '…');
    if (text.includes('${') || !/[a-z]+ [a-z]+ .*[a-z]+ [a-z]+/.test(text)) continue;
    const line = source.slice(0, index).split('\n').length;
    for (const sentence of text.split(/(?<=[.!?])\s+(?=[A-Z])/)) yield { page, line, sentence };
  }
}

const found = [
  ...pages.flatMap((page) => [...sentencesIn(page)]),
  ...sourceFolders.flatMap((folder) => filesOf(folder, '.ts')).flatMap((path) => [...textsIn(path)]),
]
  .map((each) => ({ ...each, sentence: each.sentence.trim() }))
  .filter(({ sentence }) => /[a-z]/i.test(sentence) && sentence.split(/\s+/).length >= 5);
const all = [...new Map(found.toReversed().map((each) => [each.sentence, each])).values()].toReversed();

/** A generator of numbers from 0 to 1 (mulberry32). */
function createRandom(state) {
  let at = state;
  return () => {
    at = (at + 0x6d2b79f5) | 0;
    let mixed = Math.imul(at ^ (at >>> 15), 1 | at);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = createRandom(seed);
const drawn = [];
for (let left = Math.min(count, all.length); left > 0; left -= 1)
  drawn.push(...all.splice(Math.floor(random() * all.length), 1));
for (const [index, { page, line, sentence }] of drawn.entries())
  process.stdout.write(`${index + 1}. ${page}:${line}: ${sentence}\n`);
