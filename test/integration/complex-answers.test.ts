import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';
import { initialize, type Message, post } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { openModern } from '../support/modern-client.ts';

/** More values than are read of a text as long as this one. */
const values = 5_000_000;

const serverOf = (era: string): string[] => [
  process.execPath,
  `${root}test/fixtures/children/complex-server.mjs`,
  era,
  `${values}`,
];
const tools = ['deep', 'deep last', 'wide', 'wide last'];
const refused: Message = { error: { code: expect.any(Number), data: { reason: 'response_too_complex' } } };
const withJson = { Accept: 'application/json, text/event-stream' };

it.each(['legacy', 'modern'])(
  '[P3] [S-05] of a server of the %s era a call whose answer is too complex has its end at once, for every client',
  async (era) => {
    const gateway = await startLocalGateway({ command: serverOf(era) });
    const legacy = await initialize(gateway.url);
    for (const name of tools) {
      const body = { jsonrpc: '2.0', id: name, method: 'tools/call', params: { name } };
      const answer = await post(gateway.url, body, { ...withJson, 'Mcp-Session-Id': legacy.id });
      expect([name, answer.messages.at(-1) ?? answer.json]).toMatchObject([name, { id: name, ...refused }]);
      const modern = await (await openModern(gateway.url, 'tools/call', { name }, { id: name })).answer();
      expect([name, modern.messages.at(-1) ?? modern.json]).toMatchObject([name, { id: name, ...refused }]);
    }
    const fine = await legacy.request('tools/call', { name: 'fine' });
    expect(fine.messages.at(-1) ?? fine.json).toMatchObject({ result: { content: [] } });
  },
);

it('[P3] [S-05] without a stream it is 502', async () => {
  const gateway = await startLocalGateway({ command: serverOf('legacy') });
  const legacy = await initialize(gateway.url);
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'deep last' } };
  const answer = await post(gateway.url, body, { 'Mcp-Session-Id': legacy.id });
  expect([answer.status, answer.json]).toMatchObject([502, { id: 1, ...refused }]);
});
