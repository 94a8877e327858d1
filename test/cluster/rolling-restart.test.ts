import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createRandom, seedOfRun } from '../resume/random.ts';
import { violationsOf } from '../support/log-checker.ts';
import { isAtLeast } from '../support/log-levels.ts';
import { readLogs } from '../support/session-logs.ts';
import { countOutcomes, executionsIn, startTraffic, trafficServer } from '../support/traffic.ts';
import { waitFor } from '../support/wait-for.ts';
import { failuresOf, startFastCluster } from './fast.ts';

test('[P9] [P3] [P4] [P6] a rolling restart of all instances under traffic: no session lost, no 404, each call run once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-rolling-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const notes = join(folder, 'notes');
  const args = [
    '--timeouts.drain',
    '10s',
    '--sse.streamAfter',
    '20ms',
    '--replay.maxSize',
    '800MiB',
    '--sse.reconnectDelay',
    '0',
  ];
  const graces = ['--timeouts.grace', '1s'];
  const cluster = await startFastCluster({ command: trafficServer(notes), args: [...args, ...graces] });
  const before = cluster.instances.map(({ pid }) => pid);
  const seed = seedOfRun();
  // One call at a time: a session that is never idle is given up at the end of grace, with an error for what is in flight.
  const traffic = await startTraffic(cluster.url, { random: createRandom(seed), sessions: 6, callsAtOnce: 1 });
  const answered = (): number => countOutcomes(traffic.transcripts)['answered'] ?? 0;

  for (const [instance] of before.entries()) {
    const [so, old] = [answered(), cluster.instances[instance]];
    await waitFor(() => answered() > so + 10, { what: 'traffic', deadlineMs: 30_000 });
    // As an orchestrator does it: an instance that ends gets no new requests.
    cluster.balancer.setInRotation(instance, false);
    await cluster.restart(instance);
    expect((await old?.exited)?.code).toBe(0);
    expect(old?.logs().filter((line) => isAtLeast(line, 'error'))).toEqual([]);
  }
  const after = answered();
  await waitFor(() => answered() > after + 10, { what: 'traffic', deadlineMs: 30_000 });
  const transcripts = await traffic.stop();

  const [executions, logs] = [await executionsIn(notes), await readLogs(cluster.redis)];
  expect(violationsOf({ transcripts, executions, logs }), `RESUME_SEED=${seed}`).toEqual([]);
  const { answered: ofCalls, broken = 0, ...others } = countOutcomes(transcripts);
  process.stdout.write(`rolling restart: ${JSON.stringify({ answered: ofCalls, broken, others })}\n`);
  expect(others, `RESUME_SEED=${seed}`).toEqual({});
  const statuses = new Set(transcripts.flatMap(({ connections }) => connections.map(({ status }) => status)));
  expect([...statuses].filter((status) => ![0, 200, 204].includes(status))).toEqual([]);
  expect(new Set(cluster.instances.map(({ pid }) => pid)).size + before.length).toBe(
    new Set([...before, ...cluster.instances.map(({ pid }) => pid)]).size,
  );
  expect(failuresOf(cluster)).toEqual([]);
  await cluster.allChildrenEnded();
});
