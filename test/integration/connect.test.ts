// `mcp-gangway connect`: a client that only starts programs, at a server at a URL.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as TransportV2 } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { everythingFixture, modernFixture, root } from '../support/gateway.ts';
import { sharedLocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { startNetProxy } from '../support/net-proxy.ts';
import { deliverOneByOne } from '../support/one-by-one.ts';
import { waitFor } from '../support/wait-for.ts';

const info = { name: 'desktop', version: '1.0.0' };
const program = `${root}dist/main.js`;

/** The program as a client starts it, with its own environment. */
const command = (url: string, env: Record<string, string> = {}, ...options: readonly string[]) => ({
  command: process.execPath,
  args: [program, 'connect', ...options, url],
  env: { PATH: process.env['PATH'] ?? '', ...env },
  stderr: 'ignore' as const,
});

/** A client of the SDK v1, which has sessions. */
async function connectV1(url: string, ...more: readonly [env?: Record<string, string>, ...options: string[]]) {
  const client = new Client(info, { capabilities: { elicitation: {} } });
  onTestFinished(() => client.close());
  const transport = new StdioClientTransport(command(url, ...more));
  deliverOneByOne(transport);
  await client.connect(transport);
  return client;
}

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? '';

const legacy = sharedLocalGateway({ command: everythingFixture });
const modern = sharedLocalGateway({ command: modernFixture, args: ['--era', 'modern'] });

/** A gateway stands for each kind of server. */
const kinds = [
  ['Streamable HTTP', legacy, '/mcp'],
  ['HTTP+SSE', legacy, '/sse'],
  ['2026-07-28 alone', modern, '/mcp'],
] as const;

describe.each(kinds)('a server over %s', (_, server, path) => {
  test('serves a client of the SDK v1, with what the server asks of it', async () => {
    const gateway = await server();
    const client = await connectV1(gateway.baseUrl + path);
    const asked: string[] = [];
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params.message);
      return { action: 'decline' };
    });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
    expect(textOf(await client.callTool({ name: 'echo', arguments: { text: 'über' } }))).toContain('über');
    if (server === modern) return;
    await client.callTool({ name: 'test_elicitation_sep1034_defaults', arguments: {} });
    expect(asked.length).toBe(1);
  });
});

test.each([
  ['the same revision', modern, '2026-07-28'],
  ['an older one', legacy, '2025-11-25'],
] as const)(
  'a client of the SDK v2 speaks 2026-07-28 with a server of %s, or falls back',
  async (_, server, revision) => {
    const gateway = await server();
    // A gateway serves both eras, so the older server is one that refuses the newer one.
    const url = revision === '2026-07-28' ? gateway.url : `${gateway.baseUrl}/sse`;
    const client = new ClientV2(info, { versionNegotiation: { mode: 'auto' } });
    onTestFinished(() => client.close());
    await client.connect(new TransportV2(command(url)));
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect(textOf(await client.callTool({ name: 'echo', arguments: { text: 'hi' } }))).toContain('hi');
  },
);

test('a header from a variable or an option is sent, and a refused one ends the client with the reason', async () => {
  const key = makeKey('ada');
  const gateway = await startLocalGateway({ command: everythingFixture, env: { GANGWAY_API_KEYS: key.variable } });
  const client = await connectV1(gateway.url, { GANGWAY_HEADER: `Authorization: Bearer ${key.key}` });
  expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  const other = await connectV1(gateway.url, {}, '--header', `Authorization: Bearer ${key.key}`);
  expect((await other.listTools()).tools.length).toBeGreaterThan(0);
  await expect(connectV1(gateway.url, { GANGWAY_HEADER: 'Authorization: Bearer wrong' })).rejects.toThrow(
    /refused access.*Correct the key or token in the variable GANGWAY_HEADER or in --header/,
  );
});

test('[P3] a stream that is cut in the middle of a call goes on: each message arrives once', async () => {
  const gateway = await legacy();
  const proxy = await startNetProxy(gateway.port);
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const client = await connectV1(proxy.urlOf(gateway.url));
  const steps: number[] = [];
  const calling = client.callTool({ name: 'progress', arguments: { count: 30, gapMs: 100, marker: 'm' } }, undefined, {
    onprogress: ({ progress }) => steps.push(progress),
    timeout: 30_000,
  });
  for (const seen of [5, 15]) {
    await waitFor(() => steps.length >= seen, { deadlineMs: 15_000 });
    proxy.cutAll();
  }
  expect(textOf(await calling)).toContain('m');
  expect(steps).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
  expect(proxy.requests().some((head) => /last-event-id/i.test(head))).toBe(true);
});

test('a server that has lost the session gets a new one, and the client goes on', async () => {
  const first = await startLocalGateway({ command: everythingFixture });
  const client = await connectV1(first.url);
  await client.listTools();
  await first.stop();
  await startLocalGateway({ command: everythingFixture, port: first.port });
  await waitFor(
    () =>
      client.callTool({ name: 'echo', arguments: { text: 'again' } }).then(
        (result) => textOf(result).includes('again'),
        () => false,
      ),
    { deadlineMs: 20_000 },
  );
});

describe('the program', () => {
  const run = async (args: readonly string[], input: string) => {
    const child = spawn(process.execPath, [program, 'connect', ...args]);
    onTestFinished(() => void child.kill('SIGKILL'));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return { stdout, stderr, code };
  };

  test('ends when its client closes the pipe, and with the session at the server', async () => {
    const gateway = await legacy();
    const client = await connectV1(gateway.url);
    await client.listTools();
    const before = gateway.logs().filter(({ msg }) => msg === 'session ended').length;
    await client.close();
    const ended = () => gateway.logs().filter(({ msg }) => msg === 'session ended').length;
    await waitFor(async () => ended() > before, { deadlineMs: 10_000 });
    expect(await run([gateway.url], '')).toMatchObject({ code: 0, stdout: '' });
  });

  test('answers what it cannot read or send with errors, and goes on', async () => {
    const gateway = await legacy();
    const lines = ['no json', '{"jsonrpc":"2.0","id":7,"method":"tools/list"}', '{"jsonrpc":"2.0","method":"x"}'];
    const { stdout, code } = await run([gateway.url], `${lines.join('\n')}\n`);
    const answers = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(answers.map(({ id, error }) => [id, error.data.reason])).toEqual([
      [null, 'not_json'],
      [7, 'not_initialized'],
    ]);
    expect(code).toBe(0);
  });

  const hello = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: info },
  };
  const call = (id: number, name: string, args: object) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args },
  });
  const linesOf = (...messages: readonly object[]): string => messages.map((each) => JSON.stringify(each)).join('\n');
  const read = (stdout: string) =>
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));

  test('answers messages that a client writes at once, after its end of the pipe too', async () => {
    const gateway = await legacy();
    const ready = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const slow = call(3, 'progress', { count: 5, gapMs: 100, marker: 'late' });
    // The last line has no end.
    const { stdout, code } = await run([gateway.url], linesOf(hello, ready, call(2, 'echo', { text: 'early' }), slow));
    const answers = new Map(read(stdout).map(({ id, result }) => [id, JSON.stringify(result)]));
    expect(answers.get(1)).toContain('serverInfo');
    expect(answers.get(2)).toContain('early');
    expect(answers.get(3)).toContain('late');
    expect(code).toBe(0);
  });

  test('ends at the time of a drain if a call goes on after the end of the pipe', async () => {
    const gateway = await legacy();
    const ready = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const slow = call(2, 'progress', { count: 600, gapMs: 100, marker: 'never' });
    const { stdout, code } = await run(['--timeouts.drain', '300ms', gateway.url], linesOf(hello, ready, slow));
    expect(read(stdout).find(({ id }) => id === 2)).toMatchObject({ error: { data: { reason: 'session_ended' } } });
    expect(code).toBe(0);
  });

  const discover = {
    jsonrpc: '2.0',
    id: 1,
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': info,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  };
  const firsts = [
    ['initialize', hello],
    ['server/discover', discover],
  ] as const;

  test.each(firsts)('tells a client that sends %s without a key where to put it, and ends with 1', async (_, first) => {
    const env = { GANGWAY_API_KEYS: makeKey('ada').variable };
    const gateway = await startLocalGateway({ command: everythingFixture, env });
    const { stdout, stderr, code } = await run([gateway.url], `${linesOf(first)}\n`);
    expect(read(stdout)[0].error.message).toMatch(
      /refused access \(401 or 403\)\. Set the variable GANGWAY_HEADER to your key/,
    );
    const last = stderr.trim().split('\n').at(-1);
    expect(last).toContain('GANGWAY_HEADER');
    expect(last).not.toContain('--defaults.auth');
    expect(code).toBe(1);
  });

  test.each(firsts)(
    'tells a client that sends %s why its server cannot be reached, and ends with 1',
    async (_, first) => {
      const { stdout, stderr, code } = await run(['http://127.0.0.1:1/mcp'], `${linesOf(first)}\n`);
      const [{ id, error }] = read(stdout);
      expect(id).toBe(1);
      expect(error.message).toContain('http://127.0.0.1:1 refused the connection: nothing listens there.');
      expect(error.message).not.toContain('mcp-gangway check');
      expect(stderr).toContain('refused the connection');
      expect(code).toBe(1);
    },
  );

  test('needs a URL', async () => {
    expect(await run(['--', 'node', 'x.js'], '')).toMatchObject({ code: 2, stdout: '' });
    expect((await run(['tcp://127.0.0.1:1'], '')).stderr).toContain('connect needs one URL');
    expect(await run([], '')).toMatchObject({ code: 2 });
  });
});
