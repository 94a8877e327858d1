import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createAuditFile } from '../support/audit-lines.ts';
import { root, startGateway } from '../support/gateway.ts';
import { users, usersEnv } from '../support/keepers.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, metaKeys, postModern } from '../support/modern-client.ts';
import {
  askTask,
  awaitTask,
  callForTask,
  cancelTask,
  getTask,
  listenToTasks,
  tasksExtension,
  updateTask,
} from '../support/task-client.ts';
import { waitFor } from '../support/wait-for.ts';

/** A legacy server without tasks, whose tools take 400 ms and more. */
const slowTools = [process.execPath, `${root}test/fixtures/slow-tools.mjs`];
const soon = ['--defaults.tasks.after', '100ms'];

const accept = (name: string) => ({ action: 'accept', content: { name } });

describe('a call of a client that declares tasks, to a legacy server without tasks', () => {
  let gateway: LocalGateway;
  let folder: string;
  let notes: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-tasks-'));
    notes = join(folder, 'notes');
    await writeFile(notes, '');
    gateway = await startLocalGateway({ command: [...slowTools, notes], args: soon });
  });
  afterAll(async () => {
    await gateway?.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const begun = async (): Promise<string[]> => (await readFile(notes, 'utf8')).split('\n');

  it('becomes a task, goes on without its connection, and runs once', async () => {
    const task = await callForTask(gateway.url, 'slow_compute', { seconds: 1 });
    expect(task).toMatchObject({ resultType: 'task', status: 'working', pollIntervalMs: 1_000 });
    expect(await getTask(gateway.url, task.taskId)).toMatchObject({ taskId: task.taskId, status: 'working' });
    const ended = await awaitTask(() => gateway.url, task.taskId);
    expect(ended).toMatchObject({ status: 'completed', result: { content: [{ text: 'computed' }] } });
    expect((await begun()).filter((line) => line === 'slow_compute {"seconds":1}')).toHaveLength(1);
    // Its result can be collected again.
    expect(await getTask(gateway.url, task.taskId)).toEqual(ended);
  });

  it('ends as completed if its tool reports an error, and as failed with an error of JSON-RPC', async () => {
    const [failing, broken] = await Promise.all(
      ['failing_job', 'protocol_error_job'].map((name) => callForTask(gateway.url, name)),
    );
    expect(await awaitTask(() => gateway.url, failing?.taskId ?? '')).toMatchObject({
      status: 'completed',
      result: { isError: true, content: [{ text: 'The job failed' }] },
    });
    const ended = await awaitTask(() => gateway.url, broken?.taskId ?? '');
    expect(ended).toMatchObject({ status: 'failed', error: { code: -32603, message: 'The job broke' } });
    expect(ended.result).toBeUndefined();
  });

  it('shows the message of progress', async () => {
    const task = await callForTask(gateway.url, 'steps', { count: 8 }, { meta: { progressToken: 't' } });
    expect(task.resultType).toBe('task');
    const told = async () => (await getTask(gateway.url, task.taskId)).statusMessage;
    expect(await waitFor(told)).toMatch(/^step \d of 8$/);
    expect(await awaitTask(() => gateway.url, task.taskId)).toMatchObject({
      result: { content: [{ text: 'all steps' }] },
    });
  });

  it('passes on what its server asks, under a key of its own for each question, and goes on with the answers', async () => {
    const { taskId } = await callForTask(gateway.url, 'two_rounds');
    const keys: string[] = [];
    for (const [question, name] of [
      ['First?', 'Ada'],
      ['Second?', 'Grace'],
    ] as const) {
      const asking = await awaitTask(() => gateway.url, taskId, ['input_required']);
      const [[key = '', request]] = Object.entries(asking.inputRequests ?? {}) as [[string, { params: object }]];
      expect(request).toMatchObject({ method: 'elicitation/create', params: { message: question } });
      keys.push(key);
      // An answer to what nobody asked is ignored.
      expect((await updateTask(gateway.url, taskId, { nothing: {} })).json.result).toEqual({ resultType: 'complete' });
      expect((await getTask(gateway.url, taskId)).status).toBe('input_required');
      expect((await updateTask(gateway.url, taskId, { [key]: accept(name) })).json.result).toEqual({
        resultType: 'complete',
      });
    }
    expect(new Set(keys).size).toBe(2);
    expect(await awaitTask(() => gateway.url, taskId)).toMatchObject({
      result: { content: [{ text: 'Ada and Grace' }] },
    });
  });

  it('keeps asking for the rest after a part of the answers', async () => {
    const { taskId } = await callForTask(gateway.url, 'multi_input');
    const { inputRequests = {} } = await awaitTask(() => gateway.url, taskId, ['input_required']);
    const [first = '', second = ''] = Object.keys(inputRequests);
    await updateTask(gateway.url, taskId, { [first]: { action: 'decline' } });
    expect(Object.keys((await getTask(gateway.url, taskId)).inputRequests ?? {})).toEqual([second]);
    await updateTask(gateway.url, taskId, { [second]: accept('x') });
    const { result } = await awaitTask(() => gateway.url, taskId);
    expect(result?.content[0]?.text.split(',').sort()).toEqual(['accept', 'decline']);
  });

  it('tells a subscription of its states up to the end, after the acknowledgement', async () => {
    const { taskId } = await callForTask(gateway.url, 'confirm_delete');
    const stream = await listenToTasks(gateway.url, ['another', taskId, 'gangway-unknown']);
    const about = { _meta: { [metaKeys.subscriptionId]: 'l' } };
    expect(await stream.nextMessage()).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { ...about, notifications: { taskIds: [taskId] } },
    });
    const news = () => stream.nextMessage(({ method }) => method === 'notifications/tasks');
    const states: string[] = [];
    while (states.at(-1) !== 'completed') {
      const { params } = await news();
      expect(params).toMatchObject({ ...about, taskId });
      states.push(params.status);
      if (params.status !== 'input_required') continue;
      await updateTask(gateway.url, taskId, { [Object.keys(params.inputRequests)[0] as string]: accept('x') });
    }
    expect([...new Set(states)]).toEqual(
      ['working', 'input_required', 'completed'].filter((each) => states.includes(each)),
    );
    expect(states).toContain('input_required');
    stream.drop();
    const undeclared = await postModern(gateway.url, 'subscriptions/listen', { notifications: { taskIds: [taskId] } });
    expect(undeclared.json.error.code).toBe(-32021);
  });

  it('of a client that does not declare tasks is answered, and such a client learns nothing of tasks', async () => {
    const { json } = await callModern(gateway.url, 'slow_compute');
    expect(json.result).toMatchObject({ resultType: 'complete', content: [{ text: 'computed' }] });
    const { taskId } = await callForTask(gateway.url, 'slow_compute');
    const refused = await postModern(gateway.url, 'tasks/get', { taskId }, { headers: { 'Mcp-Name': taskId } });
    expect(refused.json.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } },
    });
  });

  it('is not found under another id', async () => {
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      for (const id of ['gangway-x', 'another', ''])
        expect((await askTask(gateway.url, method, id)).json.error).toMatchObject({ code: -32602 });
  });

  it('is declared in the answer to server/discover', async () => {
    const { json } = await postModern(gateway.url, 'server/discover');
    expect(json.result.capabilities.extensions).toEqual({ [tasksExtension]: {} });
  });
});

it('a call of a client that declares tasks stays a call if its answer comes in time', async () => {
  await using gateway = await startLocalGateway({ command: slowTools });
  expect(await callForTask(gateway.url, 'greet', { name: 'Ada' })).toMatchObject({
    resultType: 'complete',
    content: [{ text: 'Hello, Ada!' }],
  });
});

describe('a task', () => {
  it('[P11] is known only to the user who began it', async () => {
    await using gateway = await startLocalGateway({ command: slowTools, args: soon, env: usersEnv });
    const { taskId } = await callForTask(gateway.url, 'confirm_delete', {}, { headers: users.alice });
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      expect((await askTask(gateway.url, method, taskId, {}, { headers: users.bob })).json.error.code).toBe(-32602);
    expect((await cancelTask(gateway.url, taskId, { headers: users.alice })).json.result).toBeDefined();
  });

  it('has a line of its own in the audit log when it ends, with who began it', async () => {
    const audit = createAuditFile();
    const args = [...soon, ...audit.args];
    await using gateway = await startLocalGateway({ command: slowTools, args, env: usersEnv });
    const of = { headers: users.alice };
    const done = await callForTask(gateway.url, 'slow_compute', {}, of);
    await waitFor(async () => (await getTask(gateway.url, done.taskId, of)).status === 'completed');
    const { taskId } = await callForTask(gateway.url, 'slow_compute', { seconds: 60 }, of);
    await cancelTask(gateway.url, taskId, of);
    const lines = await waitFor(() => {
      const ofTasks = audit.lines().filter(({ outcome }) => outcome === 'task');
      return ofTasks.length === 2 ? ofTasks : undefined;
    });
    for (const [index, task] of ['completed', 'cancelled'].entries())
      expect(lines[index]).toMatchObject({
        server: 'slow-tools',
        era: 'modern',
        principal: { subject: 'alice' },
        method: 'tools/call',
        name: 'slow_compute',
        outcome: 'task',
        task,
        durationMs: expect.any(Number),
      });
    expect(JSON.stringify(lines)).not.toContain(taskId);
  });

  it('[P8] is not asked about forty times as often as its client was told', async () => {
    await using gateway = await startLocalGateway({ command: slowTools, args: soon });
    const { taskId } = await callForTask(gateway.url, 'slow_compute', { seconds: 60 });
    const other = await callForTask(gateway.url, 'slow_compute', { seconds: 60 });
    // 200 are answered in a window of five seconds, and these take two windows at most.
    const polls = await Promise.all(Array.from({ length: 401 }, () => askTask(gateway.url, 'tasks/get', taskId)));
    const refused = polls.filter(({ json }) => json.error !== undefined);
    expect(new Set(refused.map(({ json }) => json.error.data.reason))).toEqual(new Set(['too_many_polls']));
    expect(polls.length - refused.length).toBeGreaterThanOrEqual(200);
    expect(refused[0]?.headers['retry-after']).toBe('1');
    expect((await getTask(gateway.url, other.taskId)).status).toBe('working');
    expect((await cancelTask(gateway.url, taskId)).json.result).toBeDefined();
  });

  it('is made of no call with off', async () => {
    await using never = await startLocalGateway({ command: slowTools, args: ['--defaults.tasks.after', 'off'] });
    expect(await callForTask(never.url, 'slow_compute')).toMatchObject({ resultType: 'complete' });
    expect((await postModern(never.url, 'server/discover')).json.result.capabilities.extensions).toBeUndefined();
  });

  it('[P8] fails with a reason if its result is too large to be kept', async () => {
    await using gateway = await startLocalGateway({ command: slowTools, args: [...soon, '--replay.maxSize', '64KiB'] });
    const { taskId } = await callForTask(gateway.url, 'large', { bytes: 100_000 });
    const { status, error } = await awaitTask(() => gateway.url, taskId);
    expect([status, error?.data?.reason]).toEqual(['failed', 'event_too_large']);
  });

  it('[P3] whose gateway was killed has failed with an unknown outcome, and an ended one keeps its result', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'gangway-tasks-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const args = [...soon, '--replay.store', `file:${directory}/store`];
    const first = await startGateway({ command: slowTools, args, isStoppedWithTest: false });
    const ended = await callForTask(first.url, 'slow_compute');
    await awaitTask(() => first.url, ended.taskId);
    const running = await callForTask(first.url, 'slow_compute', { seconds: 60 });
    await first.stop('SIGKILL');
    await using second = await startLocalGateway({ command: slowTools, args });
    expect(await getTask(second.url, ended.taskId)).toMatchObject({ result: { content: [{ text: 'computed' }] } });
    const lost = await getTask(second.url, running.taskId);
    expect([lost.status, lost.error?.data?.reason]).toEqual(['failed', 'outcome_unknown']);
    expect(await getTask(second.url, running.taskId)).toEqual(lost);
  });
});
