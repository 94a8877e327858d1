import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { msHere } from '../support/cpu-time.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { isFull, measureTwice, report, rssMiB, type Seen, watch } from './memory.ts';
import { logged, responseOf, shortGrace, statusOf, toolCall } from './moody.ts';
import { openReader } from './reader.ts';

const start = (...args: string[]): Promise<Gateway> =>
  startGateway({
    args: [...shortGrace, ...args],
    command: [process.execPath, `${root}test/fixtures/children/flooding-server.mjs`],
  });

const mebibyte = 1024 * 1024;
const floodBytes = (isFull ? 1024 : 48) * mebibyte;
/** What the log, a client that lags and the pipes may hold is below 32 MiB; the rest is the garbage collector's. */
const maxGrowthMiB = 150;
const maxHealthMs = msHere(100);
const isFine = ({ grownMiB, p99Ms }: Seen): boolean => grownMiB < maxGrowthMiB && p99Ms < maxHealthMs;

/** Calls in another session, one after the other, until the work is done; how many, and how long they took at most. */
async function callUntil(session: Session, work: Promise<unknown>): Promise<{ calls: number; maxMs: number }> {
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  });
  let calls = 0;
  let maxMs = 0;
  while (!isDone) {
    const sentAt = performance.now();
    expect((await session.request('x')).status).toBe(200);
    maxMs = Math.max(maxMs, Math.round(performance.now() - sentAt));
    calls += 1;
    await delay(20);
  }
  return { calls, maxMs };
}

describe('a flood on stdout', () => {
  /** Floods a session, while `client` does what it does with it; the gateway is new each time. */
  async function flood(meta: object | undefined, client: 'reads' | 'never reads' | 'none') {
    const gateway = await start('--timeouts.slowReader', '1s', '--sse.streamAfter', '50ms');
    const [session, other] = [await initialize(gateway.url), await initialize(gateway.url)];
    await Promise.all([session.request('x'), other.request('x')]);
    const reader = client === 'none' ? undefined : await openReader(gateway.url, session, client);
    const call = { name: 'flood', arguments: { bytes: floodBytes }, ...(meta && { _meta: meta }) };
    // Not read here: this process measures, so another one reads.
    const body = { jsonrpc: '2.0', id: 'f', method: 'tools/call', params: call };
    // A call whose client accepts only JSON has no stream, so that what is not its progress goes to the GET stream.
    const accept = client === 'none' ? 'text/event-stream' : 'application/json';
    const flooding = openReader(gateway.url, session, 'reads', body, accept);
    const done = flooding.then(({ ended }) => ended);
    const [seen, honest] = await Promise.all([watch(gateway, done), callUntil(other, done)]);
    const result = { ...seen, honest, flood: await done, get: reader && { bytes: reader.bytes() } };
    reader?.end();
    expect(await statusOf(session)).toBe(200);
    await gateway.stop();
    return result;
  }

  test.each([
    ['progress to a client that reads', { progressToken: 'p' }, 'none'],
    ['log notifications to a GET client that reads', undefined, 'reads'],
    ['log notifications to a GET client that never reads', undefined, 'never reads'],
  ] as const)(
    '[F14] [P8] %s: memory stays flat, /healthz fast, and another session goes on',
    async (what, meta, client) => {
      const seen = await measureTwice(() => flood(meta, client), isFine);
      report(`F14 ${floodBytes / mebibyte} MiB of ${what}`, seen);
      expect(seen.grownMiB).toBeLessThan(maxGrowthMiB);
      expect(seen.p99Ms).toBeLessThan(maxHealthMs);
      expect(seen.honest.calls).toBeGreaterThan(3);
    },
    isFull ? 600_000 : 60_000,
  );

  test('[F14] [P8] with nobody who listens, and a call that is JSON: what is not kept is evicted', async () => {
    const gateway = await start();
    const session = await initialize(gateway.url);
    await session.request('x');
    const call = session.send(toolCall('f', 'flood', { bytes: floodBytes }), { Accept: 'application/json' });
    const seen = await watch(
      gateway,
      call.then((exchange) => exchange.answer({ deadlineMs: 300_000 })),
    );
    report(`F14 ${floodBytes / mebibyte} MiB to nobody`, seen);
    expect(await responseOf(call, 'f')).toMatchObject({ result: {} });
    expect(seen.grownMiB).toBeLessThan(maxGrowthMiB);
  }, 600_000);
});

/** What stands around the filler of a giant answer to a call with an id of one letter. */
const giantFrame = '{"jsonrpc":"2.0","id":"g","result":{"x":""}}'.length;

describe('a line without end', () => {
  /** What comes of a giant line in the answer to a call, and how long it took. */
  async function giant(session: Session, args: object, headers = {}) {
    const startedAt = performance.now();
    const answer = await (await session.send(toolCall('g', 'giant', args), headers)).answer({ deadlineMs: 120_000 });
    return { ...answer, tookMs: performance.now() - startedAt };
  }
  const json = { Accept: 'application/json' };

  test('[F15] below the limit, in chunks of 16 KiB, passes as JSON, in linear time', async () => {
    const gateway = await start();
    const session = await initialize(gateway.url);
    const sizes = [16, 63];
    const rates: number[] = [];
    await giant(session, { bytes: 8 * mebibyte }, json);
    for (const size of sizes) {
      const { status, text, tookMs } = await giant(session, { bytes: size * mebibyte }, json);
      expect([status, text.length]).toEqual([200, size * mebibyte + giantFrame]);
      rates.push(tookMs / size);
    }
    report('F15 ms per MiB at 16 and 63 MiB', { rates: rates.map((rate) => Math.round(rate * 10) / 10) });
    expect((rates[1] as number) / (rates[0] as number)).toBeLessThan(3); // quadratic time would make it 4
  });

  test('[F15] [P3] over the limit, as a line of 64 MiB in chunks of 16 KiB: line_too_long, and the session goes on', async () => {
    const gateway = await start();
    const session = await initialize(gateway.url);
    await session.request('x');
    const before = rssMiB(gateway.pid);
    const hung = session.send(toolCall('h', 'hang'));
    const list = session.send({ jsonrpc: '2.0', id: 'l', method: 'tools/call', params: { name: 'hang' } });
    const [{ status, json: body, tookMs }] = await Promise.all([
      giant(session, { bytes: 80 * mebibyte, ends: false }, json),
    ]);
    expect([status, body]).toMatchObject([502, { id: 'g', error: { data: { reason: 'line_too_long' } } }]);
    expect(await responseOf(hung, 'h')).toMatchObject({ error: { data: { reason: 'line_too_long' } } });
    expect(await responseOf(list, 'l')).toMatchObject({ error: { data: { reason: 'line_too_long' } } });
    expect(await statusOf(session)).toBe(200);
    report('F15 64 MiB over the limit', {
      tookMs: Math.round(tookMs),
      grownMiB: Math.round(rssMiB(gateway.pid) - before),
    });
    expect(tookMs).toBeLessThan(15_000);
    expect(rssMiB(gateway.pid) - before).toBeLessThan(300);
  });

  test('[F15] longer than a line may be: each call in flight ends with line_too_long once, also one that only reads', async () => {
    const gateway = await start();
    const session = await initialize(gateway.url);
    const read = { jsonrpc: '2.0', id: 'r', method: 'resources/read', params: { uri: 'giant', bytes: 65 * 2 ** 20 } };
    expect(await responseOf(session.send(read), 'r')).toMatchObject({ error: { data: { reason: 'line_too_long' } } });
    expect(await statusOf(session)).toBe(200);
    const fits = await giant(session, { bytes: 60 * 2 ** 20 }, json);
    expect(fits.status).toBe(200);
    expect(await logged(gateway, 'server ended')).toMatchObject([{ reason: 'line_too_long' }]);
  });
});

describe('a flood on stderr', () => {
  test('[F18] of 200 MB is read to its end: calls go on, memory is flat, and the log is not filled', async () => {
    const gateway = await start('--log-level', 'debug');
    const [session, other] = [await initialize(gateway.url), await initialize(gateway.url)];
    await session.request('x');
    const call = session.send(toolCall('e', 'stderr', { bytes: 200e6 }));
    const done = call.then((exchange) => exchange.answer({ deadlineMs: 120_000 }));
    const [seen, honest] = await Promise.all([watch(gateway, done), callUntil(other, done)]);
    expect((await done).messages).toMatchObject([{ id: 'e', result: {} }]);
    report('F18 200 MB', { ...seen, honest, logBytes: gateway.stderr().length });
    expect(seen.grownMiB).toBeLessThan(maxGrowthMiB);
    expect(gateway.stderr().length).toBeLessThan(2e6);
    expect(await statusOf(session)).toBe(200);
  }, 120_000);
});
