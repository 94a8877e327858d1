// node bench/task-cost.mjs [calls] [--pairs 12] [--other file]
//
// What tasks cost a call that ends before `tasks.after`. Two gateways run with the same calls, 16 at once, in turn: ours, and
// ours with `tasks.after off`; with --other, another build, such as one of a commit before a change. The calls are those of
// sessions, of clients of 2026-07-28, and of clients of 2026-07-28 that declare tasks. Prints the CPU time of the gateway for
// each call, as the median of all pairs, and the mean and the quartiles of the ratio. BENCH_OURS=<file> measures another
// build as ours.
import path from 'node:path';
import { prepareBackend } from './lib/backend.mjs';
import { numberOf, readCommand, requireBuild, UsageError } from './lib/command.mjs';
import { McpSession } from './lib/mcp-session.mjs';
import { cpuSeconds } from './lib/proc.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { envelopeOf } from './load/envelope.mjs';
import { ourProgram, ours } from './targets.mjs';

const { values, positionals } = readCommand(
  import.meta,
  { pairs: { type: 'number', least: 2 }, other: { type: 'string' } },
  { allowPositionals: true },
);
if (positionals.length > 1) throw new UsageError(`One number of calls is enough, and not ${positionals.join(' ')}`);
const calls = numberOf('The number of calls', positionals[0] ?? '8000');
const { pairs = 12, other } = values;
requireBuild(ourProgram);
if (other !== undefined) requireBuild(path.resolve(other));
const atOnce = 16;
const print = (text) => process.stdout.write(`${text}\n`);
const at = (values, share) => values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];

const headers = { 'Mcp-Method': 'tools/call', 'Mcp-Name': 'echo' };
const inSession = async (port) => {
  const session = new McpSession([port]);
  await session.open();
  return session;
};
const without = (port) => McpSession.without([port], headers);
/** Makes the texts of calls, which differ in their ids. @param capabilities those that a client of 2026-07-28 declares */
const callWith = (capabilities) => {
  const _meta = capabilities && JSON.parse(`{${envelopeOf(capabilities)}}`);
  const params = { name: 'echo', arguments: { text: 'x'.repeat(100) }, _meta };
  const rest = JSON.stringify({ method: 'tools/call', params }).slice(1);
  return (id) => `{"jsonrpc":"2.0","id":"${id}",${rest}`;
};
const kinds = [
  ['sessions', inSession, callWith()],
  ['2026-07-28', without, callWith({})],
  ['2026-07-28, with tasks', without, callWith({ extensions: { 'io.modelcontextprotocol/tasks': {} } })],
];

const { command } = prepareBackend();
const off = { more: ['--defaults.tasks.after', 'off'] };
const targets = [ours(), ours(other === undefined ? off : { program: path.resolve(other) })];
/** The CPU times of each kind, of ours and of the other. */
const micros = kinds.map(() => [[], []]);
// Of two equal gateways, the one that starts first costs more. So each does in turn.
for (const order of [
  [0, 1],
  [1, 0],
]) {
  const gateways = [];
  try {
    for (const index of order)
      gateways[index] = await startTarget(`${index}`, targets[index], { places: { command }, logFile: '/dev/null' });
    for (const [at, kind] of kinds.entries()) await measure(gateways, kind, micros[at]);
  } finally {
    for (const gateway of gateways) if (gateway !== undefined) await stopTarget(gateway);
  }
}
for (const [index, [name]] of kinds.entries()) {
  const [own, others] = micros[index];
  const ratios = own.map((micro, pair) => micro / others[pair]);
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length).toFixed(3);
  const [low, high] = [0.25, 0.75].map((share) => at(ratios, share).toFixed(3));
  const medians = [own, others].map((all) => at(all, 0.5).toFixed(0)).join(' and ');
  print(`${name}: CPU ${medians} µs a call, ratio ${mean} (quartiles ${low} and ${high})`);
}

async function measure(gateways, [, open, textOf], [own, others]) {
  const clients = [];
  for (const { ports } of gateways)
    clients.push(await Promise.all(Array.from({ length: atOnce }, () => open(ports[0]))));
  const costOf = (index) => cost(gateways[index].pids[0], clients[index], textOf);
  for (const index of [0, 1, 0, 1]) await costOf(index);
  for (let pair = 0; pair < pairs; pair += 1)
    for (const index of pair % 2 === 0 ? [0, 1] : [1, 0]) (index === 0 ? own : others).push(await costOf(index));
  for (const each of clients.flat()) await each.close();
}

/** The CPU time of a gateway for each of so many calls, in µs. */
async function cost(pid, clients, textOf) {
  const before = cpuSeconds(pid);
  const each = Math.ceil(calls / atOnce);
  await Promise.all(
    clients.map(async (client) => {
      for (let n = 0; n < each; n += 1) {
        const answer = await client.call(textOf(`${n}`));
        if (!answer.includes('"result"')) throw new Error(answer.slice(0, 200));
      }
    }),
  );
  return ((cpuSeconds(pid) - before) / (each * atOnce)) * 1e6;
}
