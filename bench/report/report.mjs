// Results as markdown tables: the median over the rounds, and in brackets the median of the ratios to the reference
// within one round.
import { referenceOf } from '../targets.mjs';

const count = (row) => row.answers / row.seconds;
const latency = (row) => row.latency?.p50;
const stepOf = (row, at) => row.steps?.at(at);
const slope = ({ steps }) => {
  if (steps === undefined) return undefined;
  const [first, last] = [steps[0], steps.at(-1)];
  return (last.residentKib - first.residentKib) / (last.sessions - first.sessions);
};

const tables = [
  { title: 'Echo: calls per second', kind: 'echo', value: count },
  { title: 'Echo: median latency, ms', kind: 'echo', value: latency },
  { title: 'Echo: 99th percentile, ms', kind: 'echo', value: (row) => row.latency?.p99 },
  {
    title: 'Echo: gateway CPU seconds per 10,000 calls',
    kind: 'echo',
    value: (row) => (row.gatewayCpu / row.answers) * 1e4,
  },
  { title: 'Progress events per second, 1,000 in each call', kind: 'stream', value: (row) => row.events / row.seconds },
  {
    title: 'Gateway CPU seconds per 10,000 progress events',
    kind: 'stream',
    value: (row) => (row.gatewayCpu / row.events) * 1e4,
  },
  { title: 'Sessions opened per second', kind: 'sessions', value: count, without: ['bursts-4'] },
  { title: 'Handshake of a session, median ms', kind: 'sessions', value: latency },
];

const memory = [
  ['fewest sessions, MiB', (row) => stepOf(row, 0) && stepOf(row, 0).residentKib / 1024],
  ['most sessions, MiB', (row) => stepOf(row, -1) && stepOf(row, -1).residentKib / 1024],
  ['KiB per session', slope],
];

/** @param rows of one or more runs, in order; a run begins with the row of its machine */
export function reportOf(rows) {
  const runs = rows.filter((row) => row.machine !== undefined);
  let run = -1;
  const cells = rows.flatMap((row) => {
    if (row.machine !== undefined) run += 1;
    return row.scenario === undefined || row.failed !== undefined ? [] : [{ ...row, round: `${run}/${row.round}` }];
  });
  const start = cells.filter(({ scenario }) => scenario === 'start');
  const idle = cells.filter(({ kind }) => kind === 'idle');
  return [
    describe(runs, cells),
    ...tables.map((table) => byScenario(cells, table)),
    grid('Start of the process to its first answer, ms', start, ['start'], () => (row) => row.startMs),
    memoryTable(idle),
    faultTable(rows),
  ]
    .filter((text) => text !== '')
    .join('\n\n');
}

function describe([{ machine, node, backend, peers, at }], cells) {
  const rounds = new Set(cells.map(({ round }) => round)).size;
  const versions = Object.entries(peers).filter(([, version]) => version !== undefined);
  return [
    `${at.slice(0, 10)}, ${machine.cpus} x ${machine.cpu}, ${machine.gib} GiB, Linux ${machine.kernel}, Node.js ${node.slice(1)}, ${backend} backend`,
    ...versions.map(([name, version]) => `${name} ${version}`),
    `median of ${rounds} rounds; in brackets the ratio in the same round to \`ideal\`, or to the ideal of the same transport.`,
  ].join(', ');
}

function byScenario(cells, { title, kind, value, without = [] }) {
  const of = cells.filter((row) => row.kind === kind && !without.includes(row.scenario));
  return grid(title, of, [...new Set(of.map(({ scenario }) => scenario))], () => value);
}

function memoryTable(cells) {
  const steps = cells.flatMap((row) => row.steps.map(({ sessions }) => sessions));
  const title = `Gateway memory with ${[...new Set(steps)].join(', ')} idle sessions, each with a GET stream (children not counted)`;
  return grid(
    title,
    cells,
    memory.map(([name]) => name),
    (name) => memory.find(([of]) => of === name)[1],
    () => true,
  );
}

/** A table with a row for each of `names` and a column for each target. */
function grid(title, cells, names, picks, belongs = (row, name) => row.scenario === name) {
  const targets = [...new Set(cells.map(({ target }) => target))].sort(byImportance);
  if (targets.length === 0) return '';
  const lines = names.map((name) => {
    const value = picks(name);
    const row = cells.filter((cell) => belongs(cell, name));
    return `| ${name} | ${targets.map((target) => cellText(row, target, value)).join(' | ')} |`;
  });
  return [`**${title}**`, '', `| | ${targets.join(' | ')} |`, `|:--|${'--:|'.repeat(targets.length)}`, ...lines].join(
    '\n',
  );
}

function cellText(row, target, value) {
  const own = row.filter((cell) => cell.target === target);
  const middle = median(own.map(value));
  if (middle === undefined) return '–';
  const reference = referenceOf(target);
  const ratios = own.map((cell) => {
    const of = row.find((other) => other.target === reference && other.round === cell.round);
    return of && value(cell) / value(of);
  });
  const ratio = target === reference ? undefined : median(ratios);
  return ratio === undefined ? number(middle) : `${number(middle)} (${ratio.toFixed(2)})`;
}

function faultTable(rows) {
  const lines = rows.flatMap((row) => {
    const faults = Object.entries({
      ...row.faults,
      ...(row.failed && { [row.failed]: 1 }),
      ...(row.notClosed > 0 && { 'sessions not closed': row.notClosed }),
    });
    return faults.map(
      ([what, times]) =>
        `| ${row.target} | ${row.scenario} | ${times} x ${what.replace(/[|\s]+/g, ' ').slice(0, 100)} |`,
    );
  });
  return lines.length === 0
    ? ''
    : ['**What went wrong**', '', '| | scenario | what |', '|:--|:--|:--|', ...lines].join('\n');
}

const order = ['ours', 'ours-warm', 'ideal'];
const byImportance = (a, b) => (order.indexOf(a) + 1 || 9) - (order.indexOf(b) + 1 || 9);

function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function number(value) {
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
