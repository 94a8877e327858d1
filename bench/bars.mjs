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
      { what: `echo 100 B, ${shape}: calls per second, ratio to ideal`, ...echo, against: ideal, atLeast: 0.85 },
      { what: `echo 100 B, ${shape}: calls per second, ratio to the best peer`, ...echo, against: peers, atLeast: 6 },
    ];
  }),
  ...['16x1-64k', '1x1-1m'].flatMap((shape) => {
    const echo = { target: 'ours', value: callsPerSecond, against: ideal };
    const [string, ...others] = ofAllKinds(shape);
    return [
      {
        what: `echo ${shape}, a long string: calls per second, ratio to ideal`,
        scenarios: [string],
        ...echo,
        atLeast: 0.8,
      },
      ...others.map((name) => ({
        what: `echo ${shape}, ${name.split('-').at(-1)}: calls per second, ratio to ideal`,
        scenarios: [name],
        ...echo,
      })),
    ];
  }),
  {
    what: 'echo 100 B, 16x1: 99th percentile of the latency, ratio to ideal',
    ...{ scenarios: ofAllKinds('16x1-100'), target: 'ours', value: p99Ms, against: ideal },
    atMost: 1.5,
  },
  {
    what: 'progress events per second with the log in memory, ratio to ideal',
    ...{ scenarios: ['stream-1', 'stream-16'], target: 'ours', value: eventsPerSecond, against: ideal },
    atLeast: 0.7,
  },
  {
    what: 'progress events per second with the log in Redis, ratio to ideal-redis-batch',
    scenarios: ['stream-1', 'stream-16'],
    ...{ target: 'ours-redis', value: eventsPerSecond, against: ['ideal-redis-batch'] },
    atLeast: 0.8,
  },
  {
    what: 'median handshake with a warm process for each session of a burst, server in Node.js, ratio to ideal (without warm processes)',
    ...{ scenarios: ['bursts-4'], target: 'ours-warm-node', value: medianMs, against: ['ideal-node'] },
    atMost: 0.15,
  },
  ...['16x1', '16x8'].map((shape) => ({
    what: `echo 100 B, ${shape}: gateway CPU per call, ratio to ideal`,
    ...{ scenarios: ofAllKinds(`${shape}-100`), target: 'ours', value: cpuOfCalls, against: ideal },
    atMost: 1.3,
  })),
  {
    what: 'gateway memory per idle session with a GET stream and a child process, ratio to ideal',
    ...{ scenarios: ['idle'], target: 'ours', value: kibPerSession, against: ideal },
    atMost: 1.2,
  },
  {
    what: 'gateway memory per hibernating session with a GET stream, for 5,000 sessions',
    ...{ scenarios: ['hibernated'], target: 'ours-hibernate', value: kibPerSession, unit: 'KiB' },
    atMost: 60,
  },
  {
    what: 'the same memory from 3,500 to 5,000 sessions, ratio to the memory per session up to 3,500 (linear growth: 1)',
    ...{ scenarios: ['hibernated'], target: 'ours-hibernate', value: bend, unit: '' },
    atMost: 1.2,
  },
  {
    what: 'time from process start to the first answer, ratio to ideal',
    ...{ scenarios: ['start'], target: 'ours', value: startMs, against: ideal },
    atMost: 1.5,
  },
];

/** Bars that tests keep, each with the command that runs it in full; their reports are in docs/. */
export const barsOfTests = [
  {
    what: 'kill -9 of a random instance under load',
    bar: '1,000 kills: nothing lost, duplicated or reordered, no hangs',
    command: 'KILL_RUNS=1000 npx vitest run test/cluster/kill-random.test.ts',
  },
  {
    what: 'resume after a cut at a random byte',
    bar: '100,000 cuts: nothing lost or duplicated',
    command: 'RESUME_RUNS=100000 npx vitest run test/resume test/cluster/random-cuts.test.ts',
  },
  {
    what: 'faults of docs/hardening.md',
    bar: 'each fault has its defined outcome',
    command: 'FAULT_FULL=1 FAULT_SIZE=full npm run test:long',
  },
];

/** The cells that the bars need, as `scenario/target`. */
export const cellsOfBars = new Set(
  bars.flatMap(({ scenarios, target, against = [] }) =>
    scenarios.flatMap((scenario) => [target, ...against].map((name) => `${scenario}/${name}`)),
  ),
);
