import { expect, test } from 'vitest';
import { rssMiB } from '../fault/memory.ts';
import { openAnswered } from '../support/answered-session.ts';
import { startGateway } from '../support/gateway.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

/** A server that takes every subscription, and keeps nothing. */
const program = `
const serverInfo = { name: 's', version: '1' };
const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { resources: { subscribe: true } }, serverInfo },
  'resources/list': { resources: [] },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'test://{id}', name: 't' }] },
};
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
});
`;
const server = serverEntry([process.execPath, '-e', program]);

/** What a request of the largest size is filled with. */
const padding = 'x'.repeat(3_900 * 1_024);
const requests = 60;

test.each(['a', 'view'])(
  '[S-21] the memory returns after %s got 60 subscriptions of 3.8 MiB each',
  async (endpoint) => {
    const { args } = await writeViewFile({ a: server, b: server }, { view: ['a', 'b'] });
    const gateway = await startGateway({ args });
    const session = await openAnswered(`${gateway.baseUrl}/${endpoint}/mcp`);
    const subscribe = async (name: string): Promise<void> => {
      const { messages } = await session.request('resources/subscribe', { uri: `test://${name}`, _meta: { padding } });
      expect(messages.at(-1)).toMatchObject({ result: {} });
    };
    await subscribe('warm');
    const before = rssMiB(gateway.pid);
    for (let index = 0; index < requests; index += 1) await subscribe(`${index}`);
    // Kept in one table, they would be 228 MiB.
    expect(rssMiB(gateway.pid) - before).toBeLessThan(150);
  },
);
