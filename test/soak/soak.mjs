// node test/run.mjs soak [--minutes 120] [--seed 1] [--load 1] [--clients 12] [--gaps 1] [--faults kill,drain] [--redis sentinel] [--plan] [--write docs/soak.md] [--folder /tmp/soak]
//
// Three gateways under mixed traffic and random faults; see soak.test.ts. `--load` 1 is about half
// of one core; without `--faults` all are brought about. `--clients`: the recorded sessions, a multiple of 12. `--gaps`: the
// time between faults; with 0.3, a fault meets the effects of the one before. `node test/run.mjs chaos` is such a run of 10 minutes. The seed decides whether Redis has a sentinel, unless `--redis single` or `--redis sentinel` does; `--plan` only prints what the seed plans. Ctrl+C ends it after the round that is under way, with a report.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readCommand, requireBuild, requireRedis, UsageError } from '../../bench/lib/command.mjs';

const values = readCommand(import.meta, {
  minutes: { type: 'number', isFraction: true },
  seed: { type: 'number', least: 0 },
  load: { type: 'number', isFraction: true },
  clients: { type: 'number', least: 12 },
  gaps: { type: 'number', isFraction: true },
  faults: { type: 'string' },
  redis: { type: 'string' },
  plan: { type: 'boolean' },
  write: { type: 'string' },
  folder: { type: 'string' },
});
const kinds = Object.keys(JSON.parse(readFileSync(new URL('fault-weights.json', import.meta.url), 'utf8')));
const unknown = values.faults?.split(',').find((kind) => !kinds.includes(kind));
if (unknown !== undefined) throw new UsageError(`There is no fault "${unknown}"; there are ${kinds.join(', ')}`);
// The report is written when all is over: hours are not to be lost for its name.
if (values.write !== undefined && !(values.write.endsWith('.md') && existsSync(dirname(values.write))))
  throw new UsageError(`--write is a file .md in a folder that is there, and not "${values.write}"`);
if (!['single', 'sentinel', undefined].includes(values.redis)) throw new UsageError('--redis is single or sentinel');
if ((values.clients ?? 12) % 12 !== 0) throw new UsageError('--clients is a multiple of 12');
requireRedis();
requireBuild('dist/main.js');
const env = { ...process.env };
for (const [name, value] of Object.entries(values)) env[`SOAK_${name.toUpperCase()}`] = value;
// Asked for by a file: a signal would end the tests' processes before they have stopped what they started.
const own = mkdtempSync(join(tmpdir(), 'gangway-soak-end-'));
env.SOAK_END = join(own, 'end');
const args = ['vitest', 'run', '--config', 'test/soak/vitest.config.ts', '--disable-console-intercept'];
const child = spawn('npx', args, { env, stdio: ['ignore', 'inherit', 'inherit'], detached: true });
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    writeFileSync(env.SOAK_END, '');
    process.stderr.write('The soak ends after this round, with a report; that takes some minutes.\n');
  });
}
child.on('exit', (code) => {
  rmSync(own, { recursive: true });
  process.exitCode = code ?? 1;
});
