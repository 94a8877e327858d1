import { expect, test } from 'vitest';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { Changes } from '../src/host.ts';
import { KnownInstances } from '../src/snapshot/known-instances.ts';
import { createChanges } from './fake-host.ts';

const summary = (name: string) => ({ name, version: '1', readiness: 'ready', sessions: 2, streams: 1 });

const instance = (
  name: string,
  changes: Changes | undefined,
  onFailed = (cause: unknown): void => expect.fail(String(cause)),
) => new KnownInstances({ name, changes, summary: () => summary(name), onFailed });

test('who looks sees itself first, and those that answer', async () => {
  const changes = createChanges();
  const [first, ...others] = ['c', 'b', 'a'].map((name) => instance(name, changes)) as [
    KnownInstances,
    ...KnownInstances[],
  ];
  await waitFor(() => first.list().length === 3, { what: 'the answers of the others' });
  expect(first.list()).toEqual([
    { ...summary('c'), isThis: true, ageMs: 0 },
    { ...summary('a'), isThis: false, ageMs: expect.any(Number) },
    { ...summary('b'), isThis: false, ageMs: expect.any(Number) },
  ]);
  await Promise.all([first, ...others].map((each) => each.close()));
});

test('what another version says is not understood, and what is no answer is no instance', async () => {
  const changes = createChanges();
  const looking = instance('a', changes);
  await changes.publish('status', Buffer.from('{"name":"b"}'));
  await changes.publish('status', Buffer.from('no JSON'));
  await changes.publish('status', Buffer.from(JSON.stringify(summary('c'))));
  await waitFor(() => looking.list().length > 1, { what: 'the one that can be understood' });
  expect(looking.list().map(({ name }) => name)).toEqual(['a', 'c']);
  await looking.close();
});

test('alone there is one instance, and a store that is away is told of and tried again', async () => {
  expect(instance('a', undefined).list()).toHaveLength(1);
  const causes: unknown[] = [];
  const memory = createChanges();
  let isAway = true;
  const away = (): Promise<never> => Promise.reject(new Error('away'));
  const changes: Changes = {
    publish: (...what) => (isAway ? away() : memory.publish(...what)),
    subscribe: (...what) => (isAway ? away() : memory.subscribe(...what)),
  };
  const looking = instance('a', changes, (cause) => causes.push(cause));
  await waitFor(() => causes.length > 0, { what: 'the fault' });
  isAway = false;
  looking.list();
  await waitFor(async () => {
    await memory.publish('status', Buffer.from(JSON.stringify(summary('b'))));
    return looking.list().length > 1;
  });
  await looking.close();
});

test('an instance says whose sessions its servers have; what is not understood is left out', async () => {
  const changes = createChanges();
  const looking = instance('a', changes);
  const users = [{ user: 'carol', client: 'VS Code 1.99', sessions: 1 }];
  const servers = [{ server: 'files', sessions: 1, users: [...users, 7, null] }, { server: 'mail' }, null];
  await changes.publish('status', Buffer.from(JSON.stringify({ ...summary('c'), servers })));
  await waitFor(() => looking.list().length > 1, { what: 'the other instance' });
  expect(looking.list()[1]?.servers).toEqual([{ server: 'files', sessions: 1, users }]);
  await looking.close();
});
