// The growth curves, as data: along what they go, which lines they have, and what the cost of a unit is that must not grow.
import { cpuOfCalls, cpuOfEvents } from './report/measures.mjs';
import { shortened } from './scenarios.mjs';
import { ours, targets } from './targets.mjs';

const kib = 1024;
const mib = 1024 * kib;
const named = (name, target = targets[name]) => ({ name, ...target });
const times = { warmMs: 1_500, runMs: 1_500, limitMs: 180_000 };
const many = { more: ['--max-sessions', '10000'] };

/** With nothing under way; each session has a GET stream. One process is measured at all its steps. */
const idleAt = (most) => ({
  ...{ name: `idle-${most}`, kind: 'idle', limitMs: 300_000, settleMs: 1_500, watchMs: 1_000 },
  steps: [1, 50, 200, 500, 1_000, 2_000].filter((count) => count <= most),
});

const echoAmong = (sessions) => ({
  ...{ name: `among-${sessions}`, kind: 'echo', bytes: 100, payload: 'string' },
  ...{ sessions, inflight: 1, callers: 16, listens: true },
  ...times,
});

/** A body may have 4 MiB in all. */
const mostBytes = 4 * mib - 4 * kib;
const echoOf = (payload) => (bytes) => ({
  ...{ name: `payload-${bytes}-${payload}`, kind: 'echo', sessions: 4, inflight: 1, payload },
  ...{ bytes: Math.min(bytes, mostBytes) },
  ...times,
});

/** A call of a million events takes several seconds, and is waited for. */
const streamOf = (events) => ({
  ...{ name: `events-${events}`, kind: 'stream', sessions: 1, events, drainMs: 90_000 },
  ...times,
  ...(events >= 100_000 && { runMs: 4_000 }),
});

const clusterOf = (instances) => named(`ours-cluster-${instances}`, ours({ store: 'cluster', instances }));

/** Each line has a `name`, a scenario and a target for each `x` up to `most`, and the cost of a unit in a row of results. */
export const axes = {
  sessions: {
    title: 'Gateway memory per idle session, KiB',
    note: 'each session has a GET stream; growth since the first session',
    x: { label: 'sessions', ticks: [50, 200, 500, 1_000, 2_000] },
    lines: [
      { name: 'ours', target: named('ours-many'), scenarioAt: () => idleAt(2_000) },
      { name: 'ideal', target: named('ideal'), scenarioAt: () => idleAt(2_000) },
      { name: 'supergateway', target: named('supergateway'), scenarioAt: () => idleAt(500) },
      { name: 'mcp-proxy', target: named('mcp-proxy'), scenarioAt: () => idleAt(500) },
    ],
    cost: ({ steps: [first, ...others] = [] }, count) => {
      const step = others.find(({ sessions }) => sessions === count);
      return step && (step.residentKib - first.residentKib) / (count - first.sessions);
    },
  },
  'among-sessions': {
    title: 'Gateway CPU per call by number of sessions, µs',
    note: 'calls of 100 B to the sessions in turn, 16 at a time',
    x: {
      label: 'sessions, each with a GET stream',
      ticks: [1, 16, 100, 1_000, 2_000, 5_000],
    },
    lines: [
      { name: 'ours, STDIO', target: named('ours-many'), scenarioAt: echoAmong, most: 2_000 },
      { name: 'ideal, STDIO', target: named('ideal'), scenarioAt: echoAmong, most: 2_000 },
      {
        name: 'ours, HTTP',
        target: named('ours-http-many', ours({ isRemote: true, ...many })),
        scenarioAt: echoAmong,
      },
      { name: 'ideal, HTTP', target: named('ideal-http'), scenarioAt: echoAmong },
      { name: 'supergateway', target: named('supergateway'), scenarioAt: echoAmong, most: 100 },
    ],
    cost: cpuOfCalls,
  },
  payload: {
    title: 'Gateway CPU per KiB of payload, µs',
    note: 'echo calls in four sessions, one at a time in each',
    x: { label: 'KiB in a call', unit: kib, ticks: [100, kib, 8 * kib, 64 * kib, 256 * kib, mib, 4 * mib] },
    lines: [
      { name: 'ours, one string', target: named('ours'), scenarioAt: echoOf('string') },
      { name: 'ideal, one string', target: named('ideal'), scenarioAt: echoOf('string') },
      { name: 'ours, many tokens', target: named('ours'), scenarioAt: echoOf('tokens') },
      { name: 'ours, words', target: named('ours'), scenarioAt: echoOf('words') },
      { name: 'mcp-proxy, string', target: named('mcp-proxy'), scenarioAt: echoOf('string'), most: mib },
    ],
    cost: (row, bytes) => cpuOfCalls(row) / (bytes / kib),
  },
  events: {
    title: 'Gateway CPU per progress event, µs',
    note: 'one call at a time, in one session',
    x: { label: 'events in a call', ticks: [10, 100, 1_000, 10_000, 100_000, 1_000_000] },
    lines: [
      { name: 'ours, memory', target: named('ours'), scenarioAt: streamOf },
      { name: 'ideal', target: named('ideal'), scenarioAt: streamOf },
      { name: 'ours, Redis', target: named('ours-redis'), scenarioAt: streamOf },
      { name: 'ideal, Redis, batches', target: named('ideal-redis-batch'), scenarioAt: streamOf },
      { name: 'supergateway', target: named('supergateway'), scenarioAt: streamOf, most: 100_000 },
    ],
    cost: cpuOfEvents,
  },
  instances: {
    title: 'Gateway CPU per call by number of instances, µs',
    note: 'calls of 100 B to 16 sessions, by way of all instances in turn',
    x: { label: 'instances', ticks: [1, 2, 4, 8] },
    lines: [{ name: 'ours', targetAt: clusterOf, scenarioAt: () => echoAmong(16) }],
    cost: cpuOfCalls,
  },
};

/** What a line has at a place of its axis: `{ scenario, target }`; undefined where it does not go. */
export function cellAt({ scenarioAt, target, targetAt, most = Number.POSITIVE_INFINITY }, x) {
  return x > most ? undefined : { scenario: scenarioAt(x), target: target ?? targetAt(x) };
}

/**
 * What has to be run for these axes: each scenario once, with all targets that a line needs it for.
 * @param isQuick without the large end of each axis, and without peers
 */
export function groupsOf(chosen, isQuick) {
  const groups = new Map();
  for (const { scenario, target } of chosen.flatMap((axis) => cellsOf(axis, isQuick))) {
    const group = groups.get(scenario.name) ?? { scenario: isQuick ? shortened(scenario) : scenario, targets: [] };
    if (!group.targets.some(({ name }) => name === target.name)) group.targets.push(target);
    groups.set(scenario.name, group);
  }
  return [...groups.values()];
}

function cellsOf({ x, lines }, isQuick) {
  const ticks = x.ticks.slice(0, isQuick ? 3 : undefined);
  const cells = ticks.flatMap((tick) => lines.map((line) => cellAt(line, tick))).filter((cell) => cell !== undefined);
  return isQuick ? cells.filter(({ target }) => !target.isPeer) : cells;
}
