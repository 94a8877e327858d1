import { describe, expect, it } from 'vitest';
import { ClientState } from '../../../../src/core/session/record/client-state.ts';
import { readMessage } from '../../../support/fake-backend.ts';

const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const ok = { isError: false };
const failed = { isError: true };
const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };

function createFixture() {
  const state = new ClientState(text({ jsonrpc: '2.0', id: 0, method: 'initialize' }));
  return {
    state,
    answered: (method: string, params: unknown, response = ok) =>
      state.noteAnswered(method, text({ jsonrpc: '2.0', id: 7, method, params }), response),
    replayed: () => {
      const { messages, ids: used } = state.replay();
      return { messages: messages.map(({ text }) => JSON.parse(text.toString())), ids: [...used] };
    },
  };
}

describe('the client state of a session', () => {
  it('shares the saved texts of clients that have set nothing, as thousands of idle sessions do', () => {
    const [one, other] = [createFixture().state, createFixture().state].map((state) => {
      state.noteSent(readMessage(initialized));
      return state.save();
    });
    expect(other?.clientState).toBe(one?.clientState);
    expect(other?.clientSaid).toBe(one?.clientSaid);
    expect(one?.clientState.toString()).toBe('{}');
    expect(JSON.parse(`${one?.clientSaid}`)).toEqual({ initialized: JSON.stringify(initialized), subscriptions: [] });
  });

  it('[F12] is replayed: initialized first, then the newest log level, then each subscription', () => {
    const { state, answered, replayed } = createFixture();
    answered('resources/subscribe', { uri: 'a:1' });
    answered('logging/setLevel', { level: 'debug' });
    answered('logging/setLevel', { level: 'error' });
    answered('resources/subscribe', { uri: 'a:2' });
    state.noteSent(readMessage(initialized));
    const { messages, ids } = replayed();
    expect({ messages, ids }).toEqual({
      messages: [
        initialized,
        { jsonrpc: '2.0', id: ids[0], method: 'logging/setLevel', params: { level: 'error' } },
        { jsonrpc: '2.0', id: ids[1], method: 'resources/subscribe', params: { uri: 'a:1' } },
        { jsonrpc: '2.0', id: ids[2], method: 'resources/subscribe', params: { uri: 'a:2' } },
      ],
      ids,
    });
    expect(ids.map((id) => typeof id)).toEqual(['number', 'number', 'number']);
    expect(new Set(ids).size).toBe(3);
  });

  it('is empty until messages are sent or answered, and never has refused ones', () => {
    const { state, answered, replayed } = createFixture();
    answered('logging/setLevel', { level: 'debug' }, failed);
    answered('resources/subscribe', { uri: 'a:1' }, failed);
    answered('tools/call', { name: 'x' });
    state.noteSent(readMessage({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' }));
    expect(replayed()).toEqual({ messages: [], ids: [] });
  });

  it('has one subscription for a URI until a successful unsubscription', () => {
    const { answered, replayed } = createFixture();
    for (const uri of ['a', 'a', 'b', 'c', '__proto__']) answered('resources/subscribe', { uri });
    answered('resources/unsubscribe', { uri: 'b' });
    answered('resources/unsubscribe', { uri: 'c' }, failed);
    answered('resources/unsubscribe', { uri: 'unknown' });
    expect(replayed().messages.map(({ params }) => params.uri)).toEqual(['a', 'c', '__proto__']);
  });

  it('[S-09] keeps only the fact that a large notifications/initialized came', () => {
    const { state, replayed } = createFixture();
    state.noteSent(readMessage({ ...initialized, params: { x: 'x'.repeat(20_000) } }));
    expect(replayed().messages).toEqual([initialized]);
  });

  it('[P1] keeps each text unchanged except for the id', () => {
    const { state } = createFixture();
    const request = Buffer.from(
      '{ "method":"resources/subscribe","params":{"uri":"\\u0061","n":1e400, "id":3},"id" : 12345 ,"jsonrpc":"2.0"}',
    );
    state.noteAnswered('resources/subscribe', request, ok);
    const { messages, ids } = state.replay();
    expect(messages[0]?.text.toString()).toBe(
      `{ "method":"resources/subscribe","params":{"uri":"\\u0061","n":1e400, "id":3},"id" : ${[...ids][0]} ,"jsonrpc":"2.0"}`,
    );
  });

  it('does not change with the memory that the message came in', () => {
    const memory = text({ jsonrpc: '2.0', id: 0, method: 'initialize' });
    const before = memory.toString();
    const state = new ClientState(memory);
    memory.fill(0);
    expect(state.initialize.toString()).toBe(before);
  });

  it.each([[{ toString: 1, valueOf: 1 }], [['['.repeat(3)]], [5], [null], [undefined]])(
    '[F12] has no place for the URI %j, and does not fail of it',
    (uri) => {
      const { answered, replayed } = createFixture();
      for (const method of ['resources/subscribe', 'resources/unsubscribe']) answered(method, { uri });
      answered('resources/subscribe', undefined);
      expect(replayed().messages).toEqual([]);
    },
  );

  it('[P8] keeps a limited number of subscriptions', () => {
    const { answered, replayed } = createFixture();
    for (let n = 0; n < 600; n++) answered('resources/subscribe', { uri: `a:${n}` });
    expect(replayed().messages).toHaveLength(500);
    for (let n = 0; n < 600; n++) answered('resources/unsubscribe', { uri: `a:${n}` });
    expect(replayed().messages).toEqual([]);
  });
});

describe('the client state that another owner restores', () => {
  it('[F12] is replayed as it would have been here, and can change further', () => {
    const { state, answered, replayed } = createFixture();
    state.noteSent(readMessage(initialized));
    answered('logging/setLevel', { level: 'error' });
    answered('resources/subscribe', { uri: 'a:1' });
    answered('resources/subscribe', { uri: 'ü"\\:2' });
    const next = new ClientState(state.initialize, state.save());
    const withoutId = ({ id: _, ...rest }: { readonly id?: unknown }) => rest;
    const { messages } = next.replay();
    const expected = replayed().messages.map(withoutId);
    expect(messages.map(({ text }) => withoutId(JSON.parse(text.toString())))).toEqual(expected);
    next.noteAnswered('resources/unsubscribe', text({ id: 1, method: 'x', params: { uri: 'a:1' } }), ok);
    expect(next.replay().messages).toHaveLength(3);
    expect(state.replay().messages).toHaveLength(4);
  });

  it('[P1] keeps the text of each message', () => {
    const { state } = createFixture();
    const written = '{ "jsonrpc":"2.0","method":"notifications/initialized",  "params":{"n":1e400} }';
    state.noteSent(readMessage(written));
    const [replayed] = new ClientState(state.initialize, state.save()).replay().messages;
    expect(replayed?.text.toString()).toBe(written);
  });

  it('has the position to which the GET stream was delivered', () => {
    const { state } = createFixture();
    state.getCursor = { epoch: 5, seq: 7 };
    expect(new ClientState(state.initialize, state.save()).getCursor).toEqual({ epoch: 5, seq: 7 });
  });

  it.each([
    ['nothing', undefined],
    ['no bytes', { clientState: Buffer.alloc(0), clientSaid: Buffer.alloc(0) }],
  ])('is empty if %s was saved', (_, saved) => {
    const state = new ClientState(text({}), saved);
    expect([state.replay().messages, state.getCursor]).toEqual([[], undefined]);
    const empty = new ClientState(text({}), state.save());
    expect([empty.replay().messages, empty.getCursor]).toEqual([[], undefined]);
  });

  it('[C-16] separates the part that changes with each GET from the large part, which stays the same object until it changes', () => {
    const { state, answered } = createFixture();
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      answered('resources/subscribe', { uri: `test://${name.repeat(2_000)}` });
    const before = state.save();
    expect(before.clientSaid.length).toBeGreaterThan(10_000);
    state.getCursor = { epoch: 5, seq: 7 };
    const after = state.save();
    expect(after.clientSaid).toBe(before.clientSaid);
    expect(after.clientState.toString()).not.toBe(before.clientState.toString());
    expect(after.clientState.length).toBeLessThan(100);
    answered('logging/setLevel', { level: 'error' });
    expect(state.save().clientSaid).not.toBe(before.clientSaid);
  });

  it('[P8] keeps a URI, not the request of 4 MiB around it, and no long URI', () => {
    const { state, answered } = createFixture();
    answered('resources/subscribe', { uri: 'test://a', _meta: { padding: 'x'.repeat(4_000_000) } });
    answered('logging/setLevel', { level: 'error', _meta: { padding: 'x'.repeat(4_000_000) } });
    answered('resources/subscribe', { uri: `test://${'x'.repeat(2_048)}` });
    expect(state.save().clientSaid.length).toBeLessThan(1_000);
    const replayed = state.replay().messages.map((message) => JSON.parse(message.text.toString()).params);
    expect(replayed).toEqual([{ level: 'error' }, { uri: 'test://a' }]);
  });

  it('shows whether a message changed anything, so that the record is written only then', () => {
    const { state, answered } = createFixture();
    expect([
      state.noteSent(readMessage({ jsonrpc: '2.0', method: 'notifications/x' })),
      state.noteSent(readMessage(initialized)),
      answered('tools/list', {}),
      answered('logging/setLevel', { level: 'error' }, failed),
      answered('logging/setLevel', { level: 'error' }),
      answered('resources/subscribe', { uri: 'a:1' }),
      answered('resources/subscribe', { uri: 5 }),
    ]).toEqual([false, true, false, false, true, true, false]);
  });
});
