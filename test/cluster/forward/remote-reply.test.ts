import { describe, expect, it } from 'vitest';
import { RemoteReply } from '../../../src/cluster/forward/remote-reply.ts';
import type { MessageToIngress } from '../../../src/cluster/link/peer-messages.ts';
import { type ForwardedHeaders, noHeaders } from '../../../src/protocol/http/forwarded-headers.ts';
import { noteChallenge } from '../../../src/protocol/http/upstream-challenge.ts';
import { createLoggedBatch, createMessageBatch } from '../../../src/reply/event-batch.ts';
import { accepted, faultAnswer, nothing } from '../../../src/reply/reply.ts';

const accepts = { json: true, sse: true };
const n = 4;

function createFixture({
  isContinued = false,
  forwarded,
}: {
  isContinued?: boolean;
  forwarded?: ForwardedHeaders;
} = {}) {
  const sent: (MessageToIngress & { body?: string })[] = [];
  const told: string[] = [];
  const reply = new RemoteReply(
    n,
    { request: { accepts, forwarded }, isContinued, name: 'in 4' },
    {
      send: (letter, body) => void sent.push({ ...letter, ...(body && { body: body.toString() }) }),
      forget: () => void told.push('forget'),
    },
  );
  reply.onGone(() => void told.push('gone'));
  return { reply, sent, told };
}

const text = (value: string): Buffer => Buffer.from(value);
const logged = createLoggedBatch([{ stream: 1, epoch: 5, seq: 1, data: text('{"a":1}') }], 0, '~7');
const unlogged = createMessageBatch(text('{"b":2}'));

/** A batch whose text has this size. */
function batchOfSize(size: number) {
  const overhead = createMessageBatch(Buffer.alloc(0)).text.length;
  return createMessageBatch(Buffer.alloc(size - overhead, '1'));
}

describe('a reply to a client of another instance', () => {
  it.each<[string, (reply: RemoteReply) => void, object]>([
    ['JSON', (reply) => reply.answer({ kind: 'json', text: text('{}') }), { kind: 'json', body: '{}' }],
    [
      'JSON with headers',
      (reply) => reply.answer({ kind: 'json', text: text('{}'), headers: { a: 'b' } }),
      { kind: 'json', body: '{}', headers: { a: 'b' } },
    ],
    ['202', (reply) => reply.answer(accepted), { kind: 'accepted' }],
    ['204', (reply) => reply.answer(nothing), { kind: 'nothing' }],
    ['200 without a body', (reply) => reply.answer({ kind: 'removed' }), { kind: 'removed' }],
    [
      'a fault',
      (reply) => reply.answer(faultAnswer('duplicate_id', 7)),
      { kind: 'fault', reason: 'duplicate_id', id: 7 },
    ],
    [
      'a fault with data',
      (reply) => reply.answer(faultAnswer('unsupported_version', null, { supported: ['x'] })),
      { kind: 'fault', reason: 'unsupported_version', id: null, data: { supported: ['x'] } },
    ],
  ])('is sent as %s once, and is then forgotten', (_, answer, letter) => {
    const { reply, sent, told } = createFixture();
    answer(reply);
    expect([sent, told]).toEqual([[{ ...letter, n }], ['forget']]);
    answer(reply);
    expect([sent.length, told]).toEqual([1, ['forget']]);
    expect(reply.isGone).toBe(false); // an answer that was given is not lost
  });

  it('carries the challenge of the server with its refusal alone, for the headers of this request alone', () => {
    const forwarded = { authorization: 'Bearer x' };
    noteChallenge(forwarded, { status: 401, wwwAuthenticate: 'Bearer error="invalid_token"' });
    const dataOf = (reason: 'upstream_unauthorized' | 'server_refused', headers: ForwardedHeaders) => {
      const { reply, sent } = createFixture({ forwarded: headers });
      reply.answer(faultAnswer(reason, 7));
      return sent[0];
    };
    const letter = { kind: 'fault', n, reason: 'upstream_unauthorized', id: 7 };
    const data = { wwwAuthenticate: 'Bearer error="invalid_token"' };
    expect(dataOf('upstream_unauthorized', forwarded)).toEqual({ ...letter, data });
    expect(dataOf('server_refused', forwarded)).not.toHaveProperty('data');
    for (const others of [noHeaders, { ...forwarded }]) expect(dataOf('upstream_unauthorized', others)).toEqual(letter);
  });

  it('is sent as a stream, chunk by chunk, each with the position that it reaches', () => {
    const { reply, sent, told } = createFixture();
    const sink = reply.stream({ a: 'b' });
    sink.onClose(() => void told.push('closed'));
    expect([sink.write(logged), sink.write(unlogged)]).toEqual([true, true]);
    expect(told).toEqual([]);
    sink.end();
    sink.write(unlogged);
    sink.cut();
    expect(sent).toEqual([
      { kind: 'head', n, headers: { a: 'b' } },
      { kind: 'chunk', n, at: '1.5-1', body: 'id: 1.5-1~7\nevent: message\ndata: {"a":1}\n\n' },
      { kind: 'chunk', n, body: 'event: message\ndata: {"b":2}\n\n' },
      { kind: 'finish', n },
    ]);
    expect(told).toEqual(['forget', 'closed']);
  });

  it('says which chunk is the last of its stream', () => {
    const { reply, sent } = createFixture();
    const last = { stream: 1, epoch: 5, seq: 2, data: Buffer.from('{}'), last: true };
    reply.stream().write(createLoggedBatch([last], 0, '~7'));
    expect(sent.at(-1)).toMatchObject({ kind: 'chunk', at: '1.5-2', isLast: true });
  });

  it('[P9] leaves its stream to the next owner of the session', () => {
    const { reply, sent, told } = createFixture();
    const sink = reply.stream();
    sink.write(logged);
    sink.handOver?.();
    sink.end();
    expect([sent.map(({ kind }) => kind), told]).toEqual([['head', 'chunk', 'moved'], ['forget']]);
  });

  it('is cut at the client if it is cut here', () => {
    const { reply, sent } = createFixture();
    reply.stream().cut();
    expect(sent).toEqual([
      { kind: 'head', n },
      { kind: 'cut', n },
    ]);
  });

  it('[P8] signals a slow client once 256 KiB are in flight, until they are read', () => {
    const { reply, told } = createFixture();
    const sink = reply.stream();
    sink.onDrain(() => void told.push('drained'));
    const part = batchOfSize(64 * 1024);
    expect([1, 2, 3, 4].map(() => sink.write(part))).toEqual([true, true, true, false]);
    reply.read(1);
    expect(told).toEqual(['drained']);
    expect(sink.write(unlogged)).toBe(false);
    reply.read(64 * 1024);
    expect(told).toEqual(['drained', 'drained']);
    reply.read(64 * 1024);
    expect(told).toHaveLength(2); // it was not waiting
    expect(sink.write(part)).toBe(true);
  });

  it('ends when its client has left, which is reported once, and drops later writes', () => {
    const { reply, sent, told } = createFixture();
    const sink = reply.stream();
    sink.onClose(() => void told.push('closed'));
    reply.close(false);
    reply.close(true);
    expect([reply.isGone, reply.attempt.isDetached, told]).toEqual([true, false, ['gone', 'closed']]);
    expect(sink.write(batchOfSize(1_000_000))).toBe(true);
    expect(sent).toHaveLength(1);
  });

  it('shows whether only the link to its client is lost', () => {
    const { reply } = createFixture();
    expect(reply.attempt).toMatchObject({ id: 'in 4', previousIds: [], isDetached: false });
    reply.close(true);
    expect([reply.isGone, reply.attempt.isDetached]).toEqual([true, true]);
  });

  it('knows whether its client needs a priming event', () => {
    expect([createFixture().reply.isContinued, createFixture({ isContinued: true }).reply.isContinued]).toEqual([
      false,
      true,
    ]);
  });
});
