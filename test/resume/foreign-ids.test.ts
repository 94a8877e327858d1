import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EventId, parseEventId, readRequestIds } from '../../src/core/protocol/wire/event-id.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { listen } from '../support/resuming-client.ts';
import { type CountingSession, headersOf, hold, openCounting, textsOf, withCounting } from './counting.ts';

/** The command of the counting server, as an entry of a configuration file. */
const { command: [command, ...args] = [] } = withCounting();

let folder: string;
let gateway: LocalGateway;
/** The name of each one's calls begins like this, and is in every message. */
let mine: CountingSession;
let other: CountingSession;
let elsewhere: CountingSession;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'resume-'));
  const file = join(folder, 'servers.json');
  await writeFile(file, JSON.stringify({ mcpServers: { one: { command, args }, two: { command, args } } }));
  gateway = await startLocalGateway({ args: ['--config', file, '--timeouts.drain', '0'] });
  [other, elsewhere, mine] = [await openAt('one'), await openAt('two'), await openAt('one')];
});
afterAll(async () => {
  await gateway?.stop();
  await rm(folder, { recursive: true });
});

const urlOf = (server: string): string => `${gateway.baseUrl}/${server}/mcp`;
const openAt = (server: string): Promise<CountingSession> => openCounting(urlOf(server));

/** Makes a call of the session with this name, answered or left open, and gives the ids of its events. */
async function speak(session: CountingSession, name: string, isAnswered: boolean): Promise<string[]> {
  const listening = await hold(session, name);
  await session.emit(name, 3);
  if (isAnswered) {
    await session.finish(name);
    await listening.ended;
  } else {
    await listening.events.next(({ data }) => data?.includes('"progress":3') === true);
    listening.drop();
  }
  return listening.events.items.flatMap(({ id }) => id ?? []);
}

const placeOf = (id: string) => parseEventId(id) as EventId;
const withoutRequests = (id: string): string => id.replace(/~.*/, '');

/** Resumes from an id until all that is kept after it has come. */
async function bytesAfter(session: CountingSession, url: string, after: string) {
  const listening = listen(url, { headers: headersOf(session), after });
  const { status } = await listening.opened;
  if (status === 200) {
    await listening.events.next();
    await session.lines(); // what is replayed has been written by then
    listening.drop();
  }
  return listening.ended;
}

describe('an id of a stream that is not the session’s', () => {
  test('[R7.17] [S07] [A04] [B16] of another session or server gets 400 or 404, or the end of the requests that it names, and not a byte', async () => {
    const ids = [
      ...(await speak(other, 'other-answered', true)),
      ...(await speak(other, 'other-open', false)),
      ...(await speak(elsewhere, 'elsewhere-open', false)),
    ];
    expect(ids).toHaveLength(13);
    const naming = ids.filter((id) => id.includes('~')); // but for that of the answer
    expect(naming).toHaveLength(12);
    for (const id of naming) {
      const { status, events } = await bytesAfter(mine, urlOf('one'), id);
      const said = events.map(({ data = '' }) => JSON.parse(data));
      const error = expect.objectContaining({ data: { reason: 'history_lost' } });
      expect([status, said]).toEqual([200, [{ jsonrpc: '2.0', id: readRequestIds(placeOf(id))[0], error }]]);
    }
    for (const id of ids.map(withoutRequests)) {
      const { status, events, text } = await bytesAfter(mine, urlOf('one'), id);
      expect([400, 404]).toContain(status);
      expect(events).toEqual([]);
      expect(JSON.parse(text)).toEqual({
        jsonrpc: '2.0',
        id: null,
        error: {
          code: status === 400 ? -32000 : -32001,
          message: expect.any(String),
          data: { reason: status === 400 ? 'bad_event_id' : 'unknown_event_id' },
        },
      });
    }
  });

  test('[R7.20] [S07] one’s own id is useless at another server, and without one’s session', async () => {
    const [id = ''] = await speak(mine, 'mine-useless', true);
    expect((await bytesAfter(mine, urlOf('two'), withoutRequests(id))).status).toBe(404);
    expect(textsOf((await bytesAfter(mine, urlOf('two'), id)).events)).toEqual([
      expect.stringContaining('"reason":"session_ended"'),
    ]);
    const without = await listen(urlOf('one'), { headers: {}, after: id }).ended;
    expect(without.status).toBe(400);
  });

  test('[R7.17] [S07] [S08] [B16] guessed near the real ones never brings a message of anybody else', async () => {
    const spoken = [
      ...(await speak(mine, 'mine-answered', true)),
      ...(await speak(mine, 'mine-open', false)),
      ...(await speak(other, 'other-again', false)),
    ];
    const ids = spoken.map(withoutRequests);
    const places = ids.map((id) => id.split(/[.-]/).map(Number) as [number, number, number]);
    const near = fc
      .tuple(
        fc.constantFrom(...places),
        fc.integer({ min: -2, max: 4 }),
        fc.integer({ min: -2, max: 2 }),
        fc.integer({ min: -9, max: 9 }),
      )
      .map(([[stream, epoch, seq], a, b, c]) => `${stream + a}.${epoch + b}-${seq + c}`);
    const far = fc.tuple(fc.maxSafeNat(), fc.maxSafeNat(), fc.maxSafeNat()).map(([a, b, c]) => `${a}.${b}-${c}`);
    const odd = fc
      .constantFrom(...ids)
      .chain((id) =>
        fc.constantFrom(
          `${id} `,
          ` ${id}`,
          `${id}0`,
          `+${id}`,
          id.replace('.', ':'),
          `${id},${id}`,
          id.toUpperCase(),
          `0${id}`,
        ),
      );
    const statuses = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 6, arbitrary: near }, far, odd), async (id) => {
        const { status, events, text } = await bytesAfter(mine, urlOf('one'), id);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        expect([200, 204, 400, 404]).toContain(status);
        const said = textsOf(events).join('') + text;
        for (const name of ['other', 'elsewhere']) expect(said).not.toContain(name);
        if (status >= 400) expect(events).toEqual([]);
        for (const event of events) expect(event.id?.split('.')[0] ?? id.split('.')[0]).toBe(id.trim().split('.')[0]);
      }),
      { numRuns: 300 },
    );
    expect([...statuses.keys()].sort()).toEqual(expect.arrayContaining([200, 400, 404]));
  });
});
