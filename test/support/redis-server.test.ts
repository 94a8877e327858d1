import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listProcesses } from './processes.ts';
import { type RedisServer, startRedis } from './redis-server.ts';
import { createRespReader, type Reply } from './resp.ts';
import { waitFor, withDeadline } from './wait-for.ts';

describe('a Redis for tests', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());

  test('answers commands, as values and as text', async () => {
    expect(await redis.cli('SET', 'a', 'ä€\r\n𝄞')).toBe('OK');
    expect(await redis.cli('GET', 'a')).toBe('ä€\r\n𝄞');
    expect(await redis.command('EVAL', "return {1, 'two', {false, {}}}", '0')).toEqual([1, 'two', [null, []]]);
    expect(await redis.cli('GET', 'none')).toBe('');
    await expect(redis.cli('HGET', 'a', 'b')).rejects.toThrow('WRONGTYPE');
    expect(redis.url).toBe(`redis://127.0.0.1:${redis.port}`);
  });

  test('keeps nothing on its disk and forgets its data when it is emptied', async () => {
    await redis.cli('SET', 'a', '1');
    expect(await redis.cli('CONFIG', 'GET', 'save')).toBe('save\n');
    expect(await redis.cli('CONFIG', 'GET', 'appendonly')).toBe('appendonly\nno');
    await redis.empty();
    expect(await redis.cli('DBSIZE')).toBe('0');
  });

  test('refuses writes, but not reads and renewals, while it is full', async () => {
    await redis.cli('SET', 'a', '1', 'PX', '100000');
    await redis.fill();
    await expect(redis.cli('SET', 'b', '1')).rejects.toThrow('OOM');
    expect(await redis.cli('GETEX', 'a', 'PX', '200000')).toBe('1');
    await redis.unfill();
    expect(await redis.cli('SET', 'b', '1')).toBe('OK');
  });

  test('counts commands, those in scripts too, and forgets scripts', async () => {
    const before = await redis.commandCount();
    const digest = await redis.cli('SCRIPT', 'LOAD', "return redis.call('INCR', KEYS[1])");
    await redis.cli('EVALSHA', digest, '1', 'n');
    await redis.cli('EVALSHA', digest, '1', 'n');
    const after = await redis.commandCount();
    const differenceOf = (name: string) => (after.calls.get(name) ?? 0) - (before.calls.get(name) ?? 0);
    expect(['evalsha', 'incr', 'script|load', 'get'].map(differenceOf)).toEqual([2, 2, 1, 0]);
    expect(after.total - before.total).toBe(5);
    await redis.flushScripts();
    await expect(redis.cli('EVALSHA', digest, '1', 'n')).rejects.toThrow('NOSCRIPT');
  });

  test('shows who sends which command', async () => {
    await using monitor = await redis.monitor();
    await redis.cli('EVAL', "return redis.call('INCR', KEYS[1])", '1', 'a "quoted" name');
    const inScript = await monitor.commands.next(({ from }) => from === 'lua');
    expect(inScript.args).toEqual(['INCR', 'a \\"quoted\\" name']);
    expect(monitor.commands.items[0]?.from).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  test('answers nothing while it is paused, and then everything', async () => {
    await redis.pause();
    let isAnswered = false;
    const reply = redis.cli('PING').then((text) => {
      isAnswered = true;
      return text;
    });
    await expect(withDeadline(reply, { deadlineMs: 100 })).rejects.toThrow('in vain');
    expect(isAnswered).toBe(false);
    redis.resume();
    expect(await reply).toBe('PONG');
  });

  test('starts again on the same port, with its data or without', async () => {
    const { port, pid } = redis;
    await redis.cli('SET', 'kept', '1');
    await redis.restart({ keepData: true });
    expect(redis.pid).not.toBe(pid);
    expect(await redis.cli('GET', 'kept')).toBe('1');
    await redis.restart({ keepData: false });
    expect(await redis.cli('DBSIZE')).toBe('0');
    await redis.pause();
    await redis.restart({ keepData: false });
    expect(await redis.cli('PING')).toBe('PONG');
    expect(redis.port).toBe(port);
  });

  test('goes back to what it saved when it was killed', async () => {
    await redis.cli('SET', 'n', 'old');
    await redis.save();
    await redis.cli('SET', 'n', 'new');
    await redis.kill();
    await expect(redis.cli('PING')).rejects.toThrow('ECONNREFUSED');
    await redis.restart({ keepData: true });
    expect(await redis.cli('GET', 'n')).toBe('old');
  });
});

test('a durable one loses nothing when it is killed', async () => {
  const redis = await startRedis({ isDurable: true });
  await redis.cli('SET', 'n', '1');
  await redis.kill();
  await redis.restart({ keepData: true });
  expect(await redis.cli('GET', 'n')).toBe('1');
});

test('says so when nothing was kept', async () => {
  const redis = await startRedis();
  await redis.kill();
  await expect(redis.restart({ keepData: true })).rejects.toThrow('nothing on its disk');
});

test('can be a cluster of one', async () => {
  const redis = await startRedis({ args: ['--cluster-enabled', 'yes'] });
  await redis.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await expect(redis.cli('MGET', 'a', 'b')).rejects.toThrow('CROSSSLOT');
});

describe('the end of a test', () => {
  let pid = 0;
  test('[first half] starts one and pauses it', async () => {
    const redis = await startRedis();
    pid = redis.pid;
    await redis.pause();
  });
  test('stops it, paused or not', async () => {
    expect((await listProcesses()).filter((process) => process.pid === pid && !process.isZombie)).toEqual([]);
  });
});

test('says what to install where there is no redis-server', async () => {
  const path = process.env['PATH'];
  process.env['PATH'] = '/nowhere';
  try {
    await expect(startRedis()).rejects.toThrow('apt-get install redis-server');
  } finally {
    process.env['PATH'] = path;
  }
});

test('replies are read however they are cut', () => {
  const bytes = Buffer.from('+OK\r\n$5\r\n\r\n€\r\n*3\r\n:-1\r\n$-1\r\n*1\r\n-ERR no\r\n');
  for (let size = 1; size <= bytes.length; size++) {
    const replies: Reply[] = [];
    const read = createRespReader((reply) => replies.push(reply));
    for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size));
    expect(replies).toEqual(['OK', '\r\n€', [-1, null, [new Error('ERR no')]]]);
  }
});

test('a Redis whose disk is full refuses writes, and takes them again later, with all that it had', async () => {
  const redis = await startRedis({ args: ['--appendonly', 'yes'] });
  await redis.cli('SET', 'before', '1');
  await redis.fillDisk();
  const isFull = async () =>
    (await redis.cli('SET', 'x', '1').catch((error: Error) => error.message)).includes('MISCONF');
  await waitFor(isFull, { what: 'a refusal', deadlineMs: 20_000 });
  expect(await redis.cli('GET', 'before')).toBe('1');
  await redis.freeDisk();
  const isFree = async () => (await redis.cli('SET', 'after', '2').catch(() => '')) === 'OK';
  await waitFor(isFree, { what: 'a write', deadlineMs: 20_000 });
  await redis.restart({ keepData: true });
  expect(await redis.cli('MGET', 'before', 'after')).toBe('1\n2');
});
