import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { measureTwice, rssMiB, type Seen, watch } from '../fault/memory.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';

/**
 * What ten peers send at once that was made to cost much, and how long others wait meanwhile. On a quiet machine:
 * `npm run build && STALL_STRICT=1 npx vitest run test/hardening/stalls.test.ts`, with the bound of 100 ms.
 */
const isStrict = process.env['STALL_STRICT'] === '1';

/** For `/healthz`, without the time in which other processes had the processors. Ten peers share what remains. */
const maxHealthMs = isStrict ? 100 : 1_000;

/** Of all ten together: a line is held in its pieces, as a whole, and once more on its way to its child or log. */
const maxGrownMiB = 400;

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
  const isFine = (seen: Seen): boolean => seen.maxMs < maxHealthMs && seen.grownMiB < maxGrownMiB;
  const expectFine = async (work: () => Promise<unknown>): Promise<void> => {
    const before = rssMiB(gateway.pid);
    const seen = await measureTwice(() => watch(gateway, Promise.all([work(), delay(1_500)])), isFine);
    expect(seen.probes).toBeGreaterThan(0);
    expect(seen.maxMs).toBeLessThan(maxHealthMs);
    expect(seen.grownMiB).toBeLessThan(maxGrownMiB);
    // What stays is what V8 keeps for the next ones.
    expect(rssMiB(gateway.pid) - before).toBeLessThan(maxGrownMiB);
  };

  it.each(requests)('as clients: %s', async (_, body, status, headers) => {
    await expectFine(() =>
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
    await expectFine(() => each(async () => expect((await post(gateway.url, body)).status).toBe(400)));
  });

  it.each([
    ['[S-05] [C-05] a related task of a million levels', 'nested'],
    ['[S-05] [C-05] a related task with 700,000 keys', 'wide'],
    ['[S-05] params with 700,000 keys', 'members'],
    ['[S-05] four million values', 'values'],
    ['[S-05] four million escapes', 'escapes'],
    ['[S-05] a level of a million levels', 'level'],
  ])('as servers, in a line of 8 MiB: %s', async (_, name) => {
    const call = request('tools/call', JSON.stringify({ name, arguments: { bytes: 8 * mebibyte } }), 7);
    await expectFine(() =>
      each(async (id) => expect((await post(gateway.url, call, { 'Mcp-Session-Id': id })).status).toBe(200)),
    );
  });
});
