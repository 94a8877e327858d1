import { describe, expect, it } from 'vitest';
import {
  acknowledgementOf,
  agreedFilter,
  exceedsFilterLimits,
  isChange,
  isFilterAmbiguous,
  matchesFilter,
  readFilter,
  toSubscriptionNotification,
} from '../../../../src/core/protocol/modern/subscription-filter.ts';
import { read } from './read.ts';

const key = 'io.modelcontextprotocol/subscriptionId';
const listening = (notifications: unknown) =>
  readFilter(read({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: { notifications } }));
const change = (method: string, params?: object) => read({ jsonrpc: '2.0', method: `notifications/${method}`, params });

describe('the filter of a subscription', () => {
  it.each([
    [{ toolsListChanged: true, promptsListChanged: false, x: true }, { toolsListChanged: true }],
    [{ resourceSubscriptions: ['a', 7, 'a', '__proto__'] }, { resourceSubscriptions: ['a', '__proto__'] }],
    [{ resourceSubscriptions: [] }, {}],
    [{ resourceSubscriptions: 'a' }, {}],
    [undefined, {}],
    [7, {}],
    [null, {}],
  ])('%j asks for %j', (asked, filter) => {
    expect(listening(asked)).toEqual(filter);
  });

  it('[S-06] names 500 resources and 256 KiB of URIs at most', () => {
    const uris = (count: number, uri = 'a:b') => Array.from({ length: count }, (_, index) => `${uri}${index}`);
    const asking = (resourceSubscriptions: unknown) =>
      read({
        jsonrpc: '2.0',
        id: 1,
        method: 'subscriptions/listen',
        params: { notifications: { resourceSubscriptions } },
      });
    expect([500, 501].map((count) => exceedsFilterLimits(asking(uris(count))))).toEqual([false, true]);
    expect(exceedsFilterLimits(asking(uris(300, 'x'.repeat(1_000))))).toBe(true);
    expect([2_048, 2_049].map((length) => exceedsFilterLimits(asking(['x'.repeat(length)])))).toEqual([false, true]);
    expect([undefined, 7, {}, 'x'.repeat(300_000)].map((list) => exceedsFilterLimits(asking(list)))).not.toContain(
      true,
    );
    expect(listening({ toolsListChanged: true, resourceSubscriptions: uris(501) })).toEqual({ toolsListChanged: true });
  });

  it.each([
    ['{"taskIds":["mine"],"TaskIds":["yours"]}', true],
    ['{"TASKIDS":["yours"]}', true],
    ['{"resourceSubscriptions":[],"resourceSubscription\u017f":[]}', true],
    ['{"taskIds":[],"taskIds":[]}', true],
    ['{"taskIds":[],"resourceSubscriptions":[],"Vendor":1,"vendor":2}', false],
    ['7', false],
  ])('[S-03] %s has lists that readers could take differently: %s', (filter, isSo) => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":${filter}}}`;
    expect(isFilterAmbiguous(read(text))).toBe(isSo);
  });

  const all = listening({
    ...{ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
    resourceSubscriptions: ['a:b'],
  });

  it.each([
    [{}, {}],
    [{ tools: { listChanged: true }, prompts: { listChanged: false }, resources: {} }, { toolsListChanged: true }],
    [{ tools: true, resources: { subscribe: true } }, { resourceSubscriptions: ['a:b'] }],
    [{ tools: null, resources: { listChanged: true, subscribe: 'yes' } }, { resourcesListChanged: true }],
  ])('[R5.04] at a server with %j is agreed as %j', (capabilities, agreed) => {
    expect(agreedFilter(all, JSON.stringify(capabilities))).toEqual(agreed);
    expect(agreedFilter({}, JSON.stringify(capabilities))).toEqual({});
  });

  it('[R5.03] lets through what it asks for and nothing else, URIs as they are', () => {
    const filter = listening({ promptsListChanged: true, resourceSubscriptions: ['a:b'] });
    const passing = [change('prompts/list_changed'), change('resources/updated', { uri: 'a:b' })];
    const others = [
      change('tools/list_changed'),
      change('resources/list_changed'),
      change('resources/updated', { uri: 'A:b' }),
      change('resources/updated', { uri: ['a:b'] }),
      change('resources/updated'),
      change('message', { level: 'info', data: 1 }),
      change('progress', { progressToken: 1, progress: 1 }),
    ];
    expect(passing.map((message) => matchesFilter(message, filter))).toEqual([true, true]);
    expect(others.map((message) => matchesFilter(message, filter))).not.toContain(true);
    expect([...passing, ...others].map(isChange)).toEqual([true, true, true, true, true, true, true, false, false]);
  });

  it.each(['1', '1.0', '"1"', '"ü"'])(
    '[R5.01] [R5.02] is acknowledged under the id %s, and so is each change',
    (id) => {
      expect(acknowledgementOf({ toolsListChanged: true }, id).text.toString()).toBe(
        `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"${key}":${id}},"notifications":{"toolsListChanged":true}}}`,
      );
      const updated = read(
        '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","big":1.0}}',
      );
      expect(toSubscriptionNotification(updated, id).text.toString()).toContain(
        `"params":{"_meta":{"${key}":${id}},"uri":"a:b","big":1.0}`,
      );
      expect(toSubscriptionNotification(change('tools/list_changed'), id).text.toString()).toContain(
        `"_meta":{"${key}":${id}}`,
      );
    },
  );
});
