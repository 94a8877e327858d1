// npm run soak -- [--minutes 120] [--seed 1] [--load 1] [--faults kill,drain] [--write docs/soak.md] [--folder /tmp/soak]
// Three gateways under mixed traffic and random faults; see soak.test.ts. `--load` 1 is about half
// of one core.
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';

const names = ['minutes', 'seed', 'load', 'faults', 'write', 'folder'];
const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
const { values } = parseArgs({ options });
const env = { ...process.env };
for (const [name, value] of Object.entries(values)) env[`SOAK_${name.toUpperCase()}`] = value;
const args = ['vitest', 'run', '--config', 'test/soak/vitest.config.ts', '--disable-console-intercept'];
const child = spawn('npx', args, { env, stdio: 'inherit' });
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
