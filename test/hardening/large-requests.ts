import { expect, test } from 'vitest';
import { rssMiB } from '../fault/memory.ts';
import { openAnswered } from '../support/answered-session.ts';
import { startGateway } from '../support/gateway.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

/** A server that takes every subscription, and keeps nothing. It answers no call until it gets a notification. */
const program = `
const serverInfo = { name: 's', version: '1' };
const capabilities = { resources: { subscribe: true }, tools: {} };
const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo },
  'tools/list': { tools: [{ name: 'wait', inputSchema: { type: 'object' } }] },
  'resources/list': { resources: [] },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'test://{id}', name: 't' }] },
};
const waiting = [];
const answer = (id, method) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const isHeld = method === 'tools/call' || (method === 'resources/read' && params.uri !== 'test://ping');
  if (isHeld) waiting.push(id);
  else if (method === 'notifications/roots/list_changed') for (const each of waiting.splice(0)) answer(each);
  else if (id !== undefined) answer(id, method);
});
`;
const server = serverEntry([process.execPath, '-e', program]);
const filtered = serverEntry([process.execPath, '-e', program], {
  denyTools: ['x'],
  tools: { wait: { arguments: { fixed: 1 } } },
});

/** What a request of the largest size is filled with. */
const padding = 'x'.repeat(3_900 * 1_024);
const requests = 60;
/** On a busy machine, 228 MiB take long. */
const patienceMs = 240_000;
/** Kept in one table, the requests would be 228 MiB. */
const maxGrowthMiB = 150;

async function start(endpoint: string) {
  const servers = { a: server, b: server, filtered };
  const { args } = await writeViewFile(servers, { view: { servers: ['a', 'b'], unprefixed: 'a' } });
  // All requests together have 128 MiB by default.
  // Processes are shared as by default, so what a process keeps for its sessions counts, too.
  const env = { GANGWAY_SHARE: undefined };
  const gateway = await startGateway({ args: [...args, '--limits.total.inFlight', '1GiB'], env });
  const session = await openAnswered(`${gateway.baseUrl}/${endpoint}/mcp`);
  return { gateway, session };
}

/** The memory returns after 60 subscriptions of the largest size at each of these endpoints. */
export const testSubscriptions = (...endpoints: readonly string[]): void =>
  test.each(endpoints)(
    '[G-10] [S-21] the memory returns after %s got 60 subscriptions of 3.8 MiB each',
    async (endpoint) => {
      const { gateway, session } = await start(endpoint);
      const subscribe = async (name: string): Promise<void> => {
        const { messages } = await session.request('resources/subscribe', {
          uri: `test://${name}`,
          _meta: { padding },
        });
        expect(messages.at(-1)).toMatchObject({ result: {} });
      };
      await subscribe('warm');
      const before = rssMiB(gateway.pid);
      for (let index = 0; index < requests; index += 1) await subscribe(`${index}`);
      expect(rssMiB(gateway.pid) - before).toBeLessThan(maxGrowthMiB);
    },
    patienceMs,
  );

/** Unanswered requests of the largest size are not kept. */
export const testRequests = (
  ...requested: readonly (readonly [endpoint: string, method: string, params: object])[]
): void =>
  test.each(requested)(
    '[G-10] [S-21] [P8] while %s has 60 unanswered requests %s of 3.8 MiB, none of them is kept',
    async (endpoint, method, params) => {
      const { gateway, session } = await start(endpoint);
      await session.request('tools/list');
      // The answer to this request shows that the server has read the one before: no queue to it is filled.
      const ping = () => session.request('resources/read', { uri: 'test://ping' });
      await ping();
      const before = rssMiB(gateway.pid);
      const answers = [];
      for (let index = 0; index < requests; index += 1) {
        answers.push(session.request(method, { ...params, _meta: { padding } }));
        await ping();
      }
      expect(rssMiB(gateway.pid) - before).toBeLessThan(maxGrowthMiB);
      await session.notify('notifications/roots/list_changed');
      for (const { messages } of await Promise.all(answers)) expect(messages.at(-1)).toMatchObject({ result: {} });
    },
    patienceMs,
  );
