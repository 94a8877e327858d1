import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startFastCluster } from '../cluster/fast.ts';
import { createRandom, seedOfRun } from '../resume/random.ts';
import { root } from '../support/gateway.ts';
import { violationsOf } from '../support/log-checker.ts';
import { readLogs } from '../support/session-logs.ts';
import { countOutcomes, executionsIn, startTraffic, trafficServer } from '../support/traffic.ts';
import { waitFor } from '../support/wait-for.ts';

const run = promisify(execFile);

/**
 * Builds a gateway with the next version of what instances say to each other and of session records. It also speaks the
 * present one, and writes records of the present version.
 */
async function buildNext(): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-version-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['src', 'scripts', 'package.json'])
    await cp(join(root, name), join(folder, name), { recursive: true });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const name of ['cluster/peers/peer-proof.ts', 'store/redis/codec.ts']) {
    const file = join(folder, 'src', name);
    const text = await readFile(file, 'utf8');
    const next = text.replace(/newest: (\d+)/, (_, newest) => `newest: ${Number(newest) + 1}`);
    expect(next).not.toBe(text);
    await writeFile(file, next);
  }
  await run(process.execPath, ['scripts/build.mjs'], { cwd: folder });
  return [process.execPath, join(folder, 'dist/main.js')];
}

test('[P9] [P3] [P4] [C-10] an upgrade to the next version between instances and a roll-back under load, one instance after the other: nothing is lost or doubled', async () => {
  const other = await buildNext();
  const folder = await mkdtemp(join(tmpdir(), 'gangway-versions-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const notes = join(folder, 'notes');
  const isOther = [true, true, true];
  const cluster = await startFastCluster({
    command: trafficServer(notes),
    programOf: (instance) => (isOther[instance] ? other : undefined),
    args: ['--timeouts.drain', '10s', '--sse.streamAfter', '20ms', '--replay.maxSize', '800MiB'],
  });
  const seed = seedOfRun();
  const traffic = await startTraffic(cluster.url, { random: createRandom(seed), sessions: 6, callsAtOnce: 1 });
  const answered = (): number => countOutcomes(traffic.transcripts)['answered'] ?? 0;
  const moreAnswers = (count: number): Promise<unknown> => {
    const before = answered();
    return waitFor(() => answered() > before + count, { what: 'traffic', deadlineMs: 30_000 });
  };

  for (const becomesOther of [false, true]) {
    for (const [instance] of cluster.instances.entries()) {
      await moreAnswers(10); // instances of both versions serve them, from the second instance on
      const old = cluster.instances[instance];
      cluster.balancer.setInRotation(instance, false);
      isOther[instance] = becomesOther;
      await cluster.restart(instance);
      expect((await old?.exited)?.code).toBe(0);
    }
  }
  await moreAnswers(10);
  const transcripts = await traffic.stop();

  const [executions, logs] = [await executionsIn(notes), await readLogs(cluster.redis)];
  expect(violationsOf({ transcripts, executions, logs }), `RESUME_SEED=${seed}`).toEqual([]);
  const { answered: ofCalls = 0, broken = 0, ...others } = countOutcomes(transcripts);
  process.stdout.write(`two versions: ${JSON.stringify({ answered: ofCalls, broken, others })}\n`);
  expect(others, `RESUME_SEED=${seed}`).toEqual({});
  expect(ofCalls).toBeGreaterThan(70);
}, 180_000);
