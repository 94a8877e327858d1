import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { type Exchange, initialize, type Message } from '../support/http-client.ts';
import { openModern } from '../support/modern-client.ts';
import { withDeadline } from '../support/wait-for.ts';
import { legacyTranscript, modernTranscript } from './honest-client.ts';
import { attacks, harmless, lethal, ofOthers } from './two-faced.ts';
import { startTwoFaced } from './two-faced-http.ts';

const program = { command: process.execPath, args: [`${root}test/fixtures/two-faced/server.mjs`] };
const modernProgram = { ...program, args: [...program.args, '--modern'], era: 'modern' };
const folder = mkdtempSync(join(tmpdir(), 'gangway-two-faced-'));
const remote = { http: '', sse: '', modern: '' };
const started: { stop(): unknown }[] = [];
let gateway: Gateway;

beforeAll(async () => {
  for (const kind of ['http', 'sse', 'modern'] as const) {
    const server = await startTwoFaced(kind);
    started.push(server);
    remote[kind] = server.url;
  }
  const mcpServers = {
    ...{
      legacy: program,
      another: program,
      modern: modernProgram,
      'another-modern': modernProgram,
      third: modernProgram,
    },
    ...{ http: { url: remote.http, transport: 'http' }, sse: { url: remote.sse, transport: 'sse' } },
    'modern-http': { url: remote.modern, era: 'modern' },
  };
  const file = join(folder, 'servers.json');
  writeFileSync(file, JSON.stringify({ mcpServers }));
  gateway = await startGateway({ args: ['--timeouts.grace', '200ms', '--config', file], isStoppedWithTest: false });
});
afterAll(async () => {
  const exit = await gateway?.stop();
  for (const { stop } of started) stop();
  rmSync(folder, { recursive: true, force: true });
  expect(exit?.code).toBe(0);
});

const eventId = /^\d{1,10}\.\d{13}-\d{1,10}(~[\w%.-]+)?$/;

/** Whatever the server wrote: there is one message in each event, and ids and times are those of the gateway. */
function expectOwnEvents({ events }: Exchange): void {
  for (const { id, event, retry, data } of events.items) {
    if (id !== undefined) expect(id).toMatch(eventId);
    expect([undefined, 'message', 'gap']).toContain(event);
    expect([undefined, 2_000]).toContain(retry);
    if (data !== '' && event !== 'gap') {
      expect(JSON.parse(data ?? '')).toHaveProperty('jsonrpc', '2.0');
      expect(JSON.parse(data ?? '')).not.toHaveProperty('stolen');
    }
  }
}

/** Who is silent is left behind after this time. */
const patienceMs = 300;

/** What a client gets that makes its server attack; undefined if that was silent. */
async function settle(sent: Promise<Exchange>, kind: string): Promise<readonly Message[] | undefined> {
  const settled = sent.then(async (exchange) => {
    const answer = await exchange.answer().catch(() => undefined);
    expectOwnEvents(exchange);
    return answer?.messages;
  });
  if (kind !== 'silence') return settled;
  settled.catch(() => undefined); // it is over when the gateway ends
  return withDeadline(settled, { deadlineMs: patienceMs }).catch(() => undefined);
}

/** A client of the server's that makes it attack. */
async function attackOnce(url: string, kind: string, isOfModern: boolean): Promise<void> {
  const params = { name: 'attack', arguments: { kind } };
  const _meta = { progressToken: 1 };
  const isLethal = Object.hasOwn(lethal, kind);
  const expectAnswer = (messages: readonly Message[] | undefined): void => {
    if (!isLethal) expect(messages).toContainEqual(expect.objectContaining({ id: 1 }));
  };
  if (isOfModern) {
    expectAnswer(await settle(openModern(url, 'tools/call', params, { meta: _meta }), kind));
    return;
  }
  const session = await initialize(url);
  const get = await session.getStream();
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta } };
  expectAnswer(await settle(session.send(call), kind));
  get.drop();
  expectOwnEvents(get);
  await session.delete();
}

const all = Object.keys(attacks);
const harmlessKinds = Object.keys(harmless);
const farKinds = Object.keys({ ...ofOthers, ...lethal });

describe.each([
  ['a STDIO server, in one of its sessions', 'legacy', 'legacy', all],
  ['another STDIO server', 'another', 'legacy', farKinds],
  ['a Streamable HTTP server, in one of its sessions', 'http', 'http', all],
  ['an HTTP+SSE server, in one of its sessions', 'sse', 'sse', all],
  ['a STDIO server that all its clients share, in one call', 'modern', 'modern', harmlessKinds],
  ['another STDIO server that all its clients share', 'another-modern', 'modern', farKinds],
  ['a modern HTTP server, in one call', 'modern-http', 'modern-http', all],
  ['a server of the other era', 'third', 'legacy', Object.keys(ofOthers)],
])('%s', (_, hostile, honest, kinds) => {
  const transcript = honest.startsWith('modern') ? modernTranscript : legacyTranscript;
  let alone: string[];
  beforeAll(async () => {
    alone = await transcript(`${gateway.baseUrl}/${honest}/mcp`);
  });

  it.each(kinds)(
    '[S23] [S06] [P11] attacks with %s: what an honest client sees is the same to the byte',
    async (kind) => {
      let isOver = false;
      let attacked = 0;
      const attacking = (async () => {
        while (!isOver || attacked === 0) {
          await attackOnce(`${gateway.baseUrl}/${hostile}/mcp`, kind, /modern|third/.test(hostile));
          attacked += 1;
        }
      })();
      attacking.catch(() => undefined);
      expect(await transcript(`${gateway.baseUrl}/${honest}/mcp`)).toEqual(alone);
      isOver = true;
      await attacking;
      expect(await transcript(`${gateway.baseUrl}/${honest}/mcp`)).toEqual(alone);
    },
  );
});
