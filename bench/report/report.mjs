// Results as markdown tables: the median over the rounds, and in brackets the median of the ratios to the reference within one round.

import { unquietness } from '../lib/machine.mjs';
import { newestCells } from '../lib/results.mjs';
import { referenceOf } from '../targets.mjs';
import * as of from './measures.mjs';

const { median, number } = of;

const titles = {
  echo: 'Calls',
  paced: 'Calls at half load',
  stream: 'Calls with progress events',
  sessions: 'Sessions opened',
  'session-calls': 'Sessions with one call and no DELETE',
  idle: 'Idle sessions, each with a GET stream',
  start: 'Start',
};

/** The columns of all tables; a table has those that something was measured for. */
const columns = [
  { title: 'Per second', value: of.callsPerSecond },
  { title: 'Events per second', value: of.eventsPerSecond },
  { title: 'Median, ms', value: of.medianMs },
  { title: '99th percentile, ms', value: of.p99Ms },
  { title: 'Longest call beside, ms', value: of.longestBesideMs },
  { title: 'Gateway CPU, µs', value: of.cpuOfCalls },
  { title: 'Gateway CPU per event, µs', value: of.cpuOfEvents },
  { title: 'Redis CPU, µs', value: of.redisCpuOfCalls },
  { title: 'Redis CPU per event, µs', value: of.redisCpuOfEvents },
  { title: 'Gateway memory, MiB', value: of.memoryMib },
  { title: 'Gateway memory per session, KiB', value: of.kibPerSession },
  { title: 'from 1,000 to 2,000 sessions', value: of.kibAtMargin },
  { title: 'Redis memory per session, KiB', value: of.redisKibPerSession },
  { title: 'Listens after, ms', value: of.listenMs },
  { title: 'First answer after, ms', value: of.startMs },
];

/** @param rows of one or more runs, in order; a run begins with the row of its machine */
export function reportOf(rows) {
  const { cells, beside } = newestCells(rows);
  const measured = cells.filter(({ failed }) => failed === undefined);
  const tables = Object.entries(titles).map(([kind, title]) =>
    tableOf(
      title,
      measured.filter((cell) => cell.kind === kind),
      beside,
    ),
  );
  return [describe(rows, measured), ...tables, faultTable(cells)].filter((text) => text !== '').join('\n\n');
}

/** What a result depends on: machines, versions, how many rounds, and whether the machine was quiet. */
export function describe(rows, cells) {
  const runs = rows.filter(({ machine }) => machine !== undefined);
  if (runs.length === 0) return '';
  const { machine, backend, peers } = runs.at(-1);
  const each = (values) => [...new Set(values)].join(', ');
  const versions = Object.entries(peers).filter(([, version]) => version !== undefined);
  const rounds = [...groupBy(cells, ({ scenario, target }) => `${scenario}/${target}`).values()].map(
    (own) => own.length,
  );
  const looks = rows.filter(({ busyShare }) => busyShare !== undefined);
  const most = (key) => Math.max(0, ...looks.map((look) => look[key]));
  const busy = looks.filter((look) => unquietness(look) !== undefined);
  return [
    [
      `${each(runs.map(({ at }) => at.slice(0, 10)))}, ${machine.cpus} x ${machine.cpu}, ${machine.gib} GiB, Linux ${machine.kernel}`,
      `Node.js ${each(runs.map(({ node }) => node.slice(1)))}, commits ${each(runs.map(({ commit }) => commit ?? 'unknown'))}, ${backend} backend`,
      ...versions.map(([name, version]) => `${name} ${version}`),
      ...(rounds.length > 0
        ? [`medians of ${each([Math.min(...rounds), Math.max(...rounds)]).replace(', ', ' to ')} rounds`]
        : []),
    ].join(', '),
    `. Before the rounds: load average up to ${most('load').toFixed(1)}, up to ${(most('busyShare') * 100).toFixed(0)} % CPU use by other programs,`,
    ` ${(most('stealShare') * 100).toFixed(1)} % CPU steal${busy.length > 0 ? `; **${busy.length} of ${looks.length} rounds began on a machine that was not quiet**` : ''}.`,
  ].join('');
}

/** Everything that was not right in a cell, with how often it was. */
const faultEntries = ({ failed, faults = {}, notClosed, answers, events }) => [
  ...(failed === undefined ? [] : [[failed, 1]]),
  ...Object.entries(faults),
  ...(notClosed > 0 ? [['sessions not closed', notClosed]] : []),
  ...(answers === 0 && !(events > 0) ? [['no answers', 1]] : []),
];

/** The same as one text; empty if all was right. */
export const faultsOf = (row) =>
  faultEntries(row)
    .map(([what, times]) => `${times} x ${what}`)
    .join('; ');

/** One cell as one line, for who watches a run. */
export function lineOf(row) {
  const values = columns
    .filter(({ value }) => value(row) !== undefined)
    .map(({ title, value }) => `${title} ${number(value(row))}`);
  return [row.scenario.padEnd(24), row.target.padEnd(14), ...values, faultsOf(row)].join('  ');
}

/** A table with a row for each scenario and target. */
function tableOf(title, cells, beside) {
  if (cells.length === 0) return '';
  const used = columns.filter(({ value }) => cells.some((cell) => value(cell) !== undefined));
  const lines = [...groupBy(cells, ({ scenario, target }) => `${scenario} | ${target}`)].map(
    ([name, own]) => `| ${name} | ${used.map(({ value }) => cellText(own, value, beside)).join(' | ')} |`,
  );
  const head = `| ${title} | Target | ${used.map((column) => column.title).join(' | ')} |`;
  return [head, `|:--|:--|${'--:|'.repeat(used.length)}`, ...lines].join('\n');
}

function cellText(own, value, beside) {
  const middle = median(own.map(value));
  if (middle === undefined) return '–';
  const ratio = median(
    own.map((cell) => {
      const reference = referenceOf(cell.target, cell.kind);
      return reference === cell.target ? undefined : value(cell) / value(beside(cell, reference) ?? {});
    }),
  );
  return ratio === undefined ? number(middle) : `${number(middle)} (${ratio.toFixed(2)})`;
}

export function groupBy(values, keyOf) {
  const groups = new Map();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

/** Everything that was not right, summed over the rounds. */
function faultTable(rows) {
  const times = new Map();
  for (const row of rows) {
    for (const [what, count] of faultEntries(row)) {
      const key = `| ${row.target} | ${row.scenario} | ${what.replace(/[|\s]+/g, ' ').slice(0, 100)} |`;
      times.set(key, (times.get(key) ?? 0) + count);
    }
  }
  const lines = [...times].map(([key, count]) => `${key} ${count} |`);
  const head = ['**Deviations**', '', '| Target | Scenario | Deviation | Count |', '|:--|:--|:--|--:|'];
  return lines.length === 0 ? '' : [...head, ...lines].join('\n');
}
