import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CallAnswer } from '../../../../../src/core/call/call-answer.ts';
import type { Message } from '../../../../../src/core/protocol/message/message.ts';
import type { SubscriptionFilter } from '../../../../../src/core/protocol/modern/subscription-filter.ts';
import { ChangeFeed, type SubscribeOutcome } from '../../../../../src/features/eras/modern/changes/change-feed.ts';
import { asMessage } from '../../../../support/as-message.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const messageOf = (value: object): Message => asMessage({ jsonrpc: '2.0', ...value });
const subscription = { _meta: { 'io.modelcontextprotocol/subscriptionId': 0 } };
const updated = (uri: string) => ({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });

function createFeed(isUnordered = false) {
  const opened: { filter: SubscriptionFilter; answer: CallAnswer; isCancelled: boolean }[] = [];
  const changes: unknown[] = [];
  const feed = new ChangeFeed({
    listen(filter, answer) {
      const listen = { filter, answer, isCancelled: false };
      opened.push(listen);
      return () => {
        listen.isCancelled = true;
      };
    },
    onChange: ({ text }) => changes.push(JSON.parse(text.toString())) > 0,
    isUnordered,
  });
  const notify = (index: number, method: string, params: object) =>
    opened[index]?.answer.message(messageOf({ method, params: { ...params, ...subscription } }));
  return {
    ...{ feed, opened, changes },
    unsubscribe(uri: string) {
      feed.unsubscribe(uri);
      feed.flush();
    },
    openLists(lists: SubscriptionFilter) {
      feed.openLists(lists);
      feed.flush();
    },
    filters: () => opened.map(({ filter }) => filter.resourceSubscriptions),
    cancelled: () => opened.map(({ isCancelled }) => isCancelled),
    acknowledge: (index: number, notifications: object = opened[index]?.filter ?? {}) =>
      notify(index, 'notifications/subscriptions/acknowledged', { notifications }),
    update: (index: number, uri: string) => notify(index, 'notifications/resources/updated', { uri }),
    end: (index: number, outcome: object = { result: {} }) =>
      opened[index]?.answer.response(messageOf({ id: 0, ...outcome }), 200),
    subscribe(uri: string): SubscribeOutcome[] {
      const outcomes: SubscribeOutcome[] = [];
      feed.subscribe(uri, (outcome) => outcomes.push(outcome));
      feed.flush();
      return outcomes;
    },
  };
}

describe('the subscription of a legacy client at a modern server', () => {
  it('can grow and shrink without a gap and without a repeated change', () => {
    const { unsubscribe, subscribe, acknowledge, update, cancelled, filters, changes } = createFeed();
    const first = subscribe('a');
    acknowledge(0);
    const second = subscribe('b');
    expect([first, second]).toEqual([['subscribed'], []]);
    update(0, 'a');
    expect(cancelled()).toEqual([false, false]);
    acknowledge(1);
    expect(second).toEqual(['subscribed']);
    expect(cancelled()).toEqual([true, false]);
    update(0, 'a'); // the server had not heard of the end; it told the other one, too
    update(1, 'a');
    expect(changes).toEqual([updated('a'), updated('a')]);
    unsubscribe('a');
    acknowledge(2);
    unsubscribe('b');
    expect(filters()).toEqual([['a'], ['a', 'b'], ['b']]);
    expect(cancelled()).toEqual([true, true, true]);
  });

  it('is read for a while after its replacement where changes can arrive out of order', () => {
    const { subscribe, acknowledge, update, cancelled, changes, feed } = createFeed(true);
    subscribe('a');
    acknowledge(0);
    subscribe('b');
    acknowledge(1);
    update(0, 'a');
    expect(changes).toEqual([updated('a')]);
    expect(cancelled()).toEqual([false, false]);
    vi.advanceTimersByTime(1_000);
    expect(cancelled()).toEqual([true, false]);
    update(0, 'a');
    expect(changes).toHaveLength(1);
    subscribe('c');
    acknowledge(2);
    feed.close();
    expect(cancelled()).toEqual([true, true, true]);
  });

  it('reports a change at most twice, however many subscriptions report it, and loses none', () => {
    const { subscribe, acknowledge, update, changes, feed } = createFeed(true);
    const uris = ['a', 'b', 'c', 'd', 'e'];
    uris.forEach((uri, index) => {
      subscribe(uri);
      acknowledge(index);
    });
    for (const index of [0, 1, 2, 3, 4]) update(index, 'a');
    expect(changes).toEqual([updated('a')]);
    update(0, 'a'); // one subscription does not say a change twice: this is another
    expect(changes).toHaveLength(2);
    update(4, 'a');
    vi.advanceTimersByTime(999);
    expect(changes).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(changes).toHaveLength(3);
    update(0, 'b');
    update(4, 'b');
    feed.unsubscribe('b');
    vi.advanceTimersByTime(1_000);
    expect(changes).toHaveLength(4);
    for (let i = 0; i < 3; i++) update(4, 'a'); // nothing is replaced any more: there is one that tells
    expect(changes).toHaveLength(7);
    feed.close();
  });

  it('[P8] reports repeated changes each time where remembering them would fill the memory', () => {
    const { subscribe, acknowledge, update, changes, feed } = createFeed(true);
    for (const [index, uri] of ['a', 'b'].entries()) {
      subscribe(uri);
      acknowledge(index);
    }
    const uris = Array.from({ length: 501 }, (_, index) => `a/${index}`);
    for (const listen of [0, 1]) for (const uri of [...uris, `a/${'x'.repeat(1_024)}`]) update(listen, uri);
    expect(changes).toHaveLength(501 + 1 + 2);
    feed.close();
    vi.advanceTimersByTime(1_000);
    expect(changes).toHaveLength(501 + 1 + 2);
  });

  it('reports no change of a resource after its unsubscription, whatever the server still sends', () => {
    const { subscribe, unsubscribe, acknowledge, update, changes } = createFeed();
    subscribe('b');
    acknowledge(0);
    subscribe('a');
    acknowledge(1);
    unsubscribe('a');
    update(1, 'a');
    update(1, 'a/part'); // what is not what it asked for is the server's to know
    expect(changes).toEqual([updated('a/part')]);
  });

  it('is sent once for many resources that are requested together', () => {
    const { subscribe, acknowledge, filters, unsubscribe } = createFeed();
    const outcomes = ['a', 'b', 'c', 'b'].map(subscribe);
    unsubscribe('c');
    acknowledge(0);
    expect(filters()).toEqual([['a'], ['a', 'b']]);
    acknowledge(1, { resourceSubscriptions: ['a'] });
    expect(outcomes).toEqual([
      ['subscribed'],
      [{ reason: 'subscription_refused' }],
      [{ reason: 'subscription_refused' }],
      [{ reason: 'subscription_refused' }],
    ]);
    expect(subscribe('a')).toEqual(['subscribed']);
    expect(filters()).toHaveLength(2);
  });

  it('stays unchanged if the server refuses a further resource', () => {
    const { openLists, subscribe, acknowledge, end, update, opened, changes } = createFeed();
    openLists({ toolsListChanged: true });
    acknowledge(0);
    const refused = subscribe('a');
    end(1, { error: { code: -32602, message: 'no' } });
    expect(refused).toMatchObject([{ error: { id: 0 } }]);
    const lost = subscribe('b');
    opened[2]?.answer.fault('server_full');
    expect(lost).toEqual([{ reason: 'server_full' }]);
    update(0, 'still heard');
    expect(changes).toHaveLength(1);
    subscribe('c');
    expect(opened[3]?.filter).toEqual({ toolsListChanged: true, resourceSubscriptions: ['c'] });
  });

  it('is opened without the refused resource if there was none before', () => {
    const { openLists, subscribe, end, opened } = createFeed();
    subscribe('a');
    openLists({ toolsListChanged: true });
    end(0, { error: { code: -32602, message: 'no' } });
    expect(opened[1]?.filter).toEqual({ toolsListChanged: true });
  });

  it('is opened again after the server ended it, and reports everything that may have changed', () => {
    const { openLists, subscribe, acknowledge, end, opened, changes } = createFeed();
    openLists({ toolsListChanged: true });
    subscribe('a');
    acknowledge(0);
    acknowledge(1);
    end(1);
    expect(opened).toHaveLength(2);
    vi.advanceTimersByTime(1_000);
    opened[2]?.answer.fault('server_crash_loop');
    vi.advanceTimersByTime(1_999);
    expect(opened).toHaveLength(3);
    vi.advanceTimersByTime(1);
    acknowledge(3);
    expect(changes).toEqual([{ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: {} }, updated('a')]);
  });

  it('is not retried if the server does not know subscriptions', () => {
    const { openLists, end, opened } = createFeed();
    openLists({ toolsListChanged: true });
    end(0, { error: { code: -32601, message: 'no' } });
    vi.advanceTimersByTime(1_000_000);
    expect(opened).toHaveLength(1);
  });

  it('does nothing after it is closed', () => {
    const { feed, subscribe, acknowledge, end, cancelled, opened } = createFeed();
    subscribe('a');
    acknowledge(0);
    subscribe('b');
    feed.close();
    expect(cancelled()).toEqual([true, true]);
    end(0);
    vi.advanceTimersByTime(1_000_000);
    expect(opened).toHaveLength(2);
  });

  it('[P8] has a limit of resources', () => {
    const { subscribe } = createFeed();
    for (let index = 0; index < 500; index++) expect(subscribe(`${index}`)).toEqual([]);
    expect(subscribe('more')).toEqual([{ reason: 'too_many_subscriptions' }]);
  });
});

it('[P7] a feed is opened again for further lists after a passing failure', () => {
  const { openLists, acknowledge, opened } = createFeed();
  openLists({ toolsListChanged: true });
  acknowledge(0);
  openLists({ toolsListChanged: true, promptsListChanged: true });
  opened[1]?.answer.fault('server_busy');
  vi.advanceTimersByTime(600_000);
  expect(opened.length).toBeGreaterThan(2);
  expect(opened.at(-1)?.filter).toEqual({ toolsListChanged: true, promptsListChanged: true });
});

it('[P7] a feed of resources alone is opened again after several failures', () => {
  const { subscribe, acknowledge, opened } = createFeed();
  subscribe('a');
  acknowledge(0);
  opened[0]?.answer.fault('server_exited');
  vi.advanceTimersByTime(10_000);
  expect(opened).toHaveLength(2);
  opened[1]?.answer.fault('server_unreachable');
  vi.advanceTimersByTime(600_000);
  expect(opened.length).toBeGreaterThan(2);
});
