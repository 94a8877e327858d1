// node bench/bench.mjs [--rounds N] [--target a,b] [--scenario a,b] [--warm MS] [--quick] [--list]
//
// Runs each scenario against each target, in turn, so that what the machine does meanwhile falls on all of them alike;
// writes bench/results/<time>.jsonl as it goes, one cell a line, and prints the report. --quick is a smoke run of ours
// and ideal. --warm: milliseconds of load before each measurement (4000); on a machine that is busy with other things, code takes
// longer to get fast. Exits with 1 if ours or ideal gave any answer that was not right. See docs/benchmarks.md.
import { parseArgs } from 'node:util';
import { installPeers } from './lib/peers.mjs';
import { runRounds } from './lib/rounds.mjs';
import { reportOf } from './report/report.mjs';
import { quickScenarios, scenarios } from './scenarios.mjs';
import { targets } from './targets.mjs';

const print = (text) => process.stdout.write(`${text}\n`);
const maxRounds = 50;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    target: { type: 'string' },
    scenario: { type: 'string' },
    warm: { type: 'string' },
    quick: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
});

/** The entries of a table that were asked for; a name followed by `*` stands for all that begin with it. */
function choose(table, asked) {
  const names = asked.split(',').flatMap((name) => {
    const found = Object.keys(table).filter((key) =>
      name.endsWith('*') ? key.startsWith(name.slice(0, -1)) : key === name,
    );
    if (found.length === 0) throw new Error(`there is no ${name}; --list names what there is`);
    return found;
  });
  return [...new Set(names)].map((name) => ({ name, ...table[name] }));
}

if (values.list) {
  print(`targets:\n  ${Object.keys(targets).join('\n  ')}\nscenarios:\n  ${Object.keys(scenarios).join('\n  ')}`);
  process.exit(0);
}

const chosen = choose(targets, values.target ?? (values.quick ? 'ours,ideal' : '*'));
if (chosen.some(({ isPeer }) => isPeer)) installPeers();
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort(new Error(signal)));

const { rows, file, wrong } = await runRounds({
  rounds: Math.min(maxRounds, Number(values.rounds ?? (values.quick ? 1 : 3))),
  targets: chosen,
  scenarios: choose(values.quick ? quickScenarios : scenarios, values.scenario ?? '*').map((scenario) => ({
    ...scenario,
    ...(values.warm !== undefined && { warmMs: Number(values.warm) }),
  })),
  signal: stopped.signal,
  print,
});
print(`\n${reportOf(rows)}\n\nresults: ${file}`);
for (const line of wrong) print(`WRONG: ${line}`);
process.exit(wrong.length > 0 || stopped.signal.aborted ? 1 : 0);
