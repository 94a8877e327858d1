import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { everythingFixture, type Gateway, root, startGateway } from '../support/gateway.ts';
import { type Exchange, initialize, type Session } from '../support/http-client.ts';
import { isFull, rssMiB } from './memory.ts';
import { makeFolder, shortGrace } from './moody.ts';

const eventId = /^\d{1,10}\.\d{13}-\d{1,10}(~[\w%.-]+)?$/;
const json = { Accept: 'application/json' };
const sse = { Accept: 'text/event-stream' };

async function start(): Promise<Gateway & { honestUrl: string; hostileUrl: string }> {
  const [command, ...args] = everythingFixture;
  const hostile = [`${root}test/fixtures/children/hostile-server.mjs`];
  const config = join(makeFolder(), 'servers.json');
  const mcpServers = { honest: { command, args }, hostile: { command: process.execPath, args: hostile } };
  writeFileSync(config, JSON.stringify({ mcpServers }));
  const gateway = await startGateway({ args: [...shortGrace, '--config', config] });
  const { baseUrl } = gateway;
  return { ...gateway, honestUrl: `${baseUrl}/honest/mcp`, hostileUrl: `${baseUrl}/hostile/mcp` };
}

/** What an honest client sees, byte by byte, but for the epoch of its session, which is a time. */
async function honestTranscript(url: string): Promise<string[]> {
  const session = await initialize(url, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
  const get = await session.getStream();
  const texts: string[] = [JSON.stringify(session.initialized)];
  const keep = async (exchange: Promise<Exchange>): Promise<void> => {
    const { status, headers, text } = await (await exchange).answer();
    texts.push(`${status} ${headers['content-type']}\n${text}`);
  };
  const call = (id: number, name: string, args: object, meta?: object) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args, ...(meta && { _meta: meta }) },
  });
  for (let round = 0; round < 4; round++) {
    const first = round * 10;
    await keep(session.send({ jsonrpc: '2.0', id: first, method: 'tools/list' }, json));
    await keep(session.send(call(first + 1, 'echo', { text: `round ${round} ünï \u2028 "` }), json));
    await keep(session.send(call(first + 2, 'echo', { text: 'on a stream' }), sse));
    const progress = { count: 5, gapMs: 5, marker: `m${round}` };
    await keep(session.send(call(first + 3, 'progress', progress, { progressToken: round }), sse));
    await keep(session.send({ jsonrpc: '2.0', id: first + 4, method: 'no/such' }, json));
  }
  get.drop();
  texts.push(JSON.stringify(get.events.items));
  await session.delete();
  return texts.map((text) => text.replaceAll(/(\b\d{1,4}\.)\d{13}(-\d+)/g, '$1EPOCH$2'));
}

/** Uses the hostile server until told to stop; counts what came and checks that each event is one message. */
async function useHostile(url: string, isOver: () => boolean) {
  const seen = { answers: 0, events: 0, sessions: 0, statuses: new Set<number>() };
  const check = (exchange: Exchange): void => {
    for (const { id, event, retry, data } of exchange.events.items) {
      seen.events += 1;
      if (id !== undefined) expect(id).toMatch(eventId);
      if (event === 'gap') continue;
      expect([undefined, 2_000]).toContain(retry);
      expect(['message', undefined]).toContain(event);
      if (data !== '') expect(JSON.parse(data ?? '')).not.toHaveProperty('stolen');
    }
  };
  let id = 0;
  while (!isOver()) {
    const session: Session = await initialize(url);
    seen.sessions += 1;
    const get = await session.getStream();
    for (let n = 0; n < 20 && !isOver(); n++) {
      const own = ++id;
      const method = n % 2 === 0 ? 'tools/call' : 'tools/list';
      const body = { jsonrpc: '2.0', id: own, method, params: { name: 'x', _meta: { progressToken: own % 40 } } };
      const exchange = await session.send(body, n % 3 === 0 ? json : {});
      const { status, messages } = await exchange.answer();
      seen.statuses.add(status);
      check(exchange);
      if (status === 404) break;
      expect(messages.filter((message) => message.id === own && message.method === undefined)).toHaveLength(1);
      seen.answers += 1;
    }
    check(get);
    get.drop();
    await session.delete();
  }
  return seen;
}

describe('a hostile server beside an honest one', () => {
  test('[F12] [F14] [F17] [F18] [P2] [P11] the honest transcript is the same to the byte as without it', async () => {
    const gateway = await start();
    const alone = await honestTranscript(gateway.honestUrl);
    const before = rssMiB(gateway.pid);
    let isOver = false;
    const hostile = Promise.all([1, 2].map(() => useHostile(gateway.hostileUrl, () => isOver)));
    hostile.catch(() => undefined);
    const rounds = isFull ? 20 : 1;
    for (let round = 0; round < rounds; round++) expect(await honestTranscript(gateway.honestUrl)).toEqual(alone);
    isOver = true;
    for (const { answers, events } of await hostile) {
      expect(answers).toBeGreaterThan(0);
      expect(events).toBeGreaterThan(1_000);
    }
    expect(rssMiB(gateway.pid) - before).toBeLessThan(200);
    expect(await honestTranscript(gateway.honestUrl)).toEqual(alone);
    expect((await gateway.stop()).code).toBe(0);
  }, 300_000);
});
