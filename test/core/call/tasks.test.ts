import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readTaskUpdate, Tasks, type TaskUpdate } from '../../../src/core/call/tasks.ts';
import { readMessage } from '../../support/fake-backend.ts';

const maxMs = 1_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const response = (result: unknown): Buffer => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
const working = (taskId: string, ttl: unknown = 60_000) => ({ taskId, status: 'working', ttl });
const status = (task: object) =>
  readMessage({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { createdAt: 'x', ...task } });

/** The tasks of which one was begun, with this id and ttl. */
function begun(taskId = 't', ttl?: unknown): Tasks {
  const tasks = new Tasks();
  tasks.answered('start', undefined, response({ task: working(taskId, ttl) }));
  return tasks;
}

describe('a request', () => {
  const rows: readonly (readonly [string, object | undefined, TaskUpdate | undefined])[] = [
    ['tools/call', { name: 'x', task: { ttl: 1 } }, 'start'],
    ['sampling/createMessage', { task: {} }, 'start'],
    ['tools/call', { name: 'task', arguments: { task: {} } }, undefined],
    ['tasks/get', { taskId: 't' }, 'state'],
    ['tasks/cancel', { taskId: 't' }, 'state'],
    ['tasks/list', undefined, 'list'],
    ['tasks/result', { taskId: 't' }, 'result'],
    ['__proto__', undefined, undefined],
  ];
  it.each(rows)('%s with %j can tell of tasks: %s', (method, params, news) => {
    expect(readTaskUpdate(readMessage({ jsonrpc: '2.0', id: 1, method, ...(params && { params }) }))).toBe(news);
  });
});

describe('an unfinished task', () => {
  it('is known from when it begins until its owner says that it is over, in whatever way', () => {
    const ends: readonly ((tasks: Tasks) => void)[] = [
      (tasks) => tasks.update(status({ taskId: 't', status: 'completed' })),
      (tasks) => tasks.answered('state', 't', response({ taskId: 't', status: 'failed' })),
      (tasks) =>
        tasks.answered('list', undefined, response({ tasks: [working('u'), { taskId: 't', status: 'cancelled' }] })),
      (tasks) => tasks.answered('result', 't', response({ content: [] })),
    ];
    for (const end of ends) {
      const tasks = begun();
      tasks.update(status({ taskId: 't', status: 'input_required' }));
      expect([tasks.has('t'), tasks.areUnfinished(maxMs)]).toEqual([true, true]);
      end(tasks);
      expect(tasks.has('t')).toBe(false);
    }
  });

  it('is one that is only asked about, too: an earlier owner of the session may have begun it', () => {
    const tasks = new Tasks();
    tasks.answered('state', 't', response(working('t')));
    expect(tasks.has('t')).toBe(true);
  });

  it.each([
    [100, 100],
    [5_000, maxMs],
    [null, maxMs],
    ['x', maxMs],
  ])('[P8] with the ttl %j counts for %d ms', async (ttl, ms) => {
    const tasks = begun('t', ttl);
    vi.advanceTimersByTime(ms - 1);
    tasks.answered('state', 't', response(working('t', ttl))); // its time counts from its beginning
    expect(tasks.areUnfinished(maxMs)).toBe(true);
    const empty = tasks.whenEmpty();
    vi.advanceTimersByTime(1);
    expect([tasks.areUnfinished(maxMs), tasks.emptySince]).toEqual([false, performance.now()]);
    await empty;
  });

  it('[P8] is one of 1,000, and its id has 1,024 characters, at most', () => {
    const tasks = begun('x'.repeat(1_025));
    expect(tasks.areUnfinished(maxMs)).toBe(false);
    const all = Array.from({ length: 1_001 }, (_, index) => working(`${index}`));
    tasks.answered('list', undefined, response({ tasks: all }));
    expect([tasks.has('999'), tasks.has('1000')]).toEqual([true, false]);
    tasks.clear();
    expect(tasks.areUnfinished(maxMs)).toBe(false);
  });

  it('tells when it is over, at once if there is none', async () => {
    const tasks = begun();
    const ended: string[] = [];
    tasks.whenEmpty().then(() => ended.push('over'));
    await Promise.resolve();
    expect(ended).toEqual([]);
    tasks.update(status({ taskId: 't', status: 'completed' }));
    await Promise.resolve();
    expect(ended).toEqual(['over']);
    await new Tasks().whenEmpty();
  });

  it('[P8] is not looked for in what is too long', () => {
    const tasks = new Tasks();
    tasks.answered('start', undefined, response({ task: working('t'), more: 'x'.repeat(256 * 1024) }));
    expect(tasks.has('t')).toBe(false);
  });

  it.each([undefined, null, 1, [], { task: null }, { task: [] }, { task: { taskId: 1 } }, { tasks: [null, 1, {}] }])(
    'is not made of %j',
    (result) => {
      const tasks = new Tasks();
      for (const news of ['start', 'state', 'list', 'result'] as const)
        tasks.answered(news, undefined, response(result));
      expect(tasks.areUnfinished(maxMs)).toBe(false);
    },
  );
});
