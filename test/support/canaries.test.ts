import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { canary, environmentCanaries, leaksIn, noteIssued } from './canaries.ts';
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts';
import { open } from './http-client.ts';
import { waitForDescendants } from './processes.ts';
import { expectNoLeakInRedis } from './redis-contents.ts';
import { startRedis } from './redis-server.ts';

const id = `${'A'.repeat(20) + '_-'.repeat(10)}xyz`;

/** A fake gateway that then does forbidden things. */
const start = (deed: string, options: GatewayOptions = {}) => {
  const code = `${deed}; console.log('  http://127.0.0.1:1/mcp'); setInterval(() => {}, 1_000)`;
  return startGateway({
    env: environmentCanaries,
    ...options,
    program: [process.execPath, '-e', code, '--'],
    isStoppedWithTest: false,
  });
};

const inLog = /A secret has leaked into the log of a gateway/;

test('[S14b] a gateway that logs what is in its environment fails the test that stops it', async () => {
  const gateway = await start('console.error(process.env.AWS_SECRET_ACCESS_KEY)');
  await expect(gateway.stop()).rejects.toThrow(inLog);
});

test('[S14b] a gateway that logs a session id fails the test that stops it, also one within other text', async () => {
  noteIssued(id);
  const gateway = await start(`console.error('session=x_${id}.')`);
  await expect(gateway.stop()).rejects.toThrow(inLog);
  expect(leaksIn(`${'A'.repeat(43)} ${id.slice(1)}`)).toEqual([]);
});

test('[S14b] content fails it at info, and not at debug, where a header does', async () => {
  const says = (text: string) => `console.error(${JSON.stringify(text)})`;
  const atDebug = { args: ['--log-level', 'debug'] };
  await expect((await start(says(canary('content')))).stop()).rejects.toThrow(inLog);
  await (await start(says(canary('content')), atDebug)).stop();
  await expect((await start(says(canary('header')), atDebug)).stop()).rejects.toThrow(inLog);
});

test.runIf(process.platform === 'linux')(
  '[S14b] a gateway that hands its environment or a header to a child fails the test that stops it',
  async () => {
    const idle = "'setInterval(() => {}, 1_000)'";
    const spawn = (options: string, args = '') =>
      `require('node:child_process').spawn(process.execPath, ['-e', ${idle}${args}], ${options})`;
    const stop = async (gateway: Gateway): Promise<unknown> => {
      const children = await waitForDescendants(gateway.pid, 1);
      onTestFinished(() => void children.map(({ pid }) => process.kill(pid)));
      return gateway.stop();
    };
    const inherits = await start(spawn('{ stdio: "ignore" }'));
    await expect(stop(inherits)).rejects.toThrow(/leaked into environ of a server/);
    const argument = await start(spawn('{ stdio: "ignore", env: {} }', `, '${canary('header')}'`));
    await expect(stop(argument)).rejects.toThrow(/leaked into cmdline of a server/);
  },
);

test('[S14b] an error body that repeats a header fails the test that reads it', async () => {
  const server = createServer((request, response) => response.writeHead(400).end(request.headers.cookie));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const exchange = await open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { method: 'GET' });
  await expect(exchange.answer()).rejects.toThrow(/leaked into the body of a 400/);
});

test('[S14b] a Redis that holds a session id, or content in a key, fails the test that stops it', async () => {
  const redis = await startRedis();
  await redis.command('HSET', 'a', 'b', canary('content'));
  await expectNoLeakInRedis(redis.port);
  await redis.command('SET', `x:${canary('content')}`, '1');
  await expect(expectNoLeakInRedis(redis.port)).rejects.toThrow(/leaked into keys of Redis/);
  await redis.empty();
  noteIssued(id);
  await redis.command('XADD', 's', '*', 'owner', id);
  await expect(expectNoLeakInRedis(redis.port)).rejects.toThrow(/leaked into values of Redis/);
  await redis.empty();
});
