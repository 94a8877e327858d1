// The comparison with others as Markdown: figures of the newest run, what each was seen to do, and how each is installed.
import { newestCells } from '../lib/results.mjs';
import * as of from './measures.mjs';
import { describe, groupBy } from './report.mjs';

const { median, number } = of;

/** What is read from the cells of a scenario. `isAdded`: as the difference to the ideal of the same round. */
const figures = [
  { title: 'Calls per second', kind: 'echo', value: of.callsPerSecond },
  { title: 'Processor time per call, µs', kind: 'echo', value: of.cpuOfCalls },
  { title: 'Memory during these calls, MiB', kind: 'echo', value: of.memoryMib },
  { title: 'Added median, µs', kind: 'paced', value: (row) => of.medianMs(row) * 1e3, isAdded: true },
  { title: 'Added 99th percentile, µs', kind: 'paced', value: (row) => of.p99Ms(row) * 1e3, isAdded: true },
  { title: 'Memory per further session, KiB', kind: 'idle', value: of.kibPerSession },
  { title: 'Listens after, ms', kind: 'start', value: of.listenMs },
  { title: 'First answer after, ms', kind: 'start', value: of.startMs },
];

/** @param candidates targets by name, with their `title`, in the order of the tables */
export function comparisonOf(rows, candidates, trials) {
  const tried = rows.filter(({ trial }) => trial !== undefined);
  const questions = Object.assign({}, ...trials.map(({ rows: of }) => of));
  const parts = [figuresOf(rows, candidates), trialsOf(tried, candidates, questions), installsOf(candidates)];
  return parts.filter((part) => part !== '').join('\n\n');
}

function figuresOf(rows, candidates) {
  const { cells, beside } = newestCells(rows);
  if (cells.length === 0) return '';
  const lines = Object.entries(candidates).flatMap(([name, { title }]) => {
    const own = cells.filter(({ target }) => target === name);
    const texts = figures.map(({ kind, value, isAdded }) => {
      const values = own
        .filter((cell) => cell.kind === kind)
        .map((cell) => (isAdded ? value(cell) - value(beside(cell, 'ideal') ?? {}) : value(cell)));
      const middle = median(values);
      return middle === undefined || (isAdded && name === 'ideal') ? '–' : wholeOf(middle);
    });
    return own.length === 0 ? [] : [`| ${title} | ${texts.join(' | ')} |`];
  });
  const head = `| Gateway | ${figures.map(({ title }) => title).join(' | ')} |`;
  return `${describe(rows, cells)}\n\n${[head, `|:--|${'--:|'.repeat(figures.length)}`, ...lines].join('\n')}`;
}

const wholeOf = (value) => (value < 0 ? `−${number(-value)}` : number(value));

/** Yes and no as one table, and what was seen as another one: a line for each thing that was seen of some. */
function trialsOf(rows, candidates, questions) {
  const newest = new Map(rows.map((row) => [`${row.trial}/${row.target}`, row]));
  const names = Object.keys(candidates).filter((name) => rows.some(({ target }) => target === name));
  if (names.length === 0) return '';
  const table = Object.entries(questions).map(([trial, question]) => {
    const words = names
      .map((name) => newest.get(`${trial}/${name}`))
      .map((row) => (row ? (row.isDone ? 'yes' : 'no') : '–'));
    return `| ${question} | ${words.join(' | ')} |`;
  });
  const seen = Object.entries(questions).map(([trial, question]) => {
    const by = groupBy(names, (name) => newest.get(`${trial}/${name}`)?.seen);
    by.delete(undefined);
    const texts = [...by].map(([what, who]) => `${who.map((name) => candidates[name].title).join(', ')}: ${what}`);
    return `| ${question} | ${texts.join('. ')} |`;
  });
  const days = [...new Set(rows.map(({ at }) => at.slice(0, 10)))].join(', ');
  return [
    `Tried on ${days}.`,
    '',
    `| Trial | ${names.map((name) => candidates[name].title).join(' | ')} |`,
    `|:--|${':--|'.repeat(names.length)}`,
    ...table,
    '',
    '| Trial | What was seen |',
    '|:--|:--|',
    ...seen,
  ].join('\n');
}

function installsOf(candidates) {
  const lines = Object.values(candidates).flatMap(({ title, version, install, language }) =>
    version?.() === undefined ? [] : [`| ${title} | ${version()} | ${language} | \`${install}\` |`],
  );
  return ['| Program | Version | Language | Installed by |', '|:--|:--|:--|:--|', ...lines].join('\n');
}
