import { describe, expect, it, vi } from 'vitest';
import { SseClient } from '../../../../src/features/legacy-sse/sse-client.ts';
import { handshake, initialize, nobody, note, request, response } from '../../../core/session/session-fixture.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { createFakeReply, type FakeReply } from '../../../support/fake-reply.ts';
import { createCluster, type Instance, takeoverMs } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

const key = 'k';

/** What a client of HTTP+SSE does at an instance. */
const at = ({ sessions, server }: Instance) => ({
  connect(): FakeReply {
    const reply = createFakeReply();
    SseClient.connect(sessions, { key, server, principal: nobody }, reply, 60_000);
    return reply;
  },
  post(message: unknown): FakeReply {
    const reply = createFakeReply();
    const post = { messages: [readMessage(message)], isBatch: false };
    sessions.clients.post({ key, server, principal: nobody }, post, reply);
    return reply;
  },
});

/** A client that listens at instance `b`, and has sent its `initialize` to instance `a`. */
async function opened() {
  const cluster = await createCluster();
  const stream = at(cluster.b).connect();
  await cluster.pass();
  const reply = at(cluster.a).post(initialize);
  await cluster.pass(1_000);
  expect(reply.given).toEqual({ kind: 'accepted' });
  expect(stream.sink.messages).toEqual([response(0, handshake)]);
  return { ...cluster, stream };
}

describe('a client of HTTP+SSE in a cluster', () => {
  it('has its session where its stream is, and may post to any instance', async () => {
    const { a, b, stream, pass } = await opened();
    expect([a.fake.opened.length, b.fake.living.length]).toEqual([0, 1]);
    const replies = [at(a).post(request('there')), at(b).post(request('here'))];
    await pass();
    expect(replies.map(({ given }) => given)).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);
    b.fake.backend.says(note(1), response('there'), response('here'));
    await pass();
    expect(stream.sink.messages.slice(1)).toEqual([note(1), response('there'), response('here')]);
  });

  it('[P3] [P7] has one answer if the acceptance of its POST was lost between instances, and nothing runs again', async () => {
    const { a, b, bus, stream, pass } = await opened();
    bus.losesAnswers = true;
    const [call, list] = [at(a).post(request('tool')), at(a).post(request('list', 'tools/list', {}))];
    await pass(3_000);
    b.fake.backend.says(response('tool'), response('list'));
    await pass();
    expect([call.given, list.given]).toMatchObject([{ reason: 'outcome_unknown' }, { reason: 'outcome_unknown' }]);
    expect(stream.sink.messages.slice(1)).toEqual([response('tool'), response('list')]);
    expect(b.fake.backend.sent.items.filter(({ method }) => method.startsWith('tools/'))).toHaveLength(2);
  });

  it('[P3] whose instance is lost is told that there is no session', async () => {
    const { a, b, pass } = await opened();
    b.line.cut();
    const [call, list] = [at(a).post(request('tool')), at(a).post(request('list', 'tools/list', {}))];
    await pass(2 * takeoverMs);
    expect(call.given).toMatchObject({ kind: 'fault', id: 'tool' });
    expect(['outcome_unknown', 'unknown_session']).toContain((call.given as { reason: string }).reason);
    expect(list.given).toMatchObject({ kind: 'fault', id: 'list' });
    const later = at(a).post(request('later'));
    await pass();
    expect(later.given).toEqual({ kind: 'fault', reason: 'unknown_session', id: 'later' });
  });

  it('that has left, or never listened, is unknown at each instance', async () => {
    const { a, b, stream, pass } = await opened();
    stream.sink.leave();
    await pass();
    const replies = [at(a).post(request('there')), at(b).post(request('here'))];
    await pass(1_000);
    for (const { given } of replies) expect(given).toMatchObject({ kind: 'fault', reason: 'unknown_session' });
    expect(b.fake.living).toEqual([]);
  });

  it('[P7] waits for a store that is away, instead of being told that there is no session', async () => {
    const { a, stream, b, pass } = await opened();
    a.line.cut();
    const reply = at(a).post(request('list', 'tools/list', {}));
    await pass(500);
    expect(reply.given).toBeUndefined();
    a.line.mend();
    await pass(2_000);
    expect(reply.given).toEqual({ kind: 'accepted' });
    b.fake.backend.says(response('list'));
    await pass();
    expect(stream.sink.messages.at(-1)).toEqual(response('list'));
  });

  it('[F09] [P3] gets its stream once the other instances can learn of it', async () => {
    const { a, b, pass } = await createCluster();
    b.line.cut();
    const stream = at(b).connect();
    await pass(300);
    expect(stream.given).toBeUndefined();
    b.line.mend();
    await pass(1_000);
    expect(stream.sink.state).toBe('open');
    const reply = at(a).post(initialize);
    await pass(1_000);
    expect(reply.given).toEqual({ kind: 'accepted' });
  });

  it('[F09] [P3] is refused if they cannot learn of its stream', async () => {
    const { b, pass } = await createCluster();
    b.line.cut();
    await pass(takeoverMs);
    const stream = at(b).connect();
    await pass(20_000);
    expect(stream.given).toEqual({ kind: 'fault', reason: 'store_unavailable', id: null });
  });

  it('is found after its instance has got another name', async () => {
    const { a, b, stream, pass } = await opened();
    b.line.cut();
    await pass(2 * takeoverMs);
    b.line.mend();
    await pass(2 * takeoverMs);
    const reply = at(a).post(request('tool'));
    await pass(1_000);
    expect(reply.given).toEqual({ kind: 'accepted' });
    b.fake.backend.says(response('tool'));
    await pass();
    expect(stream.sink.messages.at(-1)).toEqual(response('tool'));
  });
});
