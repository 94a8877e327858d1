import { createHash } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { initialize, nobody, note, request, response } from '../../../core/session/session-fixture.ts';
import { type FakeBackend, readMessage } from '../../../support/fake-backend.ts';
import { acceptsBoth, createFakeReply, type FakeReply } from '../../../support/fake-reply.ts';
import { createCluster, type Instance, takeoverMs } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

const token = (text: string) => ({ authorization: `Bearer ${text}` });

/** A reply to a request that brings these headers. */
const bringing = (forwarded: Readonly<Record<string, string>>): FakeReply =>
  createFakeReply(acceptsBoth, { forwarded });

/** What would go with what the backend asks by itself. */
const ownHeadersOf = (backend: FakeBackend | undefined) => backend?.openedWith?.headers?.();
const lastHeaders = ({ fake }: Instance) => fake.backend.headers.at(-1);
const lastMessage = ({ fake }: Instance) => fake.backend.sent.items.at(-1);
const list = (id: string) => request(id, 'tools/list', {});

describe.each<['here' | 'elsewhere']>([['here'], ['elsewhere']])(
  'the headers of a request, with its owner %s',
  (where) => {
    const start = async () => {
      const { a, b, open, pass } = await createCluster();
      const id = await open(a);
      return { id, owner: a, ingress: where === 'here' ? a : b, other: where === 'here' ? b : a, open, pass };
    };

    it('go with its own messages only', async () => {
      const { id, owner, ingress, pass } = await start();
      for (const [n, text] of ['one', 'two'].entries()) {
        ingress.post(id, request(n), bringing(token(text)));
        await pass();
        expect([lastMessage(owner), lastHeaders(owner)]).toEqual([request(n), token(text)]);
      }
      ingress.post(id, note('x'), bringing(token('three')));
      await pass();
      expect([lastMessage(owner), lastHeaders(owner)]).toEqual([note('x'), token('three')]);
    });

    it('[P11] do not go with messages of another request that knows only the session id', async () => {
      const { id, owner, ingress, pass } = await start();
      ingress.post(id, request('r'), bringing(token('secret')));
      await pass();
      for (const message of [request('stolen'), note('stolen')]) {
        ingress.post(id, message);
        await pass();
        expect([lastMessage(owner), lastHeaders(owner)]).toEqual([message, {}]);
      }
    });

    it('[P11] do not go to the backend of another session', async () => {
      const { id, owner, ingress, open, pass } = await start();
      const other = await open(owner);
      const [first, second] = owner.fake.opened.slice(-2);
      ingress.post(id, request('r'), bringing(token('secret')));
      ingress.post(other, request('r'));
      await pass();
      expect([first?.headers.at(-1), ownHeadersOf(first)]).toEqual([token('secret'), token('secret')]);
      expect([second?.headers.at(-1), ownHeadersOf(second)]).toEqual([{}, {}]);
    });

    it.each<[string, (ingress: Instance, id: string, reply: FakeReply) => void]>([
      ['POST', (ingress, id, reply) => void ingress.post(id, request('r'), reply)],
      ['GET', (ingress, id, reply) => ingress.at(id).listen(undefined, reply)],
    ])('are used for the gateway’s own requests after a %s', async (_, ask) => {
      const { id, owner, ingress, pass } = await start();
      ask(ingress, id, bringing(token('one')));
      await pass();
      expect(ownHeadersOf(owner.fake.backend)).toEqual(token('one'));
      ask(ingress, id, bringing(token('two')));
      await pass();
      expect(ownHeadersOf(owner.fake.backend)).toEqual(token('two'));
      ingress.post(id, note('without'));
      await pass();
      expect(ownHeadersOf(owner.fake.backend)).toEqual(token('two'));
      owner.fake.backend.says({ jsonrpc: '2.0', id: 's', method: 'roots/list' });
      await pass();
    });

    it('restore a lost server, while calls run again with their own headers', async () => {
      const { id, owner, ingress, pass } = await start();
      ingress.post(id, list('r'), bringing(token('one')));
      await pass();
      ingress.post(id, note('x'), bringing(token('two')));
      await pass();
      owner.fake.backend.ends();
      ingress.post(id, note('waits'));
      await pass();
      const { sent, headers } = owner.fake.backend;
      expect(sent.items.map((message, index) => [message.method, headers[index]])).toEqual([
        ['initialize', token('two')],
        ['notifications/initialized', token('two')],
        ['tools/list', token('one')],
        ['notifications/message', {}],
      ]);
      expect(ownHeadersOf(owner.fake.backend)).toEqual(token('two'));
    });

    it('go with a DELETE too', async () => {
      const { id, owner, ingress, pass } = await start();
      const { backend } = owner.fake;
      ingress.at(id).remove(bringing(token('last')));
      await pass();
      expect(backend.isClosed).toBe(true);
      expect(ownHeadersOf(backend)).toEqual(token('last'));
    });
  },
);

describe('the headers of initialize', () => {
  it('open the backend, and go with initialize', async () => {
    const { a } = await createCluster();
    const reply = bringing(token('first'));
    a.sessions.open(a.server, nobody, readMessage(initialize), reply);
    expect([a.fake.backend.headers, ownHeadersOf(a.fake.backend)]).toEqual([[token('first')], token('first')]);
  });
});

describe('a session that is taken over', () => {
  it('[P12] uses the headers of the request that caused it, and keeps none in its record', async () => {
    const { a, b, store, open, pass } = await createCluster();
    const id = await open(a);
    b.post(id, request('r'), bringing(token('old-secret')));
    await pass();
    a.fake.backend.says(response('r'));
    await pass();
    a.line.cut();
    const reply = b.post(id, list('next'), bringing(token('new')));
    await pass(takeoverMs);
    expect(b.fake.backend.headers).toEqual([token('new'), token('new'), token('new')]);
    expect(ownHeadersOf(b.fake.backend)).toEqual(token('new'));
    b.fake.backend.says(response('next'));
    await pass();
    expect(reply.given).toMatchObject({ kind: 'json' });
    const record = await store.sessions.find(createHash('sha256').update(id).digest('base64url'));
    expect(record).toBeDefined();
    expect(JSON.stringify(record)).not.toContain('secret');
    const texts = [record?.clientState, record?.clientSaid, record?.initialize, record?.initialized].map(String).join();
    expect(texts).not.toMatch(/Bearer|secret/);
  });

  it('does not return to the headers of a GET that was opened long before', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const listening = bringing(token('old'));
    b.at(id).listen(undefined, listening);
    await pass();
    a.fake.backend.says(note(1));
    await pass();
    b.post(id, note('x'), bringing(token('new')));
    await pass();
    a.peers.break();
    a.fake.backend.says(note(2));
    await pass();
    a.fake.backend.says(note(3));
    await pass(3_000);
    expect(listening.sink.messages).toEqual([note(1), note(2), note(3)]);
    expect(ownHeadersOf(a.fake.backend)).toEqual(token('new'));
  });
});
