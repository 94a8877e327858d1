// What is run against each target. Every loop ends by time (runMs) or, where sessions are opened, by count too (maxCount), and, whatever happens, by limitMs.

const kib = 1024;
const sizes = { 100: 100, '64k': 64 * kib, '1m': 1024 * kib };
/** Real text is `words` (with quotes and line breaks), `code`, `json` (JSON in a string) and `unicode` (non-ASCII text). */
const smallPayloads = ['string', 'words', 'tokens', 'escapes'];
const largePayloads = [...smallPayloads, 'code', 'json', 'unicode'];
const payloadsOf = (size) => (size === '100' ? smallPayloads : largePayloads);
/** In its first seconds under load a program is measured that is still being compiled; `start` shows what that costs. */
const times = { warmMs: 4_000, runMs: 1500, limitMs: 30_000 };
const quickTimes = { warmMs: 150, runMs: 400, limitMs: 10_000 };

/** `sessions` x `inflight` echo calls at all times, each answered before the next one of its slot. */
function echo(sessions, inflight, size) {
  return payloadsOf(size).map((payload) => [
    `echo-${sessions}x${inflight}-${size}-${payload}`,
    { kind: 'echo', sessions, inflight, bytes: sizes[size], payload, ...times },
  ]);
}

/** The same of clients of 2026-07-28, who have no sessions: each call stands for itself. */
const modern = (clients, inflight, size) =>
  echo(clients, inflight, size).map(([name, scenario]) => [
    name.replace('echo', 'modern'),
    { ...scenario, era: 'modern' },
  ]);

/** The same of clients that declare tasks. */
const tasks = (...of) =>
  modern(...of).map(([name, scenario]) => [
    name.replace('modern', 'modern-tasks'),
    { ...scenario, declares: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
  ]);

/** One call at a time of each client; each brings 1,000 progress events before its answer. */
const stream = (sessions) => [`stream-${sessions}`, { kind: 'stream', sessions, events: 1000, ...times }];
const modernStream = (clients) => {
  const [name, scenario] = stream(clients);
  return [`modern-${name}`, { ...scenario, era: 'modern' }];
};

/** Sessions opened (initialize and notifications/initialized), `inflight` at a time, then all deleted. */
const opened = (name, inflight, more) => [
  name,
  { kind: 'sessions', inflight, restMs: 0, maxCount: 100, runMs: 4_000, limitMs: 30_000, ...more },
];

/** Echo calls at random times, at half the rate that the target reaches with all slots busy, which is measured first. */
const paced = (size) => [
  `paced-16x4-${size}-words`,
  {
    kind: 'paced',
    sessions: 16,
    inflight: 4,
    bytes: sizes[size],
    payload: 'words',
    share: 0.5,
    ...times,
    runMs: 3_000,
  },
];

/** Clients that open a session for each call and never delete it, as many do. All sessions together stay below the usual limit. */
const sessionPerCall = {
  ...{ kind: 'session-calls', clients: 16, bytes: 100, payload: 'words' },
  ...{ warmCount: 160, maxCount: 640, runMs: 20_000, limitMs: 40_000 },
};

const idle = { kind: 'idle', settleMs: 2_000, watchMs: 1_000, limitMs: 120_000 };

const all = [
  ...['100', '64k'].flatMap((size) => [echo(1, 1, size), echo(16, 1, size), echo(16, 8, size)].flat()),
  ...echo(1, 1, '1m'),
  ...modern(1, 1, '100'),
  ...modern(16, 1, '100'),
  ...modern(16, 8, '100'),
  ...modern(16, 1, '64k'),
  ...modern(1, 1, '1m'),
  ...tasks(16, 1, '100').slice(0, 1),
  stream(1),
  stream(16),
  modernStream(1),
  modernStream(16),
  opened('sessions-1', 1),
  opened('sessions-4', 4),
  opened('sessions-8', 8, { maxCount: 200, runMs: 25_000, besides: true }), // what a start costs others, beside a large gateway too
  opened('bursts-4', 4, { restMs: 400, maxCount: 40 }), // what warm spares are for: bursts, with the time to start the next ones between
  paced('100'),
  paced('64k'),
  ['session-per-call', sessionPerCall],
  ['idle', { ...idle, steps: [1, 50, 200, 1_000] }],
  ['idle-many', { ...idle, steps: [1, 1_000, 2_000], limitMs: 300_000, isMany: true }], // what one session more takes
  [
    'hibernated',
    { ...idle, steps: [1, 1_000, 2_000, 3_500, 5_000], settleMs: 5_000, hibernates: true, limitMs: 300_000 },
  ],
  ['start', { kind: 'start', count: 3 }],
];

/** All scenarios by name. `era: 'modern'`: of clients of 2026-07-28, who have no session. */
export const scenarios = Object.fromEntries(all.map(([name, scenario]) => [name, { name, ...scenario }]));

const quickNames = [
  'echo-1x1-100-string',
  'echo-16x8-100-escapes',
  'echo-16x1-64k-tokens',
  'echo-16x1-64k-unicode',
  'echo-1x1-1m-escapes',
  'modern-16x8-100-string',
  'stream-16',
  'modern-stream-16',
  'sessions-4',
  'paced-16x4-100-words',
  'session-per-call',
  'idle',
];

/** Some of each kind, small enough for a smoke run. */
export const quickScenarios = Object.fromEntries(quickNames.map((name) => [name, shortened(scenarios[name])]));

/** A scenario that is small enough for a smoke run. */
export function shortened(scenario) {
  return { ...scenario, ...quickTimes, ...quickOf(scenario) };
}

/** What ours is compared with others in. */
export function comparedScenarios(isQuick) {
  const { 'echo-16x1-100-words': calls, 'paced-16x4-100-words': pacedCalls, idle: sessions, start } = scenarios;
  const all = [
    calls,
    pacedCalls,
    { ...sessions, steps: [1, 100], settleMs: 1_500 },
    { ...start, count: 1 }, // each round has one
  ];
  return isQuick ? all.map(shortened) : all;
}

function quickOf({ kind }) {
  if (kind === 'sessions') return { maxCount: 12 };
  if (kind === 'session-calls') return { warmCount: 16, maxCount: 32, runMs: 8_000 };
  if (kind === 'idle') return { steps: [1, 5], settleMs: 200, watchMs: 200 };
  return {};
}
