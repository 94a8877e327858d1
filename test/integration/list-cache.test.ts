import { expect, test } from 'vitest';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { open } from '../support/http-client.ts';
import { callModern, modernBody, modernHeaders, openModern, postModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';

const names = (tools: { name: string }[]): string[] => tools.map(({ name }) => name);

test('a kept list of a legacy server needs no process, and is read anew after list_changed', async () => {
  const lists = ['--share', 'all', '--defaults.lists.ttl', '10m', '--session-idle', '500ms'];
  const gateway = await startGateway({ command: everythingFixture, args: ['--era', 'legacy', ...lists] });
  const { url } = gateway;
  const read = async () => (await postModern(url, 'tools/list')).json.result;
  const first = await read();
  expect(first).toMatchObject({ ttlMs: 600_000, cacheScope: 'private' });
  await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'the end of the idle process' });
  const kept = await read();
  expect(kept.tools).toEqual(first.tools);
  expect(kept.ttlMs).toBeLessThan(600_000);
  expect(await gateway.descendants()).toEqual([]);
  // A client that is told of a change gets the changed list.
  const filter = { notifications: { toolsListChanged: true } };
  const stream = await openModern(url, 'subscriptions/listen', filter);
  await stream.nextMessage();
  await callModern(url, 'change_list', { what: 'tools' });
  await stream.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
  expect(names((await read()).tools)).toContain('added_1');
  stream.drop();
});

test('without a time, the lists of a legacy server are not kept', async () => {
  const { url } = await startGateway({ command: everythingFixture, args: ['--era', 'legacy'] });
  const body = modernBody('tools/list');
  const exchange = await open(url, { headers: modernHeaders('tools/list'), body });
  expect((await exchange.answer()).json.result.ttlMs).toBe(0);
});
