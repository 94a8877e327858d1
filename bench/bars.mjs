// The bars of the project, as data: what has to be reached, and which cells say whether it is.
import {
  bend,
  callsPerSecond,
  cpuOfCalls,
  eventsPerSecond,
  kibPerSession,
  medianMs,
  p99Ms,
  startMs,
} from './report/measures.mjs';

const kinds = ['string', 'tokens', 'escapes'];
const ofAllKinds = (shape) => kinds.map((kind) => `echo-${shape}-${kind}`);
const ideal = ['ideal'];
const peers = ['supergateway', 'mcp-proxy'];

/**
 * `value` of `target` in each of `scenarios`, as a multiple of that of `against` in the same round, the best of them (without: the value
 * itself, in `unit`): `atLeast` or `atMost`. The worst of the scenarios counts. With neither it is only reported.
 */
export const bars = [
  ...['16x1', '16x8'].flatMap((shape) => {
    const echo = { scenarios: ofAllKinds(`${shape}-100`), target: 'ours', value: callsPerSecond };
    return [
      { what: `echo 100 B, ${shape}: calls per second to ideal`, ...echo, against: ideal, atLeast: 0.85 },
      { what: `echo 100 B, ${shape}: calls per second to the best peer`, ...echo, against: peers, atLeast: 6 },
    ];
  }),
  ...['16x1-64k', '1x1-1m'].flatMap((shape) => {
    const echo = { target: 'ours', value: callsPerSecond, against: ideal };
    const [string, ...others] = ofAllKinds(shape);
    return [
      { what: `echo ${shape}, a long string: calls per second to ideal`, scenarios: [string], ...echo, atLeast: 0.8 },
      ...others.map((name) => ({
        what: `echo ${shape}, ${name.split('-').at(-1)}: calls per second to ideal`,
        scenarios: [name],
        ...echo,
      })),
    ];
  }),
  {
    what: 'echo 100 B, 16x1: 99th percentile to ideal',
    ...{ scenarios: ofAllKinds('16x1-100'), target: 'ours', value: p99Ms, against: ideal },
    atMost: 1.5,
  },
  {
    what: 'progress events per second, log in memory, to ideal',
    ...{ scenarios: ['stream-1', 'stream-16'], target: 'ours', value: eventsPerSecond, against: ideal },
    atLeast: 0.7,
  },
  {
    what: 'progress events per second, log in Redis, to ideal-redis-batch',
    scenarios: ['stream-1', 'stream-16'],
    ...{ target: 'ours-redis', value: eventsPerSecond, against: ['ideal-redis-batch'] },
    atLeast: 0.8,
  },
  {
    what: 'handshake with warm spares, bursts of at most as many, server in Node.js: median to ideal, which spawns',
    ...{ scenarios: ['bursts-4'], target: 'ours-warm-node', value: medianMs, against: ['ideal-node'] },
    atMost: 0.15,
  },
  ...['16x1', '16x8'].map((shape) => ({
    what: `echo 100 B, ${shape}: gateway CPU per call to ideal`,
    ...{ scenarios: ofAllKinds(`${shape}-100`), target: 'ours', value: cpuOfCalls, against: ideal },
    atMost: 1.3,
  })),
  {
    what: 'gateway memory per idle session with GET stream and child, to ideal',
    ...{ scenarios: ['idle'], target: 'ours', value: kibPerSession, against: ideal },
    atMost: 1.2,
  },
  {
    what: 'gateway memory per session, 5,000 that hibernate, with GET stream',
    ...{ scenarios: ['hibernated'], target: 'ours-hibernate', value: kibPerSession, unit: 'KiB' },
    atMost: 60,
  },
  {
    what: 'the same, from 3,500 to 5,000 sessions as a multiple of before (linear: 1)',
    ...{ scenarios: ['hibernated'], target: 'ours-hibernate', value: bend, unit: '' },
    atMost: 1.2,
  },
  {
    what: 'start of the process to its first answer, to ideal',
    ...{ scenarios: ['start'], target: 'ours', value: startMs, against: ideal },
    atMost: 1.5,
  },
];

/** Bars that tests keep, each with the command that runs it in full; their reports are in docs/. */
export const barsOfTests = [
  {
    what: 'kill -9 of a random instance under load',
    bar: '1,000 runs: 0 lost, 0 doubled, 0 reordered, 0 hangs',
    command: 'KILL_RUNS=1000 npx vitest run test/cluster/kill-random.test.ts',
  },
  {
    what: 'resume at the seam',
    bar: '100,000 cuts: 0 lost, 0 doubled',
    command: 'RESUME_RUNS=100000 npx vitest run test/resume test/cluster/random-cuts.test.ts',
  },
  {
    what: 'faults of docs/hardening.md',
    bar: 'all in the defined outcome',
    command: 'FAULT_FULL=1 FAULT_SIZE=full npm run test:long',
  },
];

/** The cells that the bars need, as `scenario/target`. */
export const cellsOfBars = new Set(
  bars.flatMap(({ scenarios, target, against = [] }) =>
    scenarios.flatMap((scenario) => [target, ...against].map((name) => `${scenario}/${name}`)),
  ),
);
