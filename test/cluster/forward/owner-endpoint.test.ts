import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { OwnerEndpoint } from '../../../src/cluster/forward/owner-endpoint.ts';
import type { MessageToIngress, MessageToOwner, PeerMessageHead } from '../../../src/cluster/link/peer-messages.ts';
import type { EventId } from '../../../src/protocol/wire/event-id.ts';
import { createMessageBatch } from '../../../src/reply/event-batch.ts';
import type { EventSink, Reply } from '../../../src/reply/reply.ts';
import type { ClientPost } from '../../../src/session/session-handle.ts';
import { reportFaultsTo } from '../../../src/util/boundary.ts';
import { note, request } from '../../session/session-fixture.ts';

const accepts = { json: true, sse: false };

function createFixture() {
  const letters: MessageToIngress[] = [];
  const sent: [string, PeerMessageHead['kind'], number | undefined, string | undefined][] = [];
  const posts: { post: ClientPost; reply: Reply }[] = [];
  const listens: { after: EventId | undefined; reply: Reply; sink: EventSink }[] = [];
  const adopted: string[] = [];
  const desk = new OwnerEndpoint({
    findHere: (key) =>
      key !== 'k' && !adopted.includes(key)
        ? undefined
        : {
            post: (post, reply) => void posts.push({ post, reply }),
            listen: (after, reply) => void listens.push({ after, reply, sink: reply.stream() }),
            remove: (reply) => reply.answer({ kind: 'removed' }),
          },
    openerOf: () => undefined,
    adopt: async (key) => void (key.startsWith('released') && adopted.push(key)),
    isChanging: (key) => key === 'ending',
    send: (to, letter: MessageToIngress, body) => {
      letters.push(letter);
      sent.push([to, letter.kind, letter.n, body?.toString()]);
    },
  });
  const take = (letter: MessageToOwner, body = '', from = 'in'): void => desk.receive(from, letter, Buffer.from(body));
  return { desk, sent, letters, posts, listens, adopted, take };
}

const listen: MessageToOwner = {
  kind: 'listen',
  n: 1,
  key: 'k',
  request: { accepts },
  after: '3.5-7',
  continues: true,
};

describe('a request to a session that nobody owns', () => {
  const post = {
    kind: 'post',
    n: 7,
    key: 'released',
    isBatch: false,
    request: { accepts },
    again: false,
    lengths: [2],
  } as const;

  it('[P9] is served after the session is taken over, in the order of the requests', async () => {
    const { posts, sent, adopted, take } = createFixture();
    const texts = [JSON.stringify(request('a')), JSON.stringify(request('b'))];
    for (const text of texts) take({ ...post, lengths: [text.length], adopts: true }, text);
    await vi.waitFor(() => expect(posts).toHaveLength(2));
    expect(adopted[0]).toBe('released');
    expect(posts.map((each) => each.post.messages[0]?.text.toString())).toEqual(texts);
    expect(sent).toEqual([]);
  });

  it('[P10] leaves no stream behind if its client leaves before the session is taken over', async () => {
    const { posts, take } = createFixture();
    const text = JSON.stringify(request('a'));
    take({ ...post, lengths: [text.length], adopts: true }, text);
    take({ kind: 'gone', n: 7 });
    await vi.waitFor(() => expect(posts).toHaveLength(1));
    expect(posts[0]?.reply.isGone).toBe(true);
  });

  it('is denied if the session cannot be taken over, or if the sender does not ask for it', async () => {
    const { posts, sent, adopted, take } = createFixture();
    take({ ...post, key: 'other', adopts: true }, '{}');
    take({ ...post, n: 8 }, '{}');
    await vi.waitFor(() => expect(sent).toHaveLength(2));
    expect(sent.map(([, kind, n]) => [kind, n]).toSorted()).toEqual([
      ['moved', 7],
      ['moved', 8],
    ]);
    expect([posts, adopted]).toEqual([[], []]);
  });

  it('[S-21] [P8] is refused while many bytes wait for takeovers, and not later', async () => {
    const { posts, letters, take } = createFixture();
    const text = JSON.stringify(request('a', 'tools/call', { padding: 'x'.repeat(4 * 1024 * 1024) }));
    const large = { ...post, lengths: [text.length], adopts: true } as const;
    for (let n = 1; n <= 16; n += 1) take({ ...large, n }, text);
    expect(letters).toEqual([{ kind: 'fault', n: 16, reason: 'server_busy', id: null }]);
    await vi.waitFor(() => expect(posts).toHaveLength(15));
    take({ ...large, n: 17, key: 'released too' }, text);
    await vi.waitFor(() => expect(posts).toHaveLength(16));
  });

  it('[C-10] is answered if something throws', async () => {
    const { letters, take } = createFixture();
    const faults: string[] = [];
    onTestFinished(reportFaultsTo((seam) => void faults.push(seam)));
    take({ ...post, adopts: true }, 'no');
    await vi.waitFor(() => expect(letters).toEqual([{ kind: 'fault', n: 7, reason: 'internal', id: null }]));
    expect(faults).toEqual(['cluster']);
  });
});

describe('requests that come in a peer message', () => {
  it('[P1] of a POST reach the session as they were sent, and their answer travels back', () => {
    const { sent, posts, take } = createFixture();
    const texts = [JSON.stringify(request('ü')), `{"jsonrpc": "2.0", "method":"x","params":{"n":1e400}}`];
    const lengths = texts.map((text) => Buffer.byteLength(text));
    const post: MessageToOwner = {
      kind: 'post',
      n: 7,
      key: 'k',
      isBatch: true,
      request: { accepts },
      again: true,
      earlier: ['old 3'],
      lengths,
    };
    take(post, texts.join(''));
    const [posted] = posts;
    expect(posted?.post).toMatchObject({ isBatch: true, again: true });
    expect(posted?.post.messages.map(({ text }) => text.toString())).toEqual(texts);
    expect(posted?.reply.request.accepts).toEqual(accepts);
    expect(posted?.reply.attempt).toMatchObject({ id: 'in 7', previousIds: ['old 3'] });
    posted?.reply.answer({ kind: 'json', text: Buffer.from('{}') });
    expect(sent).toEqual([['in', 'json', 7, '{}']]);
  });

  describe('again', () => {
    const text = JSON.stringify(request('a', 'tools/list'));
    const post: MessageToOwner = {
      ...{ kind: 'post', n: 7, key: 'k', isBatch: false },
      ...{ request: { accepts }, again: false, lengths: [text.length] },
    };
    const again = { ...post, n: 8, again: true, earlier: ['in 5', 'in 7'] };

    it('[P4] get the answer that was lost on its way, and do not run a second time', () => {
      const { letters, sent, posts, take } = createFixture();
      take(post, text);
      posts[0]?.reply.answer({ kind: 'json', text: Buffer.from('{"id":"a"}'), headers: { 'x-of': 'answer' } });
      take({ kind: 'gone', n: 7, asksAgain: true });
      take(again, text);
      expect(posts).toHaveLength(1);
      expect(sent.map(([, kind, n, body]) => [kind, n, body])).toEqual([
        ['json', 7, '{"id":"a"}'],
        ['json', 8, '{"id":"a"}'],
      ]);
      expect(letters[1]).toEqual({ kind: 'json', n: 8, headers: { 'x-of': 'answer' } });
    });

    it('reach the session if no earlier attempt was answered, or the session is not here any more', () => {
      const { letters, posts, take } = createFixture();
      take(post, text);
      posts[0]?.reply.answer({ kind: 'json', text: Buffer.from('{"id":"a"}') });
      take({ ...again, earlier: ['in 5', 'other 7'] }, text);
      expect(posts[1]?.post.again).toBe(true);
      take({ ...again, n: 9, key: 'other' }, text);
      expect(letters.at(-1)).toEqual({ kind: 'moved', n: 9 });
    });

    it('[P8] reach the session if the answer was large, or many answers came after it', () => {
      const { posts, take } = createFixture();
      const runsAgain = (n: number): boolean => {
        const before = posts.length;
        take({ ...again, n: 1_000_000 + n, earlier: [`in ${n}`] }, text);
        return posts.length > before;
      };
      const answer = (n: number, bytes: number): void => {
        take({ ...post, n }, text);
        posts.at(-1)?.reply.answer({ kind: 'json', text: Buffer.alloc(bytes, 'x') });
      };
      answer(1, 256 * 1024);
      answer(2, 100_000);
      expect([runsAgain(1), runsAgain(2)]).toEqual([true, false]);
      for (let n = 3; n < 100; n += 1) answer(n, 100_000);
      expect([runsAgain(2), runsAgain(99)]).toEqual([true, false]);
      for (let n = 100; n < 4_200; n += 1) answer(n, 10);
      expect([runsAgain(99), runsAgain(100), runsAgain(4_199)]).toEqual([true, true, false]);
    });
  });

  it('of a GET and a DELETE reach the session too', () => {
    const { sent, listens, take } = createFixture();
    take(listen);
    take({ kind: 'listen', n: 2, key: 'k', request: { accepts }, continues: false });
    take({ kind: 'remove', n: 3, key: 'k', request: { accepts } });
    expect(listens.map(({ after, reply }) => [after, reply.isContinued, reply.request.accepts])).toEqual([
      [{ stream: 3, epoch: 5, seq: 7 }, true, accepts],
      [undefined, false, accepts],
    ]);
    expect(sent).toEqual([
      ['in', 'head', 1, undefined],
      ['in', 'head', 2, undefined],
      ['in', 'removed', 3, undefined],
    ]);
  });

  it('for a session that is not held here are returned', () => {
    const { sent, take } = createFixture();
    take({ ...listen, key: 'other' });
    expect(sent).toEqual([['in', 'moved', 1, undefined]]);
  });

  it('[C-06] for a session that is ending or opening here are returned with that state', () => {
    const { letters, take } = createFixture();
    for (const key of ['ending', 'other']) take({ ...listen, key });
    expect(letters).toEqual([
      { kind: 'moved', n: 1, isEnding: true },
      { kind: 'moved', n: 1 },
    ]);
  });

  it('are abandoned when their client leaves or their instance is lost', () => {
    const { desk, listens, take } = createFixture();
    for (const [n, from] of [
      [1, 'in'],
      [2, 'in'],
      [1, 'other'],
    ] as const)
      take({ ...listen, n }, '', from);
    const gone = () => listens.map(({ reply }) => reply.isGone);
    expect([...desk.ingresses]).toEqual(['in', 'other']);
    take({ kind: 'gone', n: 1 });
    expect(gone()).toEqual([true, false, false]);
    desk.ingressLost('in');
    expect([gone(), [...desk.ingresses]]).toEqual([[true, true, false], ['other']]);
    listens[2]?.sink.end();
    expect([...desk.ingresses]).toEqual([]); // nobody waits there any more: it is not watched
    take({ kind: 'gone', n: 9 });
    take({ kind: 'read', n: 9, bytes: 1 });
  });

  it('show whether their client has left or only the link to it is lost', () => {
    const { desk, listens, take } = createFixture();
    for (const n of [1, 2, 3]) take({ ...listen, n });
    take({ kind: 'gone', n: 1 });
    take({ kind: 'gone', n: 2, asksAgain: true });
    desk.ingressLost('in');
    const askings = listens.map(({ reply }) => [reply.attempt?.id, reply.attempt?.isDetached]);
    expect(askings).toEqual([
      ['in 1', false],
      ['in 2', true],
      ['in 3', true],
    ]);
  });

  it('[P2] are given up when their client does not come back', () => {
    const { desk, listens, take } = createFixture();
    for (const n of [1, 2, 3]) take({ ...listen, n });
    take({ kind: 'gone', n: 1, asksAgain: true });
    desk.ingressLost('in');
    const givenUp: number[] = [];
    for (const [at, { reply }] of listens.entries()) reply.attempt?.onGivenUp(() => void givenUp.push(at + 1));
    take({ kind: 'gone', n: 1, isAnswered: true });
    take({ kind: 'gone', n: 2 });
    for (const n of [1, 2, 3]) take({ kind: 'gone', n }, '', 'other');
    expect(givenUp).toEqual([1, 2]);
    const states = listens.map(({ reply: { attempt } }) => [attempt?.isObsolete, attempt?.isDetached]);
    expect(states).toEqual([
      [true, false],
      [false, false],
      [false, true],
    ]);
  });

  it('[P8] continue when their client has read', () => {
    const { listens, take } = createFixture();
    take(listen);
    const drained: string[] = [];
    const [open] = listens;
    open?.sink.onDrain(() => void drained.push('drained'));
    const batch = createMessageBatch(Buffer.alloc(300_000));
    expect(open?.sink.write(batch)).toBe(false);
    take({ kind: 'read', n: 1, bytes: batch.text.length });
    expect(drained).toEqual(['drained']);
  });

  it('that are malformed are a fault of the other instance', () => {
    const { take } = createFixture();
    const letter: MessageToOwner = {
      kind: 'post',
      n: 1,
      key: 'k',
      isBatch: false,
      request: { accepts },
      again: false,
      lengths: [3],
    };
    expect(() => take(letter, 'abc')).toThrow('no message');
    expect(() => take({ ...letter, lengths: [JSON.stringify(note(1)).length] }, JSON.stringify(note(1)))).not.toThrow();
  });
});
