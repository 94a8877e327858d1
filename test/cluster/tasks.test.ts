import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { type Gateway, modernFixture, root, startGateway } from '../support/gateway.ts';
import { callModern, metaKeys, postModern } from '../support/modern-client.ts';
import {
  awaitTask,
  callForTask,
  cancelTask,
  getTask,
  listenToTasks,
  type TaskView,
  updateTask,
} from '../support/task-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { settle, startFastCluster, stopSound, urlOf } from './fast.ts';

const command = [process.execPath, `${root}test/fixtures/slow-tools.mjs`];

const soon = ['--defaults.tasks.after', '100ms'];

describe('a task whose instance stops or is killed', () => {
  let cluster: Cluster;
  let folder: string;
  let notes: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-tasks-'));
    notes = join(folder, 'notes');
    await writeFile(notes, '');
    cluster = await startFastCluster({
      command: [...command, notes],
      args: [
        ...soon,
        '--defaults.rerun',
        'hints',
        '--share',
        'all',
        '--timeouts.drain',
        '4s',
        '--timeouts.grace',
        '500ms',
      ],
    });
    await settle(cluster);
  });
  afterEach(async () => {
    await stopSound(cluster);
    await rm(folder, { recursive: true, force: true });
  });
  const begun = async () => (await readFile(notes, 'utf8')).split('\n').filter((line) => line !== '');
  /** Lets the server's process be at this instance, and the hints of its tools be known at all. */
  const settleAt = async (instance: number) => {
    await postModern(urlOf(cluster, instance), 'tools/list');
    for (const { url } of cluster.instances) await postModern(url, 'tools/list');
    await callModern(urlOf(cluster, instance), 'greet', { name: 'Ada' }, { meta: declaredMeta });
    await writeFile(notes, '');
  };

  test('[P3] is read on at another one while its server goes on, and its call runs once', async () => {
    await settleAt(1);
    const { taskId } = await callForTask(urlOf(cluster, 0), 'work', { ms: 8_000, marker: 'once' });
    await hasPoint(cluster);
    expect(await begun()).toHaveLength(1);
    await cluster.kill(0);
    const ended = await awaitTask(() => urlOf(cluster, 2), taskId);
    expect(outcomeOf(ended)).toBe('completed');
    expect(ended).toMatchObject({ result: { content: [{ text: 'once' }] } });
    expect(await begun()).toHaveLength(1);
    expect(await getTask(urlOf(cluster, 1), taskId)).toEqual(ended);
  });

  test('[P3] is asked on at another one, and goes on with the answers', async () => {
    await settleAt(1);
    const { taskId } = await callForTask(urlOf(cluster, 0), 'two_rounds');
    await awaitTask(() => urlOf(cluster, 2), taskId, ['input_required']);
    await cluster.kill(0);
    for (const name of ['Ada', 'Grace']) {
      const { inputRequests = {} } = await awaitTask(() => urlOf(cluster, 2), taskId, ['input_required']);
      const [key = ''] = Object.keys(inputRequests);
      await updateTask(urlOf(cluster, 2), taskId, { [key]: { action: 'accept', content: { name } } });
      await waitFor(async () => {
        const { status, inputRequests: next = {} } = await getTask(urlOf(cluster, 2), taskId);
        expect(status).not.toBe('failed');
        return !Object.hasOwn(next, key);
      });
    }
    expect(await awaitTask(() => urlOf(cluster, 1), taskId)).toMatchObject({
      result: { content: [{ text: 'Ada and Grace' }] },
    });
    expect(await begun()).toHaveLength(1);
  });

  test('[P3] is sent again once by another one, if its server is lost as well and its tool only reads', async () => {
    await settleAt(0);
    const { taskId } = await callForTask(urlOf(cluster, 0), 'lookup', { ms: 5_000, marker: 'reads' });
    await waitFor(async () => (await begun()).length === 1);
    await cluster.kill(0);
    const ends = await Promise.all([1, 2].map((at) => awaitTask(() => urlOf(cluster, at), taskId)));
    expect(ends.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(await begun()).toHaveLength(2);
  });

  test('[P9] is handed over at a drain', async () => {
    await settleAt(0);
    const reading = await callForTask(urlOf(cluster, 0), 'lookup', { ms: 6_000, marker: 'reads' });
    const soon = await callForTask(urlOf(cluster, 0), 'work', { ms: 500, marker: 'soon' });
    const stopped = cluster.restart(0);
    const ended = await awaitTask(() => urlOf(cluster, 1), reading.taskId);
    expect(outcomeOf(ended)).toBe('completed');
    expect(ended).toMatchObject({ status: 'completed', result: { content: [{ text: 'reads' }] } });
    expect(outcomeOf(await awaitTask(() => urlOf(cluster, 2), soon.taskId))).toBe('completed');
    await stopped;
    expect((await begun()).filter((line) => line.includes('soon'))).toHaveLength(1);
  });
});

describe('a task whose server, at a URL, runs the call as a task of its own', () => {
  let server: Gateway;
  let cluster: Cluster;
  let folder: string;
  let notes: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-tasks-'));
    notes = join(folder, 'notes');
    await writeFile(notes, '');
    server = await startGateway({ command: [...command, notes, '--tasks'] });
    cluster = await startFastCluster({
      args: [...soon, '--timeouts.drain', '3s', '--era', 'legacy', '--share', 'all', server.url],
    });
    await settle(cluster);
  });
  afterEach(async () => {
    await stopSound(cluster);
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test.each([
    ['killed', 0],
    ['drained', 0],
    ['killed after another one has begun the task', 1],
  ] as const)('[P3] goes on when the owner of the session is %s, and its call runs once', async (how, beganAt) => {
    // The server is a gateway, too, which refuses no tool: the list says which ones run as tasks.
    await postModern(urlOf(cluster, 0), 'tools/list', {}, { meta: declaredMeta });
    const { taskId } = await callForTask(urlOf(cluster, beganAt), 'work', { ms: 6_000, marker: 'once' });
    await hasPoint(cluster);
    await isRecorded(cluster);
    const ended = how === 'drained' ? cluster.restart(0) : cluster.kill(0);
    const end = await awaitTask(() => urlOf(cluster, 2), taskId);
    expect(outcomeOf(end)).toBe('completed');
    expect(end).toMatchObject({ result: { content: [{ text: 'once' }] } });
    expect((await readFile(notes, 'utf8')).split('\n').filter((line) => line !== '')).toHaveLength(1);
    await ended;
    // A session whose owner has changed still knows that its server has tasks.
    const next = await callForTask(urlOf(cluster, 2), 'work', { ms: 200, marker: 'next' });
    expect(outcomeOf(await awaitTask(() => urlOf(cluster, 1), next.taskId))).toBe('completed');
  });
});

test('a task of a server with tasks of its own, one process at each instance, is found at the others', async () => {
  await using cluster = await startFastCluster({
    command: [...modernFixture, '--tasks'],
    args: ['--defaults.tasks.after', '0', '--era', 'modern'],
  });
  await settle(cluster);
  for (const { url } of cluster.instances) await postModern(url, 'server/discover');
  const { taskId } = await callForTask(urlOf(cluster, 0), 'task_that_asks');
  const { inputRequests = {} } = await awaitTask(() => urlOf(cluster, 1), taskId, ['input_required']);
  const [key = ''] = Object.keys(inputRequests);
  await updateTask(urlOf(cluster, 2), taskId, { [key]: { action: 'accept', content: {} } });
  expect(await awaitTask(() => urlOf(cluster, 1), taskId)).toMatchObject({
    result: { content: [{ text: 'confirmed' }] },
  });
});

describe('a task that one of three instances has made', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startFastCluster({ command, args: soon });
    await settle(cluster);
  });
  afterAll(() => stopSound(cluster));

  test('is found, answered and collected at the others', async () => {
    const { taskId } = await callForTask(urlOf(cluster, 0), 'two_rounds');
    for (const [instance, name] of [
      [1, 'Ada'],
      [2, 'Grace'],
    ] as const) {
      const { inputRequests = {} } = await awaitTask(() => urlOf(cluster, instance), taskId, ['input_required']);
      const [key = ''] = Object.keys(inputRequests);
      expect(
        (await updateTask(urlOf(cluster, instance), taskId, { [key]: { action: 'accept', content: { name } } })).json,
      ).toMatchObject({ result: { resultType: 'complete' } });
      await awaitAnswered(cluster, taskId, key);
    }
    const ended = await awaitTask(() => urlOf(cluster, 1), taskId);
    expect(ended).toMatchObject({ status: 'completed', result: { content: [{ text: 'Ada and Grace' }] } });
    expect(await getTask(urlOf(cluster, 2), taskId)).toEqual(ended);
  });

  test('is told of by another', async () => {
    const { taskId } = await callForTask(urlOf(cluster, 0), 'slow_compute', { seconds: 1 });
    const stream = await listenToTasks(urlOf(cluster, 1), [taskId]);
    const end = await stream.nextMessage(({ params }) => params?.status === 'completed');
    expect(end).toMatchObject({
      method: 'notifications/tasks',
      params: { result: { content: [{ text: 'computed' }] } },
    });
    stream.drop();
  });

  test('is cancelled by way of another', async () => {
    const { taskId } = await callForTask(urlOf(cluster, 0), 'slow_compute', { seconds: 60 });
    expect((await cancelTask(urlOf(cluster, 1), taskId)).json.result).toEqual({ resultType: 'complete' });
    for (const instance of [0, 1, 2])
      expect(await getTask(urlOf(cluster, instance), taskId)).toMatchObject({ status: 'cancelled' });
  });

  test('[P3] has failed with an unknown outcome once its instance is lost, and an ended one is collected elsewhere', async () => {
    const ended = await callForTask(urlOf(cluster, 0), 'slow_compute');
    await awaitTask(() => urlOf(cluster, 0), ended.taskId);
    const running = await callForTask(urlOf(cluster, 0), 'slow_compute', { seconds: 60 });
    await cluster.kill(0);
    expect(await getTask(urlOf(cluster, 1), ended.taskId)).toMatchObject({
      result: { content: [{ text: 'computed' }] },
    });
    const lost = await awaitTask(() => urlOf(cluster, 1), running.taskId);
    expect([lost.status, lost.error?.data?.reason]).toEqual(['failed', 'outcome_unknown']);
    expect(await getTask(urlOf(cluster, 2), running.taskId)).toEqual(lost);
  });
});

/** Resolves once the owner has taken the answer to a question: another question, or none, is open. */
async function awaitAnswered(cluster: Cluster, taskId: string, key: string): Promise<void> {
  while (Object.hasOwn((await getTask(urlOf(cluster, 0), taskId)).inputRequests ?? {}, key))
    await new Promise((resolve) => setTimeout(resolve, 20));
}

/** How a task has ended: its state, with the reason of a failure. */
const outcomeOf = ({ status, error }: TaskView): string =>
  [status, error?.data?.reason ?? error?.message].filter((word) => word !== undefined).join(': ');

/** What the calls of this file declare: they share one session. */
const declaredMeta = { [metaKeys.clientCapabilities]: { elicitation: {} } };

/** Resolves once the record of a session names the task that its server runs. */
async function isRecorded({ redis }: Cluster): Promise<void> {
  await waitFor(async () => {
    const keys = ((await redis.command('KEYS', 'gangway:session:*:record')) as readonly unknown[]).map(String);
    const records = await Promise.all(keys.map((key) => redis.command('HGETALL', key)));
    return records.some((record) => String(record).includes('task-1'));
  });
}

/** Resolves once the store has the point at which another instance can read on with the only call. */
async function hasPoint({ redis }: Cluster): Promise<void> {
  await waitFor(async () => {
    const keys = ((await redis.command('KEYS', 'gangway:task:*')) as readonly unknown[]).map(String);
    const values = await Promise.all(keys.map((key) => redis.command('GET', key)));
    return values.some((value) => String(value).includes('"point"'));
  });
}
