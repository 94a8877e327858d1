import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { mayTakeOver } from '../cluster/patience.ts';
import { comeToRest, leftOver, lingerMs, openCalls, openedSessions, tooManyExpiring, useOnce } from './at-rest.ts';
import { createLedger } from './ledger.ts';
import { createLogBook } from './log-book.ts';
import { watchMachine } from './machine.ts';
import { optionsOfRun } from './options.ts';
import { createPlan, planText } from './plan.ts';
import { boundsOf, chartOf, reportOf } from './report.ts';
import { type Round, runRound } from './rounds.ts';
import { createSampler, type Sample } from './samples.ts';
import { startStage } from './stage.ts';
import { startTalkers } from './talkers.ts';

const options = optionsOfRun();
const { minutes, seed, load, clients, gaps, write, folder: givenFolder, end: endFile } = options;
const isToEnd = () => endFile !== undefined && existsSync(endFile);
const beatMs = 2_500;
const beatsPerSample = 4;
/** A run that only shows that everything works ends without waiting for what ends when it has been idle. */
const isShort = minutes < 1;
/** What the recorded traffic makes at a load of 1. */
const callsPerSecond = 10;

const mapsAsObjects = (_: string, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value);

test.runIf(options.isPlanOnly)(`the plan of seed ${seed}`, () => {
  process.stdout.write(planText(options));
});

test.skipIf(options.isPlanOnly)(
  `[F30] a soak of ${minutes} minutes, seed ${seed}: flat resources and no broken promise`,
  async () => {
    const folder = givenFolder ?? (await mkdtemp(join(tmpdir(), 'gangway-soak-')));
    await mkdir(folder, { recursive: true });
    const begun = new Date();
    const plan = createPlan(options);
    const stage = await startStage(folder, plan).catch(async (error: Error) => {
      if (givenFolder === undefined) await rm(folder, { recursive: true }); // nothing has run that it could tell of
      throw error;
    });
    await mayTakeOver(stage.cluster);
    const ledger = createLedger(plan);
    const book = createLogBook(stage, ledger);
    const sampler = createSampler(stage, ledger);
    // What is started once, and stays, is there before the base is taken.
    await useOnce(stage);
    await delay(isShort ? 2_000 : lingerMs);
    const base = await sampler.take();
    const startedAt = performance.now();
    const until = startedAt + minutes * 60_000;

    const sampling = new AbortController();
    const takeSamples = async (): Promise<void> => {
      for (let beat = 1; !sampling.signal.aborted; beat++) {
        await delay(beatMs, undefined, { signal: sampling.signal }).catch(() => undefined);
        await book.read(); // often, so that no gateway comes and goes between two looks
        if (beat % beatsPerSample !== 0) continue;
        await sampler.take().catch((error: Error) => ledger.fail(`a sample: ${error.stack}`));
        ledger.judge();
      }
    };
    const samples = takeSamples();
    const watching = watchMachine(stage, ledger);
    const talking = startTalkers(stage, ledger, plan.talkers, load);
    const rounds: Round[] = [];
    let talkedMs: number | undefined;
    const opened = (): number => openedSessions(ledger, rounds.length * clients);
    const publish = async (end: Sample, to?: string): Promise<string> => {
      const { samples: taken } = sampler;
      const totalMs = performance.now() - startedAt;
      const { hasSentinel } = plan;
      const run = { seed, load, minutes, begun, hasSentinel, clients, gaps, totalMs, talkedMs: talkedMs ?? totalMs };
      const told = { ...run, ledger, rounds, base, end, bounds: boundsOf(taken), opened: opened() };
      const chart = chartOf(taken);
      await writeFile(join(folder, 'samples.json'), JSON.stringify(taken, mapsAsObjects));
      await writeFile(join(folder, 'log-lines.json'), JSON.stringify([...book.lines].sort(([, a], [, b]) => b - a)));
      await writeFile(
        join(folder, 'faults.json'),
        JSON.stringify({ faults: ledger.faults, failures: ledger.failures }),
      );
      let report = '';
      for (const path of [join(folder, 'soak.md'), ...(to === undefined ? [] : [to])]) {
        const chartPath = path.replace(/\.md$/, '.svg');
        report = reportOf(told, basename(chartPath));
        await writeFile(path, report);
        await writeFile(chartPath, chart);
      }
      return report;
    };
    for (let number = 0; performance.now() < until && !isToEnd(); number++) {
      const rates = { callsPerSecond: callsPerSecond * load, clients };
      const next = plan.next();
      for (const { what } of next.faults) process.stdout.write(`round ${number} plans: ${what}\n`);
      const tools = { stage, ledger, until, ...next, ...rates };
      const round = await runRound(number, tools).catch((error: Error) =>
        ledger.fail(`round ${number}: ${error.stack}`),
      );
      if (round === undefined) continue;
      rounds.push(round);
      await publish(sampler.samples.at(-1) ?? base); // what there is, should the run not come to its end
      const at = Math.round((performance.now() - startedAt) / 1_000);
      process.stdout.write(
        `${at} s: round ${number}, ${JSON.stringify(round)}, ${ledger.faults.length} faults, ${ledger.failures.length} failures\n`,
      );
    }
    await talking.stop();
    await watching.stop();
    talkedMs = performance.now() - startedAt;
    ledger.judge(true);
    for (const what of await openCalls(sampler)) ledger.fail(what);

    if (!isShort) await comeToRest(stage, sampler, base);
    sampling.abort();
    await samples;
    const end = await sampler.take();
    await book.read();
    for (const what of isShort ? [] : await leftOver(stage, base, end)) ledger.fail(what);
    for (const what of tooManyExpiring(end, opened())) ledger.fail(what);
    // Of a run that is hardly longer than its warm-up nothing can be said.
    for (const { name, slope, exceeds, unit } of minutes < 30 ? [] : boundsOf(sampler.samples)) {
      if (exceeds) ledger.fail(`${name} grows by ${slope.perHour.toFixed(2)} ${unit} in an hour`);
    }
    const left = await stage.cluster.allChildrenEnded({ deadlineMs: 15_000 }).catch((error: Error) => error);
    if (left instanceof Error) ledger.fail(left.message);
    const ended = await stage.stop().catch((error: Error) => error);
    if (ended instanceof Error) ledger.fail(`the end: ${ended.message}`);
    await book.close();

    process.stdout.write(`${await publish(end, write)}\n`);
    if (givenFolder === undefined && ledger.failures.length === 0) await rm(folder, { recursive: true });
    else process.stdout.write(`Logs and evidence are in ${folder}\n`);
    expect(ledger.failures).toEqual([]);
  },
);
