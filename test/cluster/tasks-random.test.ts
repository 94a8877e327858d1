import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRandom, type Random, seedOfRun } from '../resume/random.ts';
import type { Cluster } from '../support/cluster.ts';
import { environmentNumber } from '../support/environment-number.ts';
import { root } from '../support/gateway.ts';
import { postModern } from '../support/modern-client.ts';
import { callForTask, getTask, type TaskView } from '../support/task-client.ts';
import { startFastCluster } from './fast.ts';

/** How many tasks the clients get at least; `TASKS=10000` is the full size, which takes a quarter of an hour. */
const wanted = environmentNumber('TASKS', 300);
const clients = 60;
/** How long a client asks for the end of a task: more than a restart of Redis and the drain of an instance take. */
const patienceMs = 60_000;

/** What a task may say whose call may have run: its instance was killed, or stopped before the answer. */
const unknown = ['outcome_unknown', 'server_exited', 'session_ended'];
/** What a task may say whose call never reached a server. */
const unsent = ['draining', 'store_unavailable', 'owner_unreachable'];

describe(`${wanted} tasks of calls, at three instances that are killed, drained and cut off from Redis`, () => {
  const seed = seedOfRun();
  let cluster: Cluster;
  let folder: string;
  let notes: string;
  const counts: Record<string, number> = {};
  const note = (what: string): void => {
    counts[what] = (counts[what] ?? 0) + 1;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-tasks-'));
    notes = join(folder, 'notes');
    await writeFile(notes, '');
    cluster = await startFastCluster({
      command: [process.execPath, `${root}test/fixtures/slow-tools.mjs`, notes],
      args: [
        ...['--defaults.tasks.after', '50ms', '--timeouts.drain', '4s', '--timeouts.grace', '500ms'],
        // All clients are one user, who may have 1,000 tasks that run or are kept.
        ...['--defaults.rerun', 'hints', '--tasks.ttl', '60s'],
      ],
    });
  });
  afterAll(async () => {
    await cluster?.stop();
    await rm(folder, { recursive: true, force: true });
    process.stdout.write(`tasks-random, RESUME_SEED=${seed}: ${JSON.stringify(counts)}\n`);
  });

  test(
    '[P3] each task ends once and truthfully, is collected at another instance, and no call runs twice unless it only reads',
    async () => {
      const random = createRandom(seed);
      let tasks = 0;
      let isOver = false;
      const notSent: string[] = [];
      const faults = causeFaults(cluster, random.fork(), note, () => isOver);
      const works = Array.from({ length: clients }, async (_, client) => {
        const own = random.fork();
        for (let n = 0; tasks < wanted; n += 1) {
          const marker = `${client}-${n}`;
          const outcome = await useTask(marker, own, cluster);
          note(outcome);
          if (unsent.some((reason) => outcome.includes(reason))) notSent.push(marker);
          if (outcome === 'unanswered') await delay(300);
          if (outcome === 'unanswered' || outcome === 'answered') continue;
          tasks += 1;
          if (tasks % 500 === 0) process.stdout.write(`${tasks} tasks: ${JSON.stringify(counts)}\n`);
        }
      });
      await Promise.all(works);
      isOver = true;
      await faults;
      const begun = (await readFile(notes, 'utf8')).split('\n').filter((line) => line.startsWith('work'));
      const isBegun = (marker: string): boolean => begun.some((line) => line.includes(`"${marker}"`));
      expect(new Set(begun).size, `RESUME_SEED=${seed}`).toBe(begun.length);
      // A lost call that only reads is sent again once.
      const runsOf = new Map<string, number>();
      for (const line of (await readFile(notes, 'utf8')).split('\n'))
        if (line.startsWith('lookup')) runsOf.set(line, (runsOf.get(line) ?? 0) + 1);
      const runs = [...runsOf.values()];
      counts['runs again'] = runs.filter((length) => length > 1).length;
      expect(Math.max(...runs), `RESUME_SEED=${seed}`).toBeLessThanOrEqual(2);
      expect(notSent.filter(isBegun), `RESUME_SEED=${seed}`).toEqual([]);
      counts['tasks'] = tasks;
      expect(counts['completed'] ?? 0).toBeGreaterThan(wanted / 4);
    },
    120_000 + wanted * 200,
  );
});

/** Makes a call, and follows its task to the end. Resolves with what became of it. */
async function useTask(marker: string, random: Random, { instances }: Cluster): Promise<string> {
  const ms = random.integer(100, 1_500);
  const urlOf = (instance: number): string => instances[instance % 3]?.url ?? '';
  const first = random.integer(0, 2);
  const [tool, at] = [random.integer(0, 2) === 0 ? 'lookup' : 'work', urlOf(first)];
  // The instance learns from a list which tools only read.
  if (tool === 'lookup') await postModern(at, 'tools/list').catch(() => undefined);
  const answer = await callForTask(at, tool, { ms, marker }).catch(() => undefined);
  // Its instance is gone, or has refused the call: it has no task.
  if (answer === undefined) return 'unanswered';
  if (answer.resultType !== 'task') {
    expect(answer.content?.[0]?.text).toBe(marker);
    return 'answered';
  }
  const end = await endOf(answer.taskId, () => urlOf(random.integer(0, 2)));
  expect(['completed', 'failed']).toContain(end.status);
  if (end.status === 'completed') expect(end.result?.content[0]?.text).toBe(marker);
  else expect([...unknown, ...unsent]).toContain(end.error?.data?.reason);
  // Both other instances say the same.
  for (const other of [1, 2]) expect(await endOf(answer.taskId, () => urlOf(first + other))).toEqual(end);
  return end.status === 'completed' ? 'completed' : `failed: ${end.error?.data?.reason}`;
}

/** Asks any instance for the end of a task, also while some are away. */
async function endOf(taskId: string, url: () => string): Promise<TaskView> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      const task = await getTask(url(), taskId);
      if (!['working', 'input_required'].includes(task.status)) return task;
    } catch (cause) {
      // An instance that is away, that does not reach its store, or whose server has not started yet.
      if (
        !/fetch|ECONN|socket|hang up|store_unavailable|draining|owner_unreachable|server_start_timeout|reset/i.test(
          String(cause),
        )
      )
        throw cause;
    }
    if (performance.now() > deadline) throw new Error(`the task ${taskId} did not end`);
    await delay(150);
  }
}

async function causeFaults(
  cluster: Cluster,
  random: Random,
  note: (what: string) => void,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    await delay(random.integer(500, 2_500));
    const instance = random.integer(0, 2);
    const kind = random.integer(0, 5);
    if (kind === 5) {
      await cluster.redis.restart({ keepData: true });
      note('fault: Redis');
    } else {
      if (kind >= 2) await cluster.kill(instance);
      await cluster.restart(instance);
      note(kind >= 2 ? 'fault: kill' : 'fault: drain');
    }
  }
}
