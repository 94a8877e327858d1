import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisSentinel, startRedisSentinel } from '../support/redis-sentinel.ts';
import { waitFor } from '../support/wait-for.ts';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';
import { freshPrefix, openRedisStore, untilAnswered } from './redis-fixture.ts';

describe('a server found by sentinels', () => {
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    sentinel = await startRedisSentinel();
  }, 60_000);
  afterAll(() => sentinel?.stop());

  it('[P7] is followed: writes go to the new master', async () => {
    const store = await openRedisStore({ url: sentinel.url, prefix: freshPrefix(), commandTimeoutMs: 500 });
    let recoveries = 0;
    store.onRecovered(() => {
      recoveries += 1;
    });
    await store.instances.join('a');
    await store.sessions.create('s', aRecord());
    const writer = createLogWriter(store, 's');
    const [event] = writer.make({ stream: 1, text: 'a' });
    if (event === undefined) throw new Error('unreachable');
    await sentinel.loseMaster();
    const outcome = await untilAnswered(() => store.log.append('s', epoch, 0, [event]));
    expect(['stored', 'already']).toContain(outcome.outcome);
    const master = await sentinel.master();
    expect(await master.cli('ROLE')).toMatch(/^master/);
    await waitFor(() => recoveries > 0, { what: 'word of the recovery' });
    expect(await untilAnswered(() => store.instances.areAlive(['a']))).toHaveLength(1);
    await store.close();
  }, 60_000);
});
