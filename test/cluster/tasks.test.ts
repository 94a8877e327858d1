import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { root } from '../support/gateway.ts';
import { awaitTask, callForTask, cancelTask, getTask, listenToTasks, updateTask } from '../support/task-client.ts';
import { settle, startFastCluster, stopSound, urlOf } from './fast.ts';

const command = [process.execPath, `${root}test/fixtures/slow-tools.mjs`];

describe('a task that one of three instances has made', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startFastCluster({ command, args: ['--defaults.tasks.after', '100ms'] });
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
