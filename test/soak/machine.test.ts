import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../support/gateway.ts';
import { waitFor } from '../support/wait-for.ts';
import { busy, createLedger } from './ledger.ts';
import { noteLateness } from './machine.ts';

const busyIn = ({ faults }: ReturnType<typeof createLedger>): number =>
  faults.filter(({ kind }) => kind === busy).length;

it('a gateway that stood still is a sign of a busy machine, unless it was frozen itself', async () => {
  const ledger = createLedger();
  const from = performance.now();
  await ledger.during('freeze', 'freeze', async () => undefined, 7);
  const to = performance.now();
  noteLateness(ledger, { pid: 7, from, to });
  expect(busyIn(ledger)).toBe(0);
  noteLateness(ledger, { pid: 8, from, to });
  expect(busyIn(ledger)).toBe(1);
});

it('a process notes itself when it stood still, once it listens, and not before', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-lateness-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  // Stands still for 600 ms before it listens, and for 900 ms afterwards.
  const script = `
    const stand = (ms) => { for (const until = Date.now() + ms; Date.now() < until; ); };
    const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    await pause(200); stand(600); await pause(200);
    const server = (await import('node:net')).createServer().listen(0, '127.0.0.1');
    await pause(400); stand(900); await pause(400); server.close();`;
  const child = spawn(
    process.execPath,
    ['--import', `${root}test/soak/lateness.mjs`, '--input-type=module', '-e', script],
    { env: { ...process.env, SOAK_LATENESS: folder, SOAK_LATE_MS: '500' }, stdio: 'inherit' },
  );
  await new Promise((resolve) => child.once('exit', resolve));
  const lines = await waitFor(() => readFile(join(folder, `${child.pid}`), 'utf8').catch(() => undefined), {
    what: 'the notes',
  });
  // Others may have had the processor for longer still.
  const tookMs = (lines as string)
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [from = 0, to = 0] = line.split(' ').map(Number);
      return to - from;
    });
  expect(Math.max(...tookMs)).toBeGreaterThanOrEqual(800);
});
