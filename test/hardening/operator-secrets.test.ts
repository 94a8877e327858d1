import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { everythingFixture, type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, initialize, open, post } from '../support/http-client.ts';
import { startRedis } from '../support/redis-server.ts';
import { startTokenServer, toldToken } from '../support/token-server.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Secrets that an operator configures, each of its own text, at the most talkative level: they are for their place alone. The
 * rest of the run carries those that need no configuration (`test/support/canaries.ts`).
 */
function createSecrets(...names: readonly string[]): {
  readonly of: (name: string) => string;
  expectNoneIn(texts: Readonly<Record<string, string>>): void;
} {
  const of = (name: string): string => {
    if (!names.includes(name)) throw new Error(`${name} is not among the secrets`);
    return `s3cr3t${name}0f7est`;
  };
  return {
    of,
    expectNoneIn: (texts) =>
      expect(
        Object.entries(texts).flatMap(([where, text]) =>
          names.filter((n) => text.includes(of(n))).map((n) => [n, where]),
        ),
      ).toEqual([]),
  };
}

const said = (gateway: Gateway): string => gateway.stdout() + gateway.stderr();
const trace = ['--log-level', 'trace'];

async function healthOf({ baseUrl }: Gateway): Promise<string> {
  const bodies = ['/healthz', '/readyz', '/metrics', '/no-such-path'].map(async (path) => {
    const exchange = await open(`${baseUrl}${path}`, { method: 'GET' });
    return (await exchange.answer()).text;
  });
  return (await Promise.all(bodies)).join('\n');
}

const errorsOf = (answers: readonly Answer[]): string => {
  for (const { status } of answers) expect(status).toBeGreaterThanOrEqual(400);
  return answers.map(({ text, headers }) => text + JSON.stringify(headers)).join('\n');
};

async function contentsOf(url: string): Promise<string> {
  const redis = new Redis(url);
  const keys = await redis.keys('*');
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  redis.disconnect();
  return keys.join('\n') + dumps.map((dump) => dump?.toString('latin1')).join('\n');
}

async function folderWith(files: Readonly<Record<string, unknown>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-secrets-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), JSON.stringify(content));
  return folder;
}

test('[S14b] the password of Redis, an API key and the environment of a server are nowhere but there', async () => {
  const secrets = createSecrets('password', 'key', 'other', 'environment', 'argument');
  const redis = await startRedis({ args: ['--requirepass', secrets.of('password')] });
  const folder = await folderWith({ 'keys.json': [{ name: 'ada', sha256: digestOfKey(secrets.of('key')) }] });
  const url = redis.url.replace('//', `//:${secrets.of('password')}@`);
  const audit = join(folder, 'audit.jsonl');
  const gateway = await startGateway({
    args: [
      ...[...trace, '--api-keys-file', join(folder, 'keys.json'), '--observe.audit', audit],
      ...['--env', `SERVER_TOKEN=${secrets.of('environment')}`],
    ],
    env: { REDIS_URL: url },
    command: everythingFixture,
  });
  const bearer = (key: string) => ({ Authorization: `Bearer ${secrets.of(key)}` });
  const session = await initialize(gateway.url, { headers: bearer('key') });
  await session.callTool('echo', { text: secrets.of('argument') });
  const described = JSON.stringify(await session.callTool('describe_process'));
  expect(described).toContain('SERVER_TOKEN');
  const body = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const errors = errorsOf([
    await post(gateway.url, body, bearer('other')),
    await post(`${gateway.url}?access_token=${secrets.of('other')}`, body),
    await post(gateway.url, body, { ...bearer('key'), 'Mcp-Session-Id': secrets.of('other') }),
    await post(gateway.url, `{"${secrets.of('argument')}"`, bearer('key')),
    // The log names an origin that is refused: the operator has to know which one to allow (docs/authentication.md).
    await post(gateway.url, body, { ...bearer('key'), Origin: 'https://elsewhere.example' }),
  ]);
  // A crash, and a Redis that is away and comes back, make it say what it says least often.
  await session.request('tools/call', { name: 'exit', arguments: {} });
  await redis.kill();
  await waitFor(() => said(gateway).includes('Redis is unavailable'), { what: 'the outage in the log' });
  const health = await healthOf(gateway);
  await redis.restart({ keepData: false });
  const redisHas = await waitFor(
    async () => {
      const contents = await contentsOf(url);
      return contents !== '' && contents;
    },
    { what: 'the session in Redis', deadlineMs: 30_000 },
  );
  await gateway.stop();
  secrets.expectNoneIn({ log: said(gateway), errors, health, redis: redisHas });
});

test('[S14b] [S15] what a wrong password of Redis leads to names no part of its URL', async () => {
  const secrets = createSecrets('password', 'wrong', 'user');
  const redis = await startRedis({ args: ['--requirepass', secrets.of('password')] });
  const url = redis.url.replace('//', `//${secrets.of('user')}:${secrets.of('wrong')}@`);
  const start = startGateway({ args: trace, env: { REDIS_URL: url }, command: everythingFixture });
  const outcome = await start.then(
    async (gateway) => {
      const { text } = await post(gateway.url, {
        ...{ jsonrpc: '2.0', id: 0, method: 'initialize' },
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      });
      const health = await healthOf(gateway);
      await gateway.stop();
      return said(gateway) + text + health;
    },
    (error: Error) => error.message,
  );
  expect(outcome).not.toBe('');
  secrets.expectNoneIn({ outcome });
});

test('[S14b] headers for a remote server, the operator’s and its clients’, are told to that server alone', async () => {
  const secrets = createSecrets('configured', 'forwarded');
  const server = await startTokenServer();
  onTestFinished(() => server.close());
  const gateway = await startGateway({
    args: [
      ...[...trace, '--transport', 'sse', '--defaults.forwardHeaders', 'Authorization'],
      ...['--header', `X-Operator: ${secrets.of('configured')}`, server.urls.sse],
    ],
  });
  const headers = { Authorization: `Bearer ${secrets.of('forwarded')}` };
  const session = await initialize(gateway.url, { headers });
  const { messages } = await session.request('tools/call', { name: 'token', arguments: {} });
  expect(toldToken(messages[0]?.result?.content[0].text ?? '')).toContain(secrets.of('forwarded'));
  server.close();
  const lost = await session.request('tools/call', { name: 'token', arguments: {} });
  const health = await healthOf(gateway);
  await gateway.stop();
  secrets.expectNoneIn({ log: said(gateway), lost: lost.text, health });
});

test('[S14b] a server that repeats what it was sent when it refuses the gateway has none of it told to the operator', async () => {
  const secrets = createSecrets('configured', 'query');
  const server = createServer((request, response) => {
    const repeated = `${request.headers['x-operator']} ${request.url}`;
    response.writeHead(401, { 'WWW-Authenticate': `Bearer realm="${repeated}"` }).end(repeated);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const remote = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp?key=${secrets.of('query')}`;
  const args = [...trace, '--header', `X-Operator: ${secrets.of('configured')}`, remote];
  const said = await startGateway({ args }).then(
    () => expect.unreachable('it has no server'),
    (error: Error) => error.message,
  );
  expect(said).toContain('401');
  secrets.expectNoneIn({ said });
});
