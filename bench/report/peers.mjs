// The comparison with others as Markdown: figures of the newest run, what each was seen to do, and how each is installed.
import { unquietness } from '../lib/quiet.mjs';
import { newestCells } from '../lib/results.mjs';
import * as of from './measures.mjs';
import { describe } from './report.mjs';

const { median, number } = of;

/** What is read from the cells of a scenario. `isAdded`: as the difference to the ideal of the same round. `best`: which value other programs spoil least. */
const figures = [
  { title: 'Calls per second', kind: 'echo', value: of.callsPerSecond, best: Math.max },
  { title: 'Processor time per call, µs', kind: 'echo', value: (row) => of.cpuOfCalls(row) * 100 },
  { title: 'Memory during these calls, MiB', kind: 'echo', value: of.memoryMib },
  { title: 'Added median, µs', kind: 'paced', value: of.medianUs, isAdded: true },
  { title: 'Added 99th percentile, µs', kind: 'paced', value: of.p99Us, isAdded: true },
  { title: 'Memory per further session, KiB', kind: 'idle', value: of.kibPerSession },
  { title: 'Listens after, ms', kind: 'start', value: of.listenMs },
  { title: 'First answer after, ms', kind: 'start', value: of.startMs },
];

/** @param candidates targets by name, with their `title`, in the order of the tables */
export function comparisonOf(rows, candidates, trials) {
  const parts = [
    figuresOf(rows, candidates),
    trialsOf(
      rows.filter(({ trial }) => trial !== undefined),
      candidates,
      Object.assign({}, ...trials.map(({ rows: of }) => of)),
    ),
    installsOf(candidates),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function figuresOf(rows, candidates) {
  const { cells, beside } = newestCells(rows);
  if (cells.length === 0) return '';
  // Of rounds on a busy machine, the best says most, and latencies say nothing.
  const isQuiet = !rows.some((row) => row.busyShare !== undefined && unquietness(row) !== undefined);
  const middleOf = (values, { best = Math.min, isAdded }) => {
    const found = values.filter(Number.isFinite);
    if (isQuiet || found.length === 0) return median(found);
    return isAdded ? undefined : best(...found);
  };
  const lines = Object.entries(candidates).flatMap(([name, { title }]) => {
    const own = cells.filter(({ target }) => target === name);
    const texts = figures.map((figure) => {
      const { kind, value, isAdded } = figure;
      const values = own
        .filter((cell) => cell.kind === kind)
        .map((cell) => (isAdded ? value(cell) - value(beside(cell, 'ideal') ?? {}) : value(cell)));
      const middle = middleOf(values, figure);
      return middle === undefined || (isAdded && name === 'ideal') ? '–' : wholeOf(middle);
    });
    return own.length === 0 ? [] : [`| ${title} | ${texts.join(' | ')} |`];
  });
  const head = `| Gateway | ${figures.map(({ title }) => title).join(' | ')} |`;
  const note = isQuiet ? '' : ' Therefore, each figure is that of the best round, and latencies are left out.';
  const about = isQuiet ? describe(rows, cells) : describe(rows, cells).replace('medians of', 'the best of');
  return `${about}${note}\n\n${[head, `|:--|${'--:|'.repeat(figures.length)}`, ...lines].join('\n')}`;
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

function groupBy(values, keyOf) {
  const groups = new Map();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

function installsOf(candidates) {
  const lines = Object.values(candidates).flatMap(({ title, version, install, language }) =>
    version?.() === undefined ? [] : [`| ${title} | ${version()} | ${language} | \`${install}\` |`],
  );
  return ['| Program | Version | Language | Installed by |', '|:--|:--|:--|:--|', ...lines].join('\n');
}
