import { describe, expect, it, vi } from 'vitest';
import type { Reason } from '../../../../../src/core/protocol/faults.ts';
import {
  principalKey,
  TaskOwners,
  type TaskOwnership,
  type TaskRequester,
} from '../../../../../src/features/eras/modern/process/task-owners.ts';
import { call, readRequest } from '../shared-fixture.ts';

const userOf = (subject: string, scopes?: readonly string[], needs?: readonly string[]): TaskRequester => ({
  principal: { issuer: '', subject, client: '' },
  scopes: scopes && new Set(scopes),
  needs,
});
const [alice, bob] = [userOf('alice'), userOf('bob')];
const maxMs = 60_000;

const begun = (taskId: unknown, more: object = {}): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { resultType: 'task', taskId, ...more } }));
const refusal = (owners: TaskOwners, taskId: unknown, asker: TaskRequester): Reason | undefined =>
  owners.refusal(readRequest(call(1, 'tasks/get', { taskId })), asker);

describe('the table of task owners', () => {
  it('[S-07] gives a task to the user whose call began it, with the scopes that the call needed', () => {
    const owners = new TaskOwners();
    owners.recordTask(begun('one'), userOf('alice', ['read', 'write'], ['write']), maxMs);
    expect(refusal(owners, 'one', alice)).toBeUndefined();
    expect(refusal(owners, 'one', userOf('alice', ['write']))).toBeUndefined();
    expect(refusal(owners, 'one', userOf('alice', ['read']))).toBe('unknown_task');
    expect(refusal(owners, 'one', bob)).toBe('unknown_task');
    expect(refusal(owners, 'two', alice)).toBe('unknown_task');
  });

  it('[S-07] gives a reused id to the newest task’s owner, and to nobody once the process has ended', () => {
    const owners = new TaskOwners();
    for (const asker of [alice, bob]) owners.recordTask(begun('task-1'), asker, maxMs);
    expect([refusal(owners, 'task-1', alice), refusal(owners, 'task-1', bob)]).toEqual(['unknown_task', undefined]);
    owners.clear();
    expect(refusal(owners, 'task-1', bob)).toBe('unknown_task');
  });

  it.each([
    ['another type than task', { resultType: 'complete', taskId: 'x' }],
    ['a task without an id', { resultType: 'task' }],
    ['an id that is no text', { resultType: 'task', taskId: { x: 1 } }],
    ['a type that is no text', { resultType: ['task'], taskId: 'x' }],
    ['an id that is too long', { resultType: 'task', taskId: 'x'.repeat(1_025) }],
    ['no object in it', 'task'],
  ])('[S-07] [P8] records no task from a result with %s', (_, result) => {
    const owners = new TaskOwners();
    owners.recordTask(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result })), alice, maxMs);
    expect(refusal(owners, 'x', alice)).toBe('unknown_task');
    expect(owners.areUnfinished(performance.now())).toBe(false);
  });

  it('[S-07] [P8] forgets the oldest task of an owner with too many, and none of other owners', () => {
    const owners = new TaskOwners();
    owners.recordTask(begun('of-bob'), bob, maxMs);
    for (let n = 0; n <= 1_000; n++) owners.recordTask(begun(`t${n}`), alice, maxMs);
    expect(['t0', 't1', 't1000'].map((id) => refusal(owners, id, alice))).toEqual([
      'unknown_task',
      undefined,
      undefined,
    ]);
    expect(refusal(owners, 'of-bob', bob)).toBeUndefined();
  });

  it('[S-07] [P8] limits the number of all tasks', { timeout: 30_000 }, () => {
    const owners = new TaskOwners();
    const ownership = Array.from({ length: 100 }, (_, n) => {
      const owner = principalKey(userOf(`u${n}`).principal);
      return { owner, needs: [], untilMs: Number.POSITIVE_INFINITY };
    });
    for (let n = 0; n <= 50_000; n++) owners.set(`t${n}`, ownership[n % 100] as TaskOwnership);
    expect(refusal(owners, 't0', userOf('u0'))).toBe('unknown_task');
    expect(refusal(owners, 't1', userOf('u1'))).toBeUndefined();
  });

  it('[S-07] reduces a subscription to the tasks of its client, and a list that is too long to none', () => {
    const owners = new TaskOwners();
    for (const [id, asker] of [
      ['a', alice],
      ['b', bob],
    ] as const)
      owners.recordTask(begun(id), asker, maxMs);
    const filtered = (taskIds: unknown): unknown => {
      const request = readRequest(
        call(1, 'subscriptions/listen', { notifications: { toolsListChanged: true, taskIds } }),
      );
      return JSON.parse(owners.withOwnTasks(request, alice).text.toString()).params.notifications;
    };
    expect(filtered(['a', 'b', 1, 'c'])).toEqual({ toolsListChanged: true, taskIds: ['a'] });
    expect(filtered('a')).toEqual({ toolsListChanged: true, taskIds: [] });
    expect(filtered(['a', 'x'.repeat(300_000)])).toEqual({ toolsListChanged: true, taskIds: [] });
    const without = readRequest(call(1, 'subscriptions/listen', { notifications: {} }));
    expect(owners.withOwnTasks(without, alice)).toBe(without);
  });

  it('knows whether a task may still run, within its own time and the longest time of any task', () => {
    vi.useFakeTimers();
    const owners = new TaskOwners();
    owners.recordTask(begun('a', { ttlMs: 1_000 }), alice, maxMs);
    owners.recordTask(begun('b', { ttlMs: null }), alice, maxMs);
    const now = performance.now();
    expect([0, 59_999, 60_000].map((ms) => owners.areUnfinished(now + ms))).toEqual([true, true, false]);
    vi.useRealTimers();
  });
});
