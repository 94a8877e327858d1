import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, type Partition, startCluster } from './cluster.ts';
import { open, post } from './http-client.ts';
import { listProcesses } from './processes.ts';
import { startRedis } from './redis-server.ts';
import { withDeadline } from './wait-for.ts';

/** A fake gateway: it prints a URL, has a child, identifies itself, and uses Redis. */
const fake = `
  const { createServer } = require('node:http');
  const { connect } = require('node:net');
  const { spawn } = require('node:child_process');
  const args = process.argv.slice(1);
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const redis = new URL(args[args.indexOf('--redis') + 1]);
  const link = args.indexOf('--cluster.link.port');
  if (link >= 0) {
    const { createServer } = require('node:net');
    createServer((peer) => peer.on('error', () => undefined).on('data', () => peer.write('PEER')))
      .listen(Number(args[link + 1]), '127.0.0.1');
  }
  const toRedis = connect(redis.port, redis.hostname);
  toRedis.on('error', () => undefined);
  createServer((request, response) => {
    if (request.url.startsWith('/peer/')) {
      const peer = connect(Number(request.url.slice(6)), '127.0.0.1', () => peer.write('PING'));
      peer.once('data', (data) => response.end(data));
      peer.once('error', () => response.end('broken'));
      return peer.once('close', () => response.end('broken'));
    }
    if (request.url === '/mcp') return response.end(JSON.stringify({ pid: process.pid, args }));
    const socket = request.url === '/kept' ? toRedis : connect(redis.port, redis.hostname);
    if (socket.destroyed) return response.end('broken');
    socket.write('PING\\r\\n');
    socket.once('data', (data) => response.end(data));
    socket.once('error', () => response.end('broken'));
    socket.once('close', () => response.end('broken'));
  }).listen(0, '127.0.0.1', function () {
    console.log('  http://127.0.0.1:' + this.address().port + '/mcp');
  });
  process.on('SIGTERM', () => { child.kill(); process.exit(0); });
`;
const program = [process.execPath, '-e', fake, '--'];

const ask = async (cluster: Cluster, instance?: number) =>
  (await post(cluster.url, {}, instance === undefined ? {} : { 'x-instance': instance })).text;
const pidsOf = (cluster: Cluster) => cluster.instances.map(({ pid }) => pid);

describe('a cluster', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({
      program,
      args: (instance) => [`--option-of-${instance}`],
      command: ['server', 'x'],
      isPartitionable: true,
    });
  });
  afterAll(() => cluster?.stop());

  test('has gateways with one Redis and one command, one after the other behind one URL', async () => {
    const answers = [await ask(cluster), await ask(cluster), await ask(cluster)].map((text) => JSON.parse(text));
    expect(answers.map(({ pid }) => pid)).toEqual(pidsOf(cluster));
    expect(answers[1].args).toEqual(expect.arrayContaining(['--option-of-1', '--', 'server', 'x']));
  });

  test.each<[Partition, string]>([
    ['held', '+PONG\r\n'],
    ['lost', 'broken'],
    ['refused', 'broken'],
  ])('parts an instance from Redis (%s) and not the others, and heals it', async (how, outcome) => {
    const restarted = await cluster.restart(1);
    expect((await post(`${restarted.baseUrl}/kept`, {})).text).toBe('+PONG\r\n');
    await cluster.partition(1, how);
    const exchange = open(`${restarted.baseUrl}/kept`);
    if (how === 'refused') expect((await post(`${restarted.baseUrl}/new`, {})).text).toBe('broken');
    else await expect(withDeadline(exchange, { deadlineMs: 100 })).rejects.toThrow('in vain');
    expect((await post(`${cluster.instances[0]?.baseUrl}/new`, {})).text).toBe('+PONG\r\n');
    await cluster.heal(1);
    expect((await (await exchange).answer()).text).toBe(outcome);
    expect((await post(`${restarted.baseUrl}/new`, {})).text).toBe('+PONG\r\n');
  });

  test('freezes an instance and thaws it', async () => {
    await cluster.freeze(2);
    const answer = ask(cluster, 2);
    await expect(withDeadline(answer, { deadlineMs: 100 })).rejects.toThrow('in vain');
    cluster.thaw(2);
    expect(JSON.parse(await answer).pid).toBe(pidsOf(cluster)[2]);
  });

  test('restarts an instance, also one that was frozen or killed', async () => {
    const before = pidsOf(cluster);
    await cluster.freeze(0);
    await cluster.restart(0);
    await cluster.kill(1);
    expect([await ask(cluster, 0), await ask(cluster)].map((text) => JSON.parse(text).pid)).not.toContain(before[1]);
    await cluster.restart(1);
    expect(JSON.parse(await ask(cluster, 1)).pid).toBe(pidsOf(cluster)[1]);
    expect(new Set([...before, ...pidsOf(cluster)]).size).toBe(5);
  });

  test('tells of what an ended instance left behind', async () => {
    expect(await cluster.kill(2, 'SIGTERM')).toEqual({ code: 0, signal: null });
    const [child] = (await cluster.instances[0]?.descendants()) ?? [];
    expect(await cluster.kill(0)).toEqual({ code: null, signal: 'SIGKILL' });
    await expect(cluster.allChildrenEnded({ deadlineMs: 200 })).rejects.toThrow('sleep 60');
    process.kill(child?.pid ?? 0);
    // The one of instance 1 of the test before is left too, if that test ran.
    await expect(cluster.allChildrenEnded({ deadlineMs: 200 })).rejects.not.toThrow(`${child?.pid} sleep`);
  });
});

test('ends everything it started, whatever state it is in, and no Redis that it was given', async () => {
  const redis = await startRedis();
  const cluster = await startCluster({ program, redis, instances: 2 });
  const pids = [...pidsOf(cluster), ...((await cluster.instances[0]?.descendants()) ?? []).map(({ pid }) => pid)];
  expect(pids).toHaveLength(3);
  await cluster.freeze(0);
  await cluster.kill(1);
  await cluster.stop();
  await cluster.allChildrenEnded();
  const alive = (await listProcesses()).filter(({ pid, isZombie }) => pids.includes(pid) && !isZombie);
  expect(alive).toEqual([]);
  expect(await redis.cli('PING')).toBe('PONG');
  await expect(post(cluster.url, {})).rejects.toThrow('ECONNREFUSED');
});

test('a cluster that cannot start leaves nothing behind', async () => {
  const redis = await startRedis();
  const args = (instance: number) => (instance === 1 ? ['--fail'] : []);
  const failing = `if (process.argv.includes('--fail')) process.exit(3);${fake}`;
  const failed = startCluster({ program: [process.execPath, '-e', failing, '--'], args, redis });
  await expect(failed).rejects.toThrow('ended (3)');
  const left = (await listProcesses()).filter(({ command }) => command.includes(redis.url));
  expect(left).toEqual([]);
});

test.each<[Partition]>([['held'], ['lost'], ['refused']])(
  'parts one instance from another (%s), and neither the other way nor a third one',
  async (how) => {
    await using cluster = await startCluster({ program, link: 'proxied' });
    const asks = async (from: number, to: number): Promise<string> => {
      const path = `/peer/${cluster.linkProxies[to]?.port}`;
      const answer = post(`${cluster.instances[from]?.baseUrl}${path}`, {});
      return withDeadline(answer, { deadlineMs: 1_000 }).then(
        ({ text }) => text,
        () => 'nothing',
      );
    };
    cluster.partitionLinks([[0, 1]], how);
    expect(await asks(0, 1)).toBe(how === 'refused' ? 'broken' : 'nothing');
    for (const [from, to] of [
      [1, 0],
      [2, 1],
      [0, 2],
    ] as const)
      expect(await asks(from, to)).toBe('PEER');
    await cluster.healLinks();
    expect(await asks(0, 1)).toBe('PEER');
  },
);
