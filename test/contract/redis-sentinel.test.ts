import { describe, expect, it } from 'vitest';
import { startRedisSentinel } from '../support/redis-sentinel.ts';
import { waitFor } from '../support/wait-for.ts';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';
import { freshPrefix, openRedisStore, startedForAll, untilAnswered } from './redis-fixture.ts';

describe('a server found by sentinels', () => {
  const sentinel = startedForAll(() => startRedisSentinel());

  it('[P7] is followed: writes go to the new master', async () => {
    const store = await openRedisStore({ url: sentinel().url, prefix: freshPrefix(), commandTimeoutMs: 500 });
    let recoveries = 0;
    store.onRecovered(() => {
      recoveries += 1;
    });
    await store.instances.join('a');
    await store.sessions.create('s', aRecord());
    const writer = createLogWriter(store, 's');
    const [event] = writer.make({ stream: 1, text: 'a' });
    if (event === undefined) throw new Error('unreachable');
    // Redis confirms what its replica may not have yet.
    const sizes = () => Promise.all(sentinel().servers.map((server) => server.cli('DBSIZE')));
    await waitFor(async () => new Set(await sizes()).size === 1, { what: 'the replica to have all' });
    await sentinel().loseMaster();
    const outcome = await untilAnswered(() => store.log.append('s', epoch, 0, [event]));
    expect(['stored', 'already']).toContain(outcome.outcome);
    const master = await sentinel().master();
    expect(await master.cli('ROLE')).toMatch(/^master/);
    await waitFor(() => recoveries > 0, { what: 'word of the recovery' });
    expect(await untilAnswered(() => store.instances.areAlive(['a']))).toHaveLength(1);
    await store.close();
  }, 60_000);
});

it('[P7] a former master that lives and takes writes is left at once, since what it takes is lost', async () => {
  const sentinel = await startRedisSentinel();
  const store = await openRedisStore({ url: sentinel.url, prefix: freshPrefix(), commandTimeoutMs: 500 });
  let written = 0;
  const write = () => untilAnswered(() => store.sessions.create(`s${written++}`, aRecord()).then(() => true));
  await write();
  const former = await sentinel.forsakeMaster();
  expect(await former.cli('ROLE')).toMatch(/^master/);
  const master = await sentinel.master();
  const sizeOf = async () => Number(await master.cli('DBSIZE'));
  const before = await sizeOf();
  const isFollowed = async () => {
    await write();
    return (await sizeOf()) > before;
  };
  await waitFor(isFollowed, { what: 'a write at the new master', deadlineMs: 20_000 });
  await store.close();
}, 60_000);

it('a replica that was promoted is the master again after a restart', async () => {
  const sentinel = await startRedisSentinel();
  await sentinel.loseMaster();
  const promoted = await sentinel.master();
  await promoted.restart({ keepData: true });
  expect(await promoted.cli('ROLE')).toMatch(/^master/);
}, 60_000);
