import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { EventId } from '../../../src/protocol/wire/event-id.ts';
import type { Server } from '../../../src/server/server.ts';
import { errorTo, handshake, initialize, nobody, note, request, response } from '../../session/session-fixture.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { createFakeReply, type FakeReply } from '../../support/fake-reply.ts';
import { createCluster, type Instance, takeoverMs } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));

const token = 't';
const beginning: EventId = { stream: 0, epoch: 0, seq: 0 };
const list = (id: string) => request(id, 'tools/list', {});

/** What a client of one stream does at an instance. */
const at = ({ sessions, server }: Instance) => {
  const session = () => {
    const found = sessions.atToken(token, server, nobody, undefined);
    if (typeof found === 'string') throw new Error(found);
    return found;
  };
  return {
    listen(): FakeReply {
      const reply = createFakeReply();
      sessions.listenBeforeOpen(token, server, nobody, beginning, reply);
      return reply;
    },
    open(): FakeReply {
      const reply = createFakeReply();
      sessions.openOneStream(token, server, nobody, readMessage(initialize), reply);
      return reply;
    },
    post(message: unknown): FakeReply {
      const reply = createFakeReply();
      session().post({ messages: [readMessage(message)], isBatch: false }, reply);
      return reply;
    },
  };
};

/** A session of instance `a`, heard at instance `b`. */
async function opened() {
  const cluster = await createCluster();
  const stream = at(cluster.b).listen();
  await cluster.pass();
  expect(stream.given).toBeUndefined();
  const reply = at(cluster.a).open();
  await cluster.pass(1_000);
  expect(reply.given).toEqual({ kind: 'accepted' });
  expect(stream.sink.messages).toEqual([response(0, handshake)]);
  return { ...cluster, stream };
}

describe('a one-stream session in a cluster', () => {
  it('is found by a client that listens at another instance than that of its initialize', async () => {
    const { a, b, stream, pass } = await opened();
    const replies = [at(a).post(request('here')), at(b).post(request('there'))];
    await pass();
    expect(replies.map(({ given }) => given)).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);
    a.fake.backend.says(note(1), response('there'), response('here'));
    await pass();
    expect(stream.sink.messages.slice(1)).toEqual([note(1), response('there'), response('here')]);
  });

  it('is opened once, at whichever instance, even by two instances at the same time', async () => {
    const { a, b, pass } = await createCluster();
    const replies = [at(a).open(), at(b).open()];
    await pass();
    expect(replies.map(({ given }) => given?.kind).sort()).toEqual(['accepted', 'fault']);
    const again = [at(a).open(), at(b).open()];
    await pass();
    const used = { kind: 'fault', reason: 'already_initialized', id: 0 };
    expect([...replies, ...again].filter(({ given }) => given?.kind === 'fault').map(({ given }) => given)).toEqual([
      used,
      used,
      used,
    ]);
    expect(a.fake.living.length + b.fake.living.length).toBe(1);
    expect([...a.telemetry.failures, ...b.telemetry.failures]).toEqual([]);
  });

  it('is found even if a second opening was too late and its server ends slowly', async () => {
    const { a, b, pass } = await createCluster();
    for (const { server, fake } of [a, b]) {
      const open: Server['open'] = (...of) => {
        const backend = fake.open(...of);
        const close = backend.close.bind(backend);
        return Object.assign(backend, { close: () => delay(5_000).then(() => close()) });
      };
      Object.assign(server, { open });
    }
    at(b).listen();
    await pass();
    for (const instance of [a, b]) at(instance).open();
    await pass(1_000);
    const replies = [at(a).post(list('here')), at(b).post(list('there'))];
    await pass();
    expect(replies.map(({ given }) => given)).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);
    await pass(5_000);
  });

  it('[P3] answers requests that its lost owner had accepted, on the client’s existing connection', async () => {
    const { a, b, stream, pass } = await opened();
    const replies = [at(b).post(request('tool')), at(b).post(list('list'))];
    await pass();
    expect(replies.map(({ given }) => given?.kind)).toEqual(['accepted', 'accepted']);
    a.line.cut();
    await pass(2 * takeoverMs);
    expect(stream.sink.messages[1]).toEqual(errorTo('tool', 'outcome_unknown'));
    expect(b.fake.backend.sent.items).toContainEqual(list('list'));
    b.fake.backend.says(response('list'));
    await pass();
    expect(stream.sink.messages.filter(({ id }) => id === 'list')).toEqual([response('list')]);
    expect(stream.sink.state).toBe('open');
  });

  it('[P3] answers a POST whose acceptance was lost in transit, and its request only once', async () => {
    const { a, b, stream, pass } = await opened();
    a.line.lose(1);
    const reply = at(b).post(request('tool'));
    await pass();
    expect(reply.given).toBeUndefined();
    a.fake.backend.says(response('tool')); // whose letter shows that one before it is missing
    await pass(3_000);
    expect(reply.given).toEqual({ kind: 'accepted' });
    expect(stream.sink.messages.filter(({ id }) => id === 'tool')).toEqual([response('tool')]);
    expect(a.fake.backend.sent.items.filter(({ id }) => id === 'tool')).toHaveLength(1);
  });

  it('[P3] reports the outcome of a POST whose owner was lost before the request was logged', async () => {
    const { a, b, pass } = await opened();
    a.line.cut();
    const reply = at(b).post(request('tool'));
    await pass(2 * takeoverMs);
    expect(reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'tool' });
  });
});
