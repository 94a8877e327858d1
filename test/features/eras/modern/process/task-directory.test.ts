import { describe, expect, it } from 'vitest';
import type { CallAnswer } from '../../../../../src/core/call/call-answer.ts';
import type { Message } from '../../../../../src/core/protocol/message/message.ts';
import { withPromises } from '../../../../../src/core/store/immediate.ts';
import { createMemoryValues } from '../../../../../src/core/store/memory/memory-values.ts';
import type { Values } from '../../../../../src/core/store/shared/shared-data.ts';
import { StoreUnavailable } from '../../../../../src/core/store/store-unavailable.ts';
import { TaskDirectory } from '../../../../../src/features/eras/modern/process/task-directory.ts';
import { TaskOwners, type TaskRequester } from '../../../../../src/features/eras/modern/process/task-owners.ts';
import { asMessage } from '../../../../support/as-message.ts';
import { metaKeys } from '../../../../support/modern-client.ts';
import { waitFor } from '../../../../support/wait-for.ts';
import { call, createClient, readRequest } from '../shared-fixture.ts';

const userOf = (subject: string): TaskRequester => ({ principal: { issuer: '', subject, client: '' } });
const [alice, bob] = [userOf('alice'), userOf('bob')];
const unreachable = (): Promise<never> => Promise.reject(new StoreUnavailable('unreachable'));
const away: Values = { get: unreachable, set: unreachable, keep: unreachable };
const inMemory = (): Values => withPromises<Values>(createMemoryValues(() => 0));

const meta = { [metaKeys.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
const begin = readRequest(call(1, 'tools/call', { _meta: meta }));
const get = (taskId: string) => readRequest(call(1, 'tasks/get', { taskId }));
const task = (taskId: string): Message =>
  asMessage({ jsonrpc: '2.0', id: 1, result: { resultType: 'task', taskId, ttlMs: 1_000 } });

/** An instance, whose server begins this task with each call. */
function createInstance(values: Values) {
  const failures: unknown[] = [];
  const onFailed = (cause: unknown): void => void failures.push(cause);
  const directory = new TaskDirectory({ topic: 's', values, maxMs: 60_000, onFailed });
  const known = new TaskOwners();
  return {
    failures,
    async begins(taskId: string, asker: TaskRequester): Promise<void> {
      const { got, answer } = createClient();
      directory.request(begin, answer, asker, known, (to) => {
        known.recordTask(task(taskId).text, asker, 60_000);
        to.response(task(taskId), 200);
        return () => undefined;
      });
      await waitFor(() => got.items.length > 0, { what: 'the answer' });
    },
    /** Whether a request about a task may go to the server. */
    async lets(asker: TaskRequester, taskId: string): Promise<boolean> {
      return new Promise((resolve) => {
        directory.request(get(taskId), createClient().answer, asker, known, () => {
          resolve(known.refusal(get(taskId), asker) === undefined);
          return () => undefined;
        });
      });
    },
    directory,
    known,
  };
}

describe('the task directory', () => {
  it('[S-07] makes a task known to its owner at another instance, and to nobody else', async () => {
    const values = inMemory();
    const [first, second] = [createInstance(values), createInstance(values)];
    await first.begins('task-1', alice);
    expect([await second.lets(alice, 'task-1'), await second.lets(bob, 'task-1')]).toEqual([true, false]);
  });

  it('[S-07] gives a reused id to the owner of the newest task, at every instance', async () => {
    const values = inMemory();
    const [first, second] = [createInstance(values), createInstance(values)];
    await first.begins('task-1', alice);
    await second.begins('task-1', bob);
    expect([await first.lets(alice, 'task-1'), await first.lets(bob, 'task-1')]).toEqual([false, true]);
  });

  it('[S-07] [P7] does not report a task as unknown while the store cannot tell its owner', async () => {
    const { directory, known } = createInstance(away);
    const { got, answer } = createClient();
    directory.request(get('task-elsewhere'), answer, alice, known, () => {
      throw new Error('the server was asked');
    });
    await waitFor(() => got.items.length > 0, { what: 'the answer' });
    expect(JSON.stringify(got.items)).toContain('store_unavailable');
  });

  it('[S-07] [P7] uses the owners that the instance knows while the store is away', async () => {
    const instance = createInstance(away);
    await instance.begins('task-1', alice);
    expect([await instance.lets(alice, 'task-1'), await instance.lets(bob, 'task-1')]).toEqual([true, false]);
    expect(instance.failures).toEqual([]);
  });

  it('[S-07] reports other faults of the store and answers all the same', async () => {
    const broken = new Error('broken');
    const instance = createInstance({ ...away, set: () => Promise.reject(broken) });
    await instance.begins('task-1', alice);
    expect(instance.failures).toEqual([broken]);
  });

  it('sends no request for a client that has left during the lookup', async () => {
    const instance = createInstance(inMemory());
    let isSent = false;
    const cancel = instance.directory.request(get('x'), createClient().answer, alice, instance.known, () => {
      isSent = true;
      return () => undefined;
    });
    cancel();
    await new Promise((resolve) => setImmediate(resolve));
    expect(isSent).toBe(false);
  });

  it('passes requests unchanged that have nothing to do with tasks', () => {
    const instance = createInstance(away);
    const { answer } = createClient();
    const seen: CallAnswer[] = [];
    instance.directory.request(readRequest(call(1)), answer, alice, instance.known, (to) => {
      seen.push(to);
      return () => undefined;
    });
    expect(seen).toEqual([answer]);
  });
});
