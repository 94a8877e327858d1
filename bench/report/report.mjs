// Results as markdown tables: the median over the rounds, and in brackets the median of the ratios to the reference
// within one round; in tables of added time, the median of the differences.
import { maxBusyShare, maxStealShare } from '../lib/quiet.mjs';
import { newestCells } from '../lib/results.mjs';
import { referenceOf } from '../targets.mjs';
import { families } from './families.mjs';
import * as of from './measures.mjs';

const { median, number } = of;

const tables = [
  { title: 'Calls per second', kind: 'echo', value: of.callsPerSecond },
  { title: 'Median latency, ms', kind: 'echo', value: of.medianMs },
  { title: '99th percentile, ms', kind: 'echo', value: of.p99Ms },
  { title: 'Gateway CPU seconds per 10,000 calls', kind: 'echo', value: of.cpuOfCalls },
  { title: 'Calls per second per core of the gateway', kind: 'echo', value: of.callsPerCore },
  { title: 'Gateway memory during these calls, MiB', kind: 'echo', value: of.memoryMib },
  { title: 'Median latency at half load, µs (added)', kind: 'paced', value: of.medianUs, isAdded: true },
  { title: '99th percentile at half load, µs (added)', kind: 'paced', value: of.p99Us, isAdded: true },
  { title: 'Calls per second at half load', kind: 'paced', value: of.callsPerSecond },
  { title: 'Progress events per second (1,000 events in each call)', kind: 'stream', value: of.eventsPerSecond },
  { title: 'Gateway CPU seconds per 10,000 progress events', kind: 'stream', value: of.cpuOfEvents },
  { title: 'Gateway memory during these events, MiB', kind: 'stream', value: of.memoryMib },
  { title: 'Sessions opened per second', kind: 'sessions', value: of.callsPerSecond, without: ['bursts-4'] },
  { title: 'Session handshake, median, ms', kind: 'sessions', value: of.medianMs },
  { title: 'Session handshake, 99th percentile, ms', kind: 'sessions', value: of.p99Ms },
  { title: 'Sessions with one call and no DELETE per second', kind: 'session-calls', value: of.callsPerSecond },
  { title: 'Duration of such a session, median, ms', kind: 'session-calls', value: of.medianMs },
  { title: 'Duration of such a session, 99th percentile, ms', kind: 'session-calls', value: of.p99Ms },
  { title: 'Gateway CPU seconds per 10,000 such sessions', kind: 'session-calls', value: of.cpuOfCalls },
  { title: 'Gateway memory after such sessions, MiB', kind: 'session-calls', value: of.memoryMib },
  { title: 'Time from process start to the first answer, ms', kind: 'start', value: of.startMs },
];

/** @param rows of one or more runs, in order; a run begins with the row of its machine */
export function reportOf(rows) {
  const { cells: all, beside } = newestCells(rows);
  const cells = all.filter(({ failed }) => failed === undefined);
  const sections = families.map(({ title, isPlain, names }) => {
    const ofFamily = cells.filter(({ target }) => names.includes(target));
    // What ideals are measured with for the sake of other families says nothing here.
    const told = new Set(ofFamily.filter(({ target }) => target.startsWith('ours')).map(({ scenario }) => scenario));
    const own = ofFamily.filter(({ scenario }) => isPlain || told.has(scenario));
    const text = join([
      ...tables.map((table) => byScenario(own, names, table, beside)),
      ...['idle', 'hibernated'].map((scenario) => memoryTable(own, names, scenario, beside)),
    ]);
    return text === '' ? '' : `<details>\n<summary>${title}</summary>\n\n${text}\n\n</details>`;
  });
  return join([describe(rows, cells), ...sections, faultTable(all)]);
}

const join = (texts) => texts.filter((text) => text !== '').join('\n\n');

/** What a result depends on: machines, versions, how many rounds, and whether the machine was quiet. */
export function describe(rows, cells) {
  const runs = rows.filter(({ machine }) => machine !== undefined);
  if (runs.length === 0) return '';
  const { machine, backend, peers } = runs.at(-1);
  const each = (values) => [...new Set(values)].join(', ');
  const versions = Object.entries(peers).filter(([, version]) => version !== undefined);
  const counts = new Map();
  for (const { kind, scenario, target } of cells) {
    if (kind !== undefined) counts.set(`${scenario}/${target}`, (counts.get(`${scenario}/${target}`) ?? 0) + 1);
  }
  const rounds = [...counts.values()];
  const looks = rows.filter(({ busyShare }) => busyShare !== undefined);
  const most = (key) => Math.max(0, ...looks.map((look) => look[key]));
  const busy = looks.filter(({ busyShare, stealShare }) => busyShare > maxBusyShare || stealShare > maxStealShare);
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

function byScenario(cells, names, { title, kind, value, isAdded, without = [] }, beside) {
  const own = cells.filter((row) => row.kind === kind && !without.includes(row.scenario));
  const rows = [...new Set(own.map(({ scenario }) => scenario))].map((scenario) => ({
    label: scenario,
    cells: own.filter((cell) => cell.scenario === scenario),
    value,
    isAdded,
  }));
  return grid(title, names, rows, beside);
}

function memoryTable(cells, names, scenario, beside) {
  const own = cells.filter((row) => row.scenario === scenario);
  const counts = [...new Set(own.flatMap(({ steps }) => steps.map(({ sessions }) => sessions)))].sort((a, b) => a - b);
  const rows = [
    ...counts.map((count) => ({
      label: `${count.toLocaleString('en')} ${count === 1 ? 'session' : 'sessions'}, MiB`,
      cells: own,
      value: of.mibWith(count),
    })),
    { label: 'KiB per session', cells: own, value: of.kibPerSession },
    { label: 'KiB per session from 200 to 1,000', cells: own, value: of.kibAtMargin },
  ];
  const title =
    scenario === 'idle' ? 'idle sessions, each with a GET stream' : 'hibernating sessions, each with a GET stream';
  return own.length === 0 ? '' : grid(`Gateway memory with ${title} (without child processes)`, names, rows, beside);
}

/** A table with a row for each of `rows` and a column for each target that has something in one. */
function grid(title, names, rows, beside) {
  const used = names.filter((name) => rows.some(({ cells }) => cells.some(({ target }) => target === name)));
  if (used.length === 0) return '';
  const isMeasured = ({ cells, value }) => cells.some((cell) => value(cell) !== undefined);
  const lines = rows
    .filter(isMeasured)
    .map((row) => `| ${row.label} | ${used.map((name) => cellText(row, name, beside)).join(' | ')} |`);
  return [`**${title}**`, '', `| | ${used.join(' | ')} |`, `|:--|${'--:|'.repeat(used.length)}`, ...lines].join('\n');
}

function cellText({ cells, value, isAdded }, target, beside) {
  const own = cells.filter((cell) => cell.target === target);
  const middle = median(own.map(value));
  if (middle === undefined) return '–';
  const compared = median(
    own.map((cell) => {
      const reference = referenceOf(target, cell.kind);
      if (reference === target) return undefined;
      const other = value(beside(cell, reference) ?? {});
      return isAdded ? value(cell) - other : value(cell) / other;
    }),
  );
  if (compared === undefined) return number(middle);
  return `${number(middle)} (${isAdded ? signed(compared) : compared.toFixed(2)})`;
}

const signed = (value) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(0)}`;

/** Everything that was not right, summed over the rounds. */
function faultTable(rows) {
  const times = new Map();
  for (const row of rows) {
    const faults = {
      ...row.faults,
      ...(row.failed && { [row.failed]: 1 }),
      ...(row.notClosed > 0 && { 'sessions not closed': row.notClosed }),
    };
    for (const [what, count] of Object.entries(faults)) {
      const key = `| ${row.target} | ${row.scenario} | ${what.replace(/[|\s]+/g, ' ').slice(0, 100)} |`;
      times.set(key, (times.get(key) ?? 0) + count);
    }
  }
  const lines = [...times].map(([key, count]) => `${key} ${count} |`);
  return lines.length === 0
    ? ''
    : ['**Deviations**', '', '| Target | Scenario | Deviation | Count |', '|:--|:--|:--|--:|', ...lines].join('\n');
}
