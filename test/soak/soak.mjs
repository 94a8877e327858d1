// npm run soak -- [--minutes 120] [--seed 1] [--load 1] [--faults kill,drain] [--write docs/soak.md] [--folder /tmp/soak]
// Three gateways under mixed traffic and random faults; see soak.test.ts. `--load` 1 is about half
// of one core. Ctrl+C ends it after the round that is under way, with a report.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const names = ['minutes', 'seed', 'load', 'faults', 'write', 'folder'];
const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
const { values } = parseArgs({ options });
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
