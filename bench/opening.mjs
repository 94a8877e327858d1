// node bench/opening.mjs [sessions] [--rounds 5] [--listen] [--node]
//
// How long it takes until so many sessions (30) are open that one local client opens at once, by default and with
// `--share session`. In each round, a gateway of each kind starts and opens the sessions, in alternating order. Prints the
// time until the last session is open, and the median of the ratios of the rounds.
// --listen: each client also opens its GET stream. --node: with a server in Node.js, not the C one.
// BENCH_OURS=<file> measures another build.
import { nodeBackend, prepareBackend } from './lib/backend.mjs';
import { numberOf, readCommand, requireBuild } from './lib/command.mjs';
import { McpSession } from './lib/mcp-session.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { ourProgram, ours } from './targets.mjs';

const { values, positionals } = readCommand(
  import.meta,
  { rounds: { type: 'number' }, listen: { type: 'boolean' }, node: { type: 'boolean' } },
  { allowPositionals: true },
);
const sessions = numberOf('The number of sessions', positionals[0] ?? '30');
const rounds = values.rounds ?? 5;
/** The servers of `targets.mjs`: `same` has `--share session`, and `shared` the default. */
const kinds = { auto: 'shared', session: 'same' };
const print = (text) => process.stdout.write(`${text}\n`);
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

requireBuild(ourProgram);
const { command } = values.node ? nodeBackend : prepareBackend();
const times = { auto: [], session: [] };
for (let round = 0; round < rounds; round += 1) {
  const order = Object.keys(kinds);
  for (const kind of round % 2 === 0 ? order : order.toReversed()) times[kind].push(await measure(kinds[kind]));
  const [auto, session] = [times.auto.at(-1), times.session.at(-1)];
  print(
    `round ${round + 1}: ${auto.toFixed(0)} ms, --share session ${session.toFixed(0)} ms, ratio ${(auto / session).toFixed(2)}`,
  );
}
const ratio = median(times.auto.map((time, round) => time / times.session[round]));
print(
  `median: ${median(times.auto).toFixed(0)} ms, --share session ${median(times.session).toFixed(0)} ms, ratio ${ratio.toFixed(2)}`,
);

/** The milliseconds until a new gateway has opened all sessions. */
async function measure(server) {
  const gateway = await startTarget('opening', ours({ server }), { places: { command }, logFile: '/dev/null' });
  try {
    const startedAt = performance.now();
    const opened = await Promise.all(Array.from({ length: sessions }, () => open(gateway.ports)));
    const tookMs = performance.now() - startedAt;
    for (const session of opened) await session.close();
    return tookMs;
  } finally {
    await stopTarget(gateway);
  }
}

async function open(ports) {
  const session = new McpSession(ports);
  await session.open();
  if (values.listen) await session.listen(() => undefined);
  return session;
}
