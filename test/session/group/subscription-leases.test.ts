import { describe, expect, it } from 'vitest';
import { SubscriptionLeases } from '../../../src/session/group/subscription-leases.ts';
import { ClientState } from '../../../src/session/record/client-state.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { createFakeReply } from '../../support/fake-reply.ts';

const initialize = Buffer.from('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}');
const ok = { isError: false };

function create(client = new ClientState(initialize, undefined, { isGroup: true })) {
  let nowMs = 0;
  const holds = new SubscriptionLeases(client, () => nowMs);
  /** What a holder asks for: true if the server is asked, which agrees. */
  const ask = (what: string, uri: string, holder: string, renews?: readonly string[]): boolean | string => {
    const method = what === 'ping' ? what : `resources/${what}`;
    const request = readMessage(JSON.stringify({ jsonrpc: '2.0', id: 'x', method, params: { uri } }));
    const reply = createFakeReply();
    const isSettled = holds.settles(request, { holder, ...(renews && { renews }) }, reply);
    if (!isSettled) client.noteAnswered(method, request.text, ok);
    else if (reply.given?.kind === 'fault') return reply.given.reason;
    else expect(reply.given).toMatchObject({ kind: 'json', json: { id: 'x', result: {} } });
    return !isSettled;
  };
  const advance = (ms: number): void => {
    nowMs += ms;
  };
  const expired = () => holds.expired().map(({ text }) => JSON.parse(text.toString()).params.uri);
  return { holds, client, ask, expired, advance };
}

describe('the subscription leases of a group session', () => {
  it('[R5.06] subscribe each resource for its first listener and unsubscribe it after the last', () => {
    const { ask } = create();
    expect(ask('subscribe', 'a', 'one')).toBe(true);
    expect(ask('subscribe', 'a', 'two')).toBe(false);
    expect(ask('subscribe', 'b', 'two')).toBe(true);
    expect(ask('unsubscribe', 'a', 'one')).toBe(false);
    expect(ask('unsubscribe', 'a', 'one')).toBe(false);
    expect(ask('unsubscribe', 'a', 'two')).toBe(true);
    expect(ask('unsubscribe', 'a', 'two')).toBe(false);
    expect(ask('subscribe', 'a', 'one')).toBe(true);
  });

  it('let every listener subscribe until the server has agreed, and again after an unsubscription', () => {
    const { holds, ask, client } = create();
    const request = readMessage('{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a"}}');
    expect(holds.settles(request, { holder: 'one' }, createFakeReply())).toBe(false);
    expect(ask('subscribe', 'a', 'two')).toBe(true);
    expect(client.subscribed.size).toBe(1);
    ask('unsubscribe', 'a', 'one');
    const stop = readMessage('{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"a"}}');
    expect(holds.settles(stop, { holder: 'two' }, createFakeReply())).toBe(false);
    expect(ask('subscribe', 'a', 'one')).toBe(true); // before the answer to that has come
  });

  it('[R5.06] expire when their listeners are lost, and not while one renews', () => {
    const { ask, expired, advance } = create();
    for (const uri of ['a', 'b']) for (const holder of ['one', 'two']) ask('subscribe', uri, holder);
    advance(60_000);
    expect(ask('ping', '', 'one', ['a'])).toBe(false);
    expect(ask('ping', '', 'one', ['a', 'unknown'])).toBe('unknown_session');
    advance(30_000);
    expect(expired()).toEqual(['b']);
    expect(expired()).toEqual([]);
    advance(60_000);
    expect(expired()).toEqual(['a']);
    expect(ask('subscribe', 'a', 'one')).toBe(true);
  });

  it('[P3] of an earlier owner last until their listeners can have renewed them', () => {
    const client = new ClientState(initialize, undefined, { isGroup: true });
    for (const uri of ['a', 'b']) {
      client.noteAnswered('resources/subscribe', Buffer.from(JSON.stringify({ method: 'x', params: { uri } })), ok);
    }
    const { ask, expired, advance } = create(new ClientState(initialize, client.save()));
    advance(30_000);
    expect(ask('ping', '', 'one', ['a'])).toBe(false);
    advance(60_000);
    expect(expired()).toEqual(['b']);
  });

  it('[R5.09] of listeners without resources show whether the session is still theirs', () => {
    const { holds, expired, advance } = create();
    const ping = readMessage('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    const outcome = (options: object) => {
      const reply = createFakeReply();
      expect(holds.settles(ping, { holder: 'one', ...options }, reply)).toBe(true);
      return reply.given?.kind === 'fault' ? reply.given.reason : reply.given?.kind;
    };
    expect(outcome({ renews: [] })).toBe('unknown_session');
    expect(outcome({ joins: true })).toBe('json');
    advance(60_000);
    expect([outcome({ renews: [] }), outcome({ holder: 'two' })]).toEqual(['json', 'unknown_session']);
    advance(60_000);
    expect([expired(), outcome({ renews: [] })]).toEqual([[], 'json']);
    advance(100_000);
    expect([expired(), outcome({ renews: [] })]).toEqual([[], 'unknown_session']);
  });

  it('[P8] are limited to the number of subscriptions of a session', () => {
    const { ask } = create();
    for (let n = 0; n < 500; n++) expect(ask('subscribe', String(n), 'one')).toBe(true);
    expect(ask('subscribe', 'more', 'one')).toBe('too_many_subscriptions');
    expect(ask('subscribe', '7', 'two')).toBe(false);
  });

  it('let all other requests pass to the server', () => {
    const { holds } = create();
    const request = readMessage('{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a"}}');
    expect(holds.settles(request, {}, createFakeReply())).toBe(false);
    expect(holds.settles(undefined, { holder: 'one' }, createFakeReply())).toBe(false);
  });
});
