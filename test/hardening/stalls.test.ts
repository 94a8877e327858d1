import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { measureTwice, report, rssMiB, type Seen, watch } from '../fault/memory.ts';
import { msHere } from '../support/cpu-time.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';
import { type RemoteKind, startStallingRemote } from './stalling-remote.ts';

/**
 * What ten peers send at once that was made to cost much, and how long others wait meanwhile. On a quiet machine:
 * `node test/run.mjs stalls`, with the bound of 100 ms.
 */
const isStrict = process.env['STALL_STRICT'] === '1';

/** For `/healthz`, without the time in which other processes had the processors. Ten peers share what remains. */
const maxHealthMs = msHere(isStrict ? 100 : 1_000);

/** Of a server that writes a gigabyte a second: what is in its pipe and in one portion. */
const maxFloodMiB = 100;

const mebibyte = 2 ** 20;
const peers = 10;

const request = (method: string, params: string, id = 1): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
const related = (value: string): string => `{"_meta":{"io.modelcontextprotocol/related-task":${value}}}`;
const size = 4 * mebibyte - 1_000;
const wide = `{${Array.from({ length: 300_000 }, (_, n) => `"k${n}":0`).join()}}`;
const long = `"${'x'.repeat(size)}"`;
const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`;
const uris = Array.from({ length: 300_000 }, (_, n) => `"a:${n}"`).join();
const modern = (method: string) => ({ 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, 'Mcp-Name': 'x' });

/** Requests of clients, and how each is answered: a status, or any. */
const requests: readonly (readonly [string, string, number | undefined, Record<string, string> | undefined])[] = [
  ['[S-06] a related task with 300,000 keys', request('ping', related(wide)), 200, undefined],
  ['[S-06] [C-05] a related task that is a long text', request('ping', related(`{"taskId":${long}}`)), 200, undefined],
  ['[S-06] params with 300,000 keys', request('ping', wide), 400, undefined],
  [
    '[S-06] a name that is an object',
    request('tools/call', `{"name":${wide},${envelope}}`),
    undefined,
    modern('tools/call'),
  ],
  ['[S-11] arguments with 300,000 keys', request('tools/call', `{"name":"x","arguments":${wide}}`), 200, undefined],
  [
    '[S-06] a filter with 300,000 resources',
    request('subscriptions/listen', `{"notifications":{"resourceSubscriptions":[${uris}]},${envelope}}`),
    400,
    modern('subscriptions/listen'),
  ],
  ['[S-05] values without end', request('ping', `{"a":[${'0,'.repeat(size / 2)}0]}`), 200, undefined],
];

/** @param bytes of all that each peer sends, and is sent. The gateway grows by twice as much at most */
async function expectLittle(
  gateway: Gateway,
  what: string,
  bytes: number,
  work: () => Promise<unknown>,
): Promise<void> {
  const maxGrownMiB = (2 * peers * bytes) / mebibyte;
  const isFine = (seen: Seen): boolean => seen.maxMs < maxHealthMs && seen.grownMiB < maxGrownMiB;
  const before = rssMiB(gateway.pid);
  const seen = await measureTwice(() => watch(gateway, Promise.all([work(), delay(1_500)])), isFine);
  if (isStrict) report(what, { ...seen, keptMiB: Math.round(rssMiB(gateway.pid) - before) });
  expect(seen.probes).toBeGreaterThan(0);
  expect(seen.maxMs).toBeLessThan(maxHealthMs);
  expect(seen.grownMiB).toBeLessThan(maxGrownMiB);
  // What stays is what V8 keeps for the next ones.
  expect(rssMiB(gateway.pid) - before).toBeLessThan(2 * maxGrownMiB); // it may have been measured twice
}

describe.runIf(process.platform === 'linux')('ten peers that are made to cost much', () => {
  let gateway: Gateway;
  let sessions: string[];
  beforeAll(async () => {
    const command = [process.execPath, `${root}test/fixtures/children/stalling-server.mjs`];
    gateway = await startGateway({ command });
    sessions = await Promise.all(Array.from({ length: peers }, async () => (await initialize(gateway.url)).id));
  });
  afterAll(async () => void (await gateway?.stop()));

  const each = (send: (id: string) => Promise<unknown>): Promise<unknown> => Promise.all(sessions.map(send));
  const expectFine = (what: string, bytes: number, work: () => Promise<unknown>): Promise<void> =>
    expectLittle(gateway, what, bytes, work);

  it.each(requests)('as clients: %s', async (what, body, status, headers) => {
    await expectFine(what, 4 * mebibyte, () =>
      each(async (id) => {
        const answer = await post(gateway.url, body, headers ?? { 'Mcp-Session-Id': id });
        if (status !== undefined) expect(answer.status).toBe(status);
      }),
    );
  });

  it('[S-09] as clients: an initialize of 4 MiB', async () => {
    const body = request(
      'initialize',
      `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":${long}}}`,
    );
    await expectFine('initialize', 4 * mebibyte, () =>
      each(async () => expect((await post(gateway.url, body)).status).toBe(400)),
    );
  });

  it.each([
    ['[S-05] [C-05] a related task of a million levels', 'nested'],
    ['[S-05] [C-05] a related task with 700,000 keys', 'wide'],
    ['[S-05] params with 700,000 keys', 'members'],
    ['[S-05] four million values', 'values'],
    ['[S-05] four million escapes', 'escapes'],
    ['[S-05] a level of a million levels', 'level'],
  ])('as servers, in a line of 8 MiB: %s', async (what, name) => {
    const call = request('tools/call', JSON.stringify({ name, arguments: { bytes: 8 * mebibyte } }), 7);
    const send = async (id: string): Promise<void> =>
      expect((await post(gateway.url, call, { 'Mcp-Session-Id': id })).status).toBe(200);
    await expectFine(what, 8 * mebibyte, () => each(send));
  });
});

describe.runIf(process.platform === 'linux')(
  '[S-05] ten remote servers, each with an answer of four million values',
  () => {
    const bytes = 8 * mebibyte;
    it.each<RemoteKind>([
      'JSON of Streamable HTTP',
      'events of Streamable HTTP',
      'events of HTTP+SSE',
      'WebSocket',
      'TCP',
    ])('%s', async (kind) => {
      await using server = await startStallingRemote(kind, bytes);
      await using gateway = await startGateway({ args: [server.url] });
      const sessions = await Promise.all(Array.from({ length: peers }, async () => (await initialize(gateway.url)).id));
      const call = request('tools/call', '{"name":"x","arguments":{}}', 7);
      await expectLittle(gateway, kind, 2 * bytes, () =>
        Promise.all(
          sessions.map(async (id) => {
            const headers = { 'Mcp-Session-Id': id, Accept: 'application/json' }; // an event may not be so large
            const { status, text } = await post(gateway.url, call, headers);
            expect([status, text.length > bytes / 2]).toEqual([200, true]);
          }),
        ),
      );
    });

    it.each<RemoteKind>(['JSON of the modern era', 'events of the modern era'])('%s', async (kind) => {
      await using server = await startStallingRemote(kind, bytes);
      await using gateway = await startGateway({ args: ['--era', 'modern', server.url] });
      const call = request('tools/call', `{"name":"x","arguments":{},${envelope}}`, 7);
      await expectLittle(gateway, kind, 2 * bytes, () =>
        Promise.all(
          Array.from({ length: peers }, async () => {
            const { status, text } = await post(gateway.url, call, modern('tools/call'));
            expect([status, text.length > bytes / 2]).toEqual([200, true]);
          }),
        ),
      );
    });
  },
);

/** Ends the server's first answer with a refusal, has its era asked for, and writes without end meanwhile. */
const flooding = `
process.stdin.once('data', (data) => {
  const { id, method } = JSON.parse(data.toString().split('\\n')[0]);
  if (method !== 'initialize') return; // that asks for the era, and gets no answer
  const error = { code: -32601, message: 'Method not found' };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error }) + '\\n');
  const params = { level: 'info', data: 'x'.repeat(60_000) };
  const line = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params }) + '\\n';
  const flood = () => {
    while (process.stdout.write(line));
    process.stdout.once('drain', flood);
  };
  flood();
});`;

it.runIf(process.platform === 'linux')(
  '[C-03] [S-15] a server that writes without end while its era is asked for fills no memory',
  async () => {
    const gateway = await startGateway({
      command: [process.execPath, '-e', flooding],
      args: ['--defaults.timeouts.start', '3s'],
    });
    const opening = request(
      'initialize',
      '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}',
    );
    const startedAt = performance.now();
    const seen = await watch(gateway, post(gateway.url, opening));
    if (isStrict) report('C-03', seen);
    expect(performance.now() - startedAt).toBeGreaterThan(2_000); // it was asked, and nobody answered
    expect(seen.grownMiB).toBeLessThan(maxFloodMiB);
    expect(seen.maxMs).toBeLessThan(maxHealthMs);
  },
);
