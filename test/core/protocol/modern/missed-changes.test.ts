import { describe, expect, it } from 'vitest';
import { missedChanges } from '../../../../src/core/protocol/modern/missed-changes.ts';
import { readFilter } from '../../../../src/core/protocol/modern/subscription-filter.ts';
import { read } from './read.ts';

const key = 'io.modelcontextprotocol/subscriptionId';
const changesOf = (notifications: unknown, id = '7') =>
  missedChanges(
    readFilter(read({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { notifications } })),
    id,
  ).map(({ text }) => JSON.parse(text.toString()));

describe('what a subscription may have missed', () => {
  it('[R5.09] is all that it was agreed to be told', () => {
    const filter = {
      toolsListChanged: true,
      promptsListChanged: false,
      resourcesListChanged: true,
      resourceSubscriptions: ['file:///a"b', 7],
      ofAnotherKind: true,
    };
    const params = { _meta: { [key]: '7' } };
    expect(changesOf(filter, '"7"')).toEqual([
      { jsonrpc: '2.0', method: 'notifications/tools/list_changed', params },
      { jsonrpc: '2.0', method: 'notifications/resources/list_changed', params },
      { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { ...params, uri: 'file:///a"b' } },
    ]);
  });

  it.each([undefined, null, 'all', [], {}, { resourceSubscriptions: 'x' }])('is nothing by %j', (filter) => {
    expect(changesOf(filter)).toEqual([]);
  });
});
