import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventsPerRead } from '../../../src/core/store/read-pages.ts';
import type { FileStore } from '../../../src/features/files/file-store.ts';
import { textsOf } from '../../contract/store-fixture.ts';
import { createRandom, seedOfRun } from '../../resume/random.ts';
import { environmentNumber } from '../../support/environment-number.ts';
import { waitFor } from '../../support/wait-for.ts';
import { freshDirectory, openStore } from './store-directories.ts';

/** How often a writing process is killed; `KILL_RUNS=200` is the full size. */
const kills = environmentNumber('KILL_RUNS', 12);

let folder: string;
const writerFile = (): string => join(folder, 'store-writer.mjs');
const running = new Set<ChildProcess>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gangway-writer-'));
  symlinkSync(join(import.meta.dirname, '../../../node_modules'), join(folder, 'node_modules'));
  const entryPoints = [join(import.meta.dirname, 'store-writer.ts')];
  await build({
    entryPoints,
    outfile: writerFile(),
    bundle: true,
    external: ['classic-level'],
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  });
});
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

interface Writer {
  readonly pid: number;
  /** The number of the newest event that was reported as stored, by session. */
  readonly stored: ReadonlyMap<string, number>;
  /** The reasons with which the store refused changes. */
  readonly refusals: readonly string[];
  kill(): Promise<void>;
}

function startWriter(args: readonly string[], wrapper: readonly string[] = []): Writer {
  const [program = '', ...words] = [...wrapper, process.execPath, writerFile(), ...args];
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  running.add(child);
  const closed = once(child, 'close').then(() => running.delete(child));
  const stored = new Map<string, number>();
  const refusals: string[] = [];
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [first = '', second = '', tail] = line.split(' ');
      if (first === 'refused') refusals.push(second);
      else stored.set(first, Number(tail));
    }
  });
  return {
    pid: child.pid as number,
    stored,
    refusals,
    async kill() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

/** Checks that a session has all events up to its newest one, in order, each once; returns their number. */
async function requireWhole(store: FileStore, key: string): Promise<number> {
  let after: { epoch: number; seq: number } | undefined;
  let count = 0;
  for (;;) {
    const found = await store.log.read(key, 1, after, eventsPerRead);
    if (found.outcome === 'unknown_stream' && count === 0) return 0;
    if (found.outcome !== 'ok') throw new Error(`the read answered ${found.outcome}`);
    expect(found.broken).toBe(false);
    for (const text of textsOf(found)) {
      count += 1;
      expect(text.startsWith(`${key} ${count} `), `${key}: event ${count} is ${text.slice(0, 20)}`).toBe(true);
    }
    after = found.events.at(-1);
    if (found.atTail) return count;
  }
}

it(
  `[P5] loses, repeats and reorders nothing that was stored in ${kills} kills at random moments`,
  async () => {
    const directory = freshDirectory();
    const seed = seedOfRun();
    const random = createRandom(seed);
    const totals = { events: 0, unreported: 0 };
    for (let run = 0; run < kills; run += 1) {
      const writer = startWriter([directory, `run${run}`, run % 2 === 0 ? 'yes' : 'no']);
      await waitFor(() => writer.stored.size === 4, { what: 'the first events', intervalMs: 1, deadlineMs: 20_000 });
      await delay(random.integer(0, 60)); // not a wait for anything: the moment of the kill
      await writer.kill();

      const store = await openStore(directory);
      expect(store.found.damaged, `RESUME_SEED=${seed}, run ${run}`).toBe(0);
      for (const [key, tail] of writer.stored) {
        expect(await store.sessions.find(key)).toBeDefined();
        const count = await requireWhole(store, key);
        expect(count, `RESUME_SEED=${seed}, run ${run}, ${key}`).toBeGreaterThanOrEqual(tail);
        expect(count - tail).toBeLessThanOrEqual(5 * 2); // the batch that the kill interrupted, and one whose line it cut
        totals.events += count;
        totals.unreported += count - tail;
        await store.sessions.end(key);
      }
      await store.close();
    }
    process.stdout.write(`store kills, RESUME_SEED=${seed}: ${JSON.stringify({ kills, ...totals })}\n`);
    expect(totals.events).toBeGreaterThan(0);
    expect((await openStore(directory)).found.sessions).toBe(0);
  },
  30_000 + kills * 4_000,
);

it('waits while there is no room, refuses new changes meanwhile, and goes on without a loss', async () => {
  const directory = freshDirectory();
  const writer = startWriter([directory, 'full', 'no'], ['prlimit', '--fsize=300000:unlimited']);
  await waitFor(() => writer.refusals.length > 20, { what: 'refusals', deadlineMs: 20_000 });
  expect(new Set(writer.refusals)).toEqual(new Set(['full']));
  const whenFull = new Map(writer.stored);
  execFileSync('prlimit', ['--pid', `${writer.pid}`, '--fsize=unlimited']);
  const isPast = ([key, tail]: readonly [string, number]): boolean => (writer.stored.get(key) ?? 0) > tail + 20;
  await waitFor(() => [...whenFull].every(isPast), { what: 'more events', deadlineMs: 20_000 });
  await writer.kill();
  const store = await openStore(directory);
  expect(store.found).toMatchObject({ damaged: 0, isRepaired: false, sessions: 4 });
  for (const [key, tail] of writer.stored) expect(await requireWhole(store, key)).toBeGreaterThanOrEqual(tail);
});

it('keeps what was stored if the process ends while there is no room', async () => {
  const directory = freshDirectory();
  const writer = startWriter([directory, 'full', 'yes'], ['prlimit', '--fsize=300000:unlimited']);
  await waitFor(() => writer.refusals.length > 5, { what: 'refusals', deadlineMs: 20_000 });
  await writer.kill();
  const store = await openStore(directory);
  expect(store.found.damaged).toBe(0);
  for (const [key, tail] of writer.stored) expect(await requireWhole(store, key)).toBeGreaterThanOrEqual(tail);
});
