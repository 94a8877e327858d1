// The bars of the project, as data: what has to be reached, and which cells say whether it is.
import * as of from './report/measures.mjs';

const small = ['string', 'words', 'tokens', 'escapes'];
const text = ['string', 'words', 'code', 'json'];
const large = [...text, 'unicode', 'tokens', 'escapes'];
const echoesOf = (shape, kinds) => kinds.map((kind) => `echo-${shape}-${kind}`);
const ideal = ['ideal'];
const peers = ['supergateway', 'mcp-proxy'];
const smallShapes = ['16x1-100', '16x8-100'];
const words = {
  '16x1-100': '100 B, 16x1',
  '16x8-100': '100 B, 16x8',
  '16x1-64k': '64 KiB, 16x1',
  '1x1-1m': '1 MiB, 1x1',
};
const rate = { target: 'ours', value: of.callsPerSecond, against: ideal };

/** Calls per second with large messages: bars for real text, each kind on its own line, and for many small tokens. */
const largeRates = (shape, atLeast, atLeastOfTokens) =>
  large.map((kind) => ({
    what: `echo ${words[shape]}, ${kind}: calls per second, ratio to ideal`,
    ...{ scenarios: echoesOf(shape, [kind]), ...rate },
    ...(text.includes(kind) && { atLeast }),
    ...(kind === 'tokens' && atLeastOfTokens !== undefined && { atLeast: atLeastOfTokens }),
  }));

/**
 * `value` of `target` in each of `scenarios`, as a multiple of that of `against` in the same round, the best of them (without: the value
 * itself, in `unit`): `atLeast` or `atMost`. The worst of the scenarios counts. With neither it is only reported. `command`: what measures
 * it, if bench.mjs does not.
 */
export const bars = [
  ...smallShapes.flatMap((shape) => {
    const echo = { ...rate, scenarios: echoesOf(shape, small) };
    return [
      { what: `echo ${words[shape]}: calls per second, ratio to ideal`, ...echo, atLeast: 0.85 },
      { what: `echo ${words[shape]}: calls per second, ratio to the best peer`, ...echo, against: peers, atLeast: 6 },
    ];
  }),
  ...largeRates('16x1-64k', 0.85, 0.65),
  ...largeRates('1x1-1m', 0.9),
  {
    what: 'echo 100 B, 16x1: 99th percentile of the latency, ratio to ideal',
    ...{ scenarios: echoesOf('16x1-100', small), target: 'ours', value: of.p99Ms, against: ideal },
    atMost: 1.5,
  },
  {
    what: 'progress events per second with the log in memory, ratio to ideal',
    ...{ scenarios: ['stream-1', 'stream-16'], target: 'ours', value: of.eventsPerSecond, against: ideal },
    atLeast: 0.85,
  },
  {
    what: 'progress events per second with the log in Redis, ratio to ideal-redis-batch',
    scenarios: ['stream-1', 'stream-16'],
    ...{ target: 'ours-redis', value: of.eventsPerSecond, against: ['ideal-redis-batch'] },
    atLeast: 0.85,
  },
  ...[...smallShapes, '16x1-64k', '1x1-1m'].map((shape) => ({
    what: `echo ${words[shape]}: gateway CPU per call, ratio to ideal`,
    scenarios: echoesOf(shape, smallShapes.includes(shape) ? small : large),
    ...{ target: 'ours', value: of.cpuOfCalls, against: ideal },
    atMost: 1.25,
  })),
  {
    what: 'gateway memory per idle session with a GET stream and a child process, from 1,000 to 2,000 sessions, ratio to ideal',
    ...{ scenarios: ['idle-many'], target: 'ours-many', value: of.kibAtMargin, against: ideal },
    atMost: 1.6,
  },
  {
    what: 'time from process start to the first answer, ratio to ideal',
    ...{ scenarios: ['start'], target: 'ours', value: of.startMs, against: ideal },
    atMost: 1.5,
  },
  {
    what: 'CPU per byte of the worst input of 64 KiB that a search finds, ratio to many small tokens',
    ...{
      scenarios: ['worst-input'],
      target: 'ours',
      value: of.worstCpuRatio,
      unit: '',
      command: 'node bench/worst.mjs',
    },
    atMost: 1.5,
  },
  {
    what: 'longest step of the event loop while the worst inputs are read, per MiB',
    ...{
      scenarios: ['worst-input'],
      target: 'ours',
      value: of.worstStepMs,
      unit: 'ms',
      command: 'node bench/worst.mjs',
    },
    atMost: 20,
  },
  {
    what: 'sessions with one call and no DELETE per second, ratio to ideal',
    ...{ scenarios: ['session-per-call'], ...rate },
  },
  {
    what: 'sessions with one call per second, with an API key and a server in Node.js, ratio to a process for each',
    ...{ scenarios: ['session-per-call'], ...rate, target: 'ours-login-node', against: ['ours-login-node-apart'] },
    atLeast: 20,
  },
  {
    what: 'median of a session with one call, with an API key and a server in Node.js, ratio to a further call in it',
    ...{ scenarios: ['session-per-call'], target: 'ours-login-node', value: of.sessionPerCallRatio },
    atMost: 3,
  },
  {
    what: 'echo 100 B, 16x8, sessions in files: calls per second, ratio to sessions in memory',
    ...{ scenarios: echoesOf('16x8-100', ['string', 'words']), ...rate, target: 'ours-files', against: ['ours'] },
    atLeast: 0.95,
  },
  {
    what: 'median handshake with a warm process for each session of a burst, server in Node.js, ratio to ideal (without warm processes)',
    ...{ scenarios: ['bursts-4'], target: 'ours-warm-node', value: of.medianMs, against: ['ideal-node'] },
    atMost: 0.15,
  },
  {
    what: 'gateway memory per hibernating session with a GET stream, for 5,000 sessions',
    ...{ scenarios: ['hibernated'], target: 'ours-hibernate', value: of.kibPerSession, unit: 'KiB' },
    atMost: 60,
  },
  {
    what: 'the same memory from 3,500 to 5,000 sessions, ratio to the memory per session up to 3,500 (linear growth: 1)',
    ...{ scenarios: ['hibernated'], target: 'ours-hibernate', value: of.bend, unit: '' },
    atMost: 1.2,
  },
];

/** The cells that the bars need, as `scenario/target`. */
export const cellsOfBars = new Set(
  bars.flatMap(({ scenarios, target, against = [] }) =>
    scenarios.flatMap((scenario) => [target, ...against].map((name) => `${scenario}/${name}`)),
  ),
);
