// Servers whose idle streams a proxy cuts, every few seconds: each kind of client goes on in its session for ever.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callingClients } from './calling-clients.ts';
import {
  answering,
  type PlainServer,
  type StartPlain,
  startSse,
  startStreamable,
  startTcp,
  startWebSocket,
} from './plain-servers.ts';

/** More than the losses within a minute that are a crash loop of a server that the gateway starts. */
const cuts = 12;

describe.each<[string, 'ended' | 'reset', StartPlain]>([
  ['HTTP+SSE', 'ended', startSse],
  ['HTTP+SSE', 'reset', startSse],
  ['Streamable HTTP with sessions', 'ended', startStreamable('one')],
  ['Streamable HTTP with sessions', 'reset', startStreamable('one')],
  ['Streamable HTTP without sessions', 'reset', startStreamable()],
  ['WebSocket', 'ended', startWebSocket],
  ['WebSocket', 'reset', startWebSocket],
  ['TCP', 'reset', startTcp],
])('a server over %s whose streams are %s', (_name, how, start) => {
  let server: PlainServer;
  let gateway: LocalGateway;
  beforeAll(async () => {
    server = await start(answering);
    gateway = await startLocalGateway({ args: [server.url, '--share', 'auto'], isStoppedWithTest: false });
  });
  afterAll(async () => {
    await gateway?.stop();
    server?.stop();
  });

  test.each(callingClients)(
    '[F28] [P3] serves a client over %s in the same session, however often that happens between its calls',
    async (_client, connect) => {
      const client = await connect(gateway.url);
      let streams = 0;
      for (let round = 0; round <= cuts; round += 1) {
        expect(await client.call(`${round}`)).toMatchObject({ result: { content: [{ text: `${round}` }] } });
        streams += server.cut(how);
      }
      // A GET stream that ends at once is asked for again at most once a second, so not each round has one.
      expect(streams).toBeGreaterThan(0);
      await client.stop();
    },
  );
});
