import { describe, expect, it } from 'vitest';
import type { Message } from '../../../../../src/core/protocol/message/message.ts';
import { ClientState } from '../../../../../src/core/session/record/client-state.ts';
import type { GroupRequestOptions } from '../../../../../src/core/session/session-handle.ts';
import { SubscriptionLeases } from '../../../../../src/features/eras/modern-on-legacy/session/subscription-leases.ts';
import { readMessage } from '../../../../support/fake-backend.ts';
import { createFakeReply } from '../../../../support/fake-reply.ts';

const initialize = Buffer.from('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}');
const ok = { isError: false };

function create(client = new ClientState(initialize, undefined, { isGroup: true })) {
  let nowMs = 0;
  const told: string[] = [];
  const call = ({ method, text }: Message) => void told.push(`${method} ${JSON.parse(text.toString()).params.uri}`);
  const holds = new SubscriptionLeases(client, { call }, () => nowMs);
  const settle = (request: Message, group: GroupRequestOptions): boolean | string => {
    const reply = createFakeReply();
    const isSettled = holds.settles(request, group, reply);
    if (!isSettled) client.noteAnswered(String(request.method), request.text, ok);
    else if (reply.given?.kind === 'fault') return reply.given.reason;
    else expect(reply.given).toMatchObject({ kind: 'json', json: { id: 'x', result: {} } });
    return !isSettled;
  };
  /** What a holder subscribes to: true if the server is asked, which agrees. */
  const subscribe = (uri: string, holder: string) => settle(requestOf('resources/subscribe', { uri }), { holder });
  const ping = (holder: string, leases?: 'begin' | 'end') =>
    settle(requestOf('ping', {}), { holder, ...(leases && { leases }) });
  /** What the server was told since the last time, after some time. */
  const toldAfter = (ms = 0): string[] => {
    nowMs += ms;
    holds.endExpired();
    return told.splice(0);
  };
  return { holds, client, subscribe, ping, toldAfter };
}

const requestOf = (method: string, params: object): Message =>
  readMessage(JSON.stringify({ jsonrpc: '2.0', id: 'x', method, params }));

describe('the subscription leases of a group session', () => {
  it('[R5.06] subscribe each resource for its first listener and unsubscribe it after the last', () => {
    const { subscribe, ping, toldAfter } = create();
    expect(subscribe('a', 'one')).toBe(true);
    expect(subscribe('a', 'two')).toBe(false);
    expect(subscribe('b', 'two')).toBe(true);
    expect([ping('one', 'end'), toldAfter()]).toEqual([false, []]);
    expect([ping('one', 'end'), toldAfter()]).toEqual([false, []]);
    expect([ping('two', 'end'), toldAfter()]).toEqual([false, ['resources/unsubscribe a', 'resources/unsubscribe b']]);
    expect(subscribe('a', 'one')).toBe(true);
  });

  it('let every listener subscribe until the server has agreed', () => {
    const { holds, subscribe, client } = create();
    const request = requestOf('resources/subscribe', { uri: 'a' });
    expect(holds.settles(request, { holder: 'one' }, createFakeReply())).toBe(false);
    expect(subscribe('a', 'two')).toBe(true);
    expect(client.subscribed.size).toBe(1);
    expect(subscribe('a', 'three')).toBe(false);
  });

  it('[R5.06] expire when their listeners are lost, and not while one renews', () => {
    const { subscribe, ping, toldAfter } = create();
    for (const uri of ['a', 'b']) for (const holder of ['one', 'two']) subscribe(uri, holder);
    subscribe('c', 'two');
    expect([toldAfter(60_000), ping('one')]).toEqual([[], false]);
    expect(toldAfter(30_000)).toEqual(['resources/unsubscribe c']);
    expect([ping('two'), toldAfter(0)]).toEqual(['unknown_session', []]);
    expect(toldAfter(60_000)).toEqual(['resources/unsubscribe a', 'resources/unsubscribe b']);
    expect(subscribe('a', 'one')).toBe(true);
  });

  it('[P3] of an earlier owner last until their listeners can have subscribed here', () => {
    const client = new ClientState(initialize, undefined, { isGroup: true });
    for (const uri of ['a', 'b']) {
      client.noteAnswered('resources/subscribe', Buffer.from(JSON.stringify({ method: 'x', params: { uri } })), ok);
    }
    const { subscribe, ping, toldAfter } = create(new ClientState(initialize, client.save()));
    expect(toldAfter(30_000)).toEqual([]);
    expect([ping('one'), subscribe('a', 'one')]).toEqual(['unknown_session', false]);
    expect(toldAfter(60_000)).toEqual(['resources/unsubscribe b']);
  });

  it('[R5.09] of listeners without resources show whether the session is still theirs', () => {
    const { ping, toldAfter } = create();
    expect(ping('one')).toBe('unknown_session');
    expect(ping('one', 'begin')).toBe(false);
    toldAfter(60_000);
    expect([ping('one'), ping('two')]).toEqual([false, 'unknown_session']);
    toldAfter(60_000);
    expect(ping('one')).toBe(false);
    toldAfter(100_000);
    expect(ping('one')).toBe('unknown_session');
  });

  it('[P8] are limited to the number of subscriptions of a session', () => {
    const { subscribe } = create();
    for (let n = 0; n < 500; n++) expect(subscribe(String(n), 'one')).toBe(true);
    expect(subscribe('more', 'one')).toBe('too_many_subscriptions');
    expect(subscribe('7', 'two')).toBe(false);
  });

  it('let all other requests pass to the server', () => {
    const { holds } = create();
    const request = requestOf('resources/subscribe', { uri: 'a' });
    expect(holds.settles(request, {}, createFakeReply())).toBe(false);
    expect(holds.settles(undefined, { holder: 'one' }, createFakeReply())).toBe(false);
  });
});
