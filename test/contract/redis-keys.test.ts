import { describe, expect, it } from 'vitest';
import { maxTakeovers } from '../../src/core/store/takeover-limit.ts';
import { startRedis } from '../support/redis-server.ts';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';
import { freshPrefix, openRedisStore, startedForAll } from './redis-fixture.ts';
import { useAll } from './use-all.ts';

/** What an attacker would like to find in a key or make of one. */
const hostileIds = [
  '{x}',
  'a:b:*',
  '*',
  '{',
  '}{',
  'a\r\nFLUSHALL\r\n',
  '"; return 1 --',
  '\0',
  'é\u{1f600}',
  'x'.repeat(5_000),
];

describe('the keys of the Redis store', () => {
  const redis = startedForAll(() => startRedis());

  it('[S09] hold no id that a caller gave, whatever it looks like, and are all of the known forms', async () => {
    const prefix = freshPrefix();
    const store = await openRedisStore({ url: redis().url, prefix });
    for (const id of hostileIds) await useAll(store, id);
    const keys = (await redis().cli('KEYS', '*')).split('\n');
    const digest = '[A-Za-z0-9_-]{43}';
    const form = new RegExp(
      `^${prefix}:(birth|changes|addresses|(secret|rate|reserved|outcome|owner|used|task):${digest}|session:\\{${digest}\\}:(record|log|tails|pending)|instance:\\{${digest}\\}:lease)$`,
    );
    for (const key of keys) expect(key).toMatch(form);
    // A lease and a dead one; four of a session and the tombstone of another; a secret, a rate, what is reserved, an outcome, an owner, a used name and a task; the lease of `me`, the addresses, the changes and the birth.
    expect(keys).toHaveLength(hostileIds.length * 14 + 4);
    await store.close();
  });

  it('[S09] give no id to a command outside of the values of ARGV', async () => {
    const prefix = freshPrefix();
    await using monitor = await redis().monitor();
    const store = await openRedisStore({ url: redis().url, prefix });
    const id = 'hidden-{id}:*';
    await useAll(store, id);
    await redis().cli('ECHO', 'end');
    await monitor.commands.next(({ args }) => args[0]?.toUpperCase() === 'ECHO', { what: 'the last command' });
    const sent = monitor.commands.items.filter(({ from }) => from !== 'lua').map(({ args }) => args);
    expect(sent.length).toBeGreaterThan(20);
    for (const [name = '', script = '', count = '0', ...rest] of sent) {
      const isScript = /^eval(sha)?$/i.test(name);
      expect(script).not.toContain('hidden');
      const keysAndNames = isScript ? rest.slice(0, Number(count)) : [name, script, count, ...rest];
      expect(keysAndNames.join('\n')).not.toMatch(/hidden|call-/);
    }
    await store.close();
  });

  it('[P8] all expire by themselves, the log of a session before its record', async () => {
    await redis().empty();
    const limits = { maxEvents: 10, maxBytes: 1_000, maxAgeMs: 30_000 };
    const store = await openRedisStore({ url: redis().url, prefix: freshPrefix(), limits, recordTtlMs: 90_000 });
    await useAll(store, 's');
    const keys = (await redis().cli('KEYS', '*')).split('\n');
    expect(keys).toHaveLength(18);
    for (const key of keys) {
      const ttlMs = Number(await redis().cli('PTTL', key));
      expect(ttlMs, key).toBeGreaterThan(0);
      if (key.endsWith(':log')) expect(ttlMs).toBeLessThanOrEqual(31_000);
      if (/:(record|tails|pending)$/.test(key)) expect(ttlMs).toBeGreaterThan(80_000);
    }
    await store.close();
  });

  it('[P8] are as many after a thousand ended streams and answered calls as after one', async () => {
    await redis().empty();
    const limits = { maxEvents: 20, maxBytes: 1_000_000, maxAgeMs: 3_600_000 };
    const store = await openRedisStore({ url: redis().url, prefix: freshPrefix(), limits });
    await store.sessions.create('s', aRecord());
    for (let seq = 1; seq <= 1_000; seq += 1) {
      const opens = [{ stream: seq, id: seq, method: 'm', text: undefined }];
      const event = { stream: seq, seq, previous: undefined, data: Buffer.from('x'), last: true };
      await store.log.append('s', epoch, seq - 1, [{ ...event, opens, settles: seq - 1 }]);
    }
    const keys = (await redis().cli('KEYS', '*')).split('\n');
    const keyOf = (name: string): string => keys.find((key) => key.endsWith(name)) ?? '';
    expect(Number(await redis().cli('XLEN', keyOf(':log')))).toBeLessThanOrEqual(20);
    expect(Number(await redis().cli('HLEN', keyOf(':tails')))).toBeLessThanOrEqual(20);
    expect(await redis().cli('HLEN', keyOf(':pending'))).toBe('1');
    await store.close();
  });

  it('[P8] forget the ended streams of a log that has expired as a whole', async () => {
    await redis().empty();
    const store = await openRedisStore({ url: redis().url, prefix: freshPrefix() });
    await store.sessions.create('s', aRecord());
    const writer = createLogWriter(store, 's');
    for (let stream = 1; stream <= 5; stream += 1) await writer.append({ stream, text: 'x', last: stream !== 3 });
    const keys = (await redis().cli('KEYS', '*')).split('\n');
    const keyOf = (name: string): string => keys.find((key) => key.endsWith(name)) ?? '';
    await redis().cli('DEL', keyOf(':log')); // as its time to live does
    expect(await store.log.read('s', 1, undefined, 1)).toMatchObject({ broken: true, ended: true, newest: undefined });
    expect(await store.log.read('s', 3, undefined, 1)).toMatchObject({ broken: true, newest: writer.at(3) });
    expect(await writer.append({ stream: 9, text: 'y' })).toBe('stored');
    expect((await redis().cli('HKEYS', keyOf(':tails'))).split('\n').sort()).toEqual(['3', '9']);
    expect(await redis().cli('HMGET', keyOf(':record'), 'events', 'bytes')).toBe('1\n1');
    await store.close();
  });

  it('[U-01] do not count takeovers of more than ten minutes ago, let later ones wait, and end after many', async () => {
    await redis().empty();
    const store = await openRedisStore({ url: redis().url, prefix: freshPrefix() });
    await store.sessions.create('s', aRecord());
    const key = await redis().cli('KEYS', '*:record');
    const old = Date.now() - 600_001;
    await redis().cli('HSET', key, 'takeovers', `${maxTakeovers} ${old}`);
    const from = { owner: 'instance-1', epoch };
    expect(await store.sessions.takeOver('s', from, 'b')).toMatchObject({ outcome: 'taken' });
    const next = { owner: 'b', epoch: (await store.sessions.find('s'))?.epoch ?? 0 };
    for (const [count, agoMs, outcome] of [
      [3, 19_000, 'paused'],
      [3, 20_000, 'taken'],
    ] as const) {
      await redis().cli('HSET', key, 'takeovers', `${count} ${Date.now() - agoMs}`);
      expect(await store.sessions.takeOver('s', next, 'c')).toMatchObject({ outcome });
    }
    const last = { owner: 'c', epoch: (await store.sessions.find('s'))?.epoch ?? 0 };
    await redis().cli('HSET', key, 'takeovers', `${maxTakeovers} ${Date.now() - 500_000}`);
    expect(await store.sessions.takeOver('s', last, 'd')).toEqual({ outcome: 'worn_out' });
    expect(await store.sessions.takeOver('s', last, 'd')).toEqual({ outcome: 'worn_out' });
    expect(await store.sessions.takeOver('s', next, 'd')).toEqual({ outcome: 'unknown' });
    await store.close();
  });

  it('begin with a prefix that cannot choose the slot', async () => {
    await expect(openRedisStore({ url: redis().url, prefix: 'a{b}' })).rejects.toThrow(TypeError);
  });
});
