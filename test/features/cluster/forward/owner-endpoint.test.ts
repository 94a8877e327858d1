import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { EventId } from '../../../../src/core/protocol/wire/event-id.ts';
import type { Reply } from '../../../../src/core/reply/reply.ts';
import type { ClientPost } from '../../../../src/core/session/session-handle.ts';
import { reportFaultsTo } from '../../../../src/core/util/boundary.ts';
import { OwnerEndpoint } from '../../../../src/features/cluster/forward/owner-endpoint.ts';
import type { Denial, PeerReply, PeerRequest } from '../../../../src/features/cluster/peers/peer-request.ts';
import { createTelemetry, note, request } from '../../../core/session/session-fixture.ts';
import { acceptsJson, createFakeReply, type FakeReply } from '../../../support/fake-reply.ts';

const facts = { accepts: acceptsJson };

type PeerFake = FakeReply & PeerReply & { readonly denials: readonly Denial[] };

function createPeerReply(): PeerFake {
  const denials: Denial[] = [];
  return Object.assign(createFakeReply(acceptsJson), { denials, deny: (why: Denial) => void denials.push(why) });
}

function createFixture() {
  const posts: { post: ClientPost; reply: Reply }[] = [];
  const listens: (EventId | undefined)[] = [];
  const adopted: string[] = [];
  const handleHere = (key: string) =>
    key !== 'k' && !adopted.includes(key)
      ? undefined
      : {
          post: (post: ClientPost, reply: Reply) => void posts.push({ post, reply }),
          listen: (after: EventId | undefined, reply: Reply) => {
            listens.push(after);
            reply.stream();
          },
          remove: (reply: Reply) => reply.answer({ kind: 'removed' }),
        };
  const endpoint = new OwnerEndpoint(
    {
      findConnected: () => undefined,
      openerOf: (_, { server }) =>
        server === 's' ? (reply) => reply.answer({ kind: 'json', text: Buffer.from('{}') }) : undefined,
      telemetry: createTelemetry(),
    },
    {
      handleHere,
      isChanging: (key) => key === 'ending',
      takeOverReleased: async (key) => void (key.startsWith('released') && adopted.push(key)),
    },
  );
  const serve = (asked: PeerRequest, body = ''): PeerFake => {
    const reply = createPeerReply();
    endpoint.serve(asked, Buffer.from(body), reply);
    return reply;
  };
  return { posts, listens, adopted, serve };
}

describe('a request to a session that nobody owns', () => {
  const adopting = { kind: 'post', key: 'released', request: facts, adopts: true } as const;

  it('[P9] is served after the session is taken over, in the order of the requests', async () => {
    const { posts, adopted, serve } = createFixture();
    const texts = [JSON.stringify(request('a')), JSON.stringify(request('b'))];
    for (const text of texts) serve(adopting, text);
    await vi.waitFor(() => expect(posts).toHaveLength(2));
    expect(adopted[0]).toBe('released');
    expect(posts.map((each) => each.post.messages[0]?.text.toString())).toEqual(texts);
  });

  it('[P10] does nothing if its client leaves before the session is taken over', async () => {
    const { posts, adopted, serve } = createFixture();
    serve(adopting, JSON.stringify(request('a'))).leave();
    serve(adopting, JSON.stringify(request('b')));
    await vi.waitFor(() => expect(posts).toHaveLength(1));
    expect([adopted.length, posts[0]?.post.messages[0]?.id]).toEqual([1, 'b']);
  });

  it('is denied if the session cannot be taken over, or if the sender does not ask for it', async () => {
    const { posts, adopted, serve } = createFixture();
    const replies = [
      serve({ ...adopting, key: 'other' }, '{}'),
      serve({ kind: 'post', key: 'x', request: facts }, '{}'),
    ];
    await vi.waitFor(() => expect(replies.map(({ denials }) => denials)).toEqual([['moved'], ['moved']]));
    expect([posts, adopted]).toEqual([[], []]);
  });

  it('[S-21] [P8] is refused while many bytes wait for takeovers, and not later', async () => {
    const { posts, serve } = createFixture();
    const text = JSON.stringify(request('a', 'tools/call', { padding: 'x'.repeat(4 * 1024 * 1024) }));
    const replies = Array.from({ length: 16 }, () => serve(adopting, text));
    expect(replies.map(({ given }) => given).filter((given) => given !== undefined)).toEqual([
      { kind: 'fault', reason: 'server_busy', id: null },
    ]);
    await vi.waitFor(() => expect(posts).toHaveLength(15));
    serve({ ...adopting, key: 'released too' }, text);
    await vi.waitFor(() => expect(posts).toHaveLength(16));
  });

  it('[C-10] is answered if something throws', async () => {
    const { serve } = createFixture();
    const faults: string[] = [];
    onTestFinished(reportFaultsTo((seam) => void faults.push(seam)));
    const reply = serve(adopting, 'no');
    await vi.waitFor(() => expect(reply.given).toEqual({ kind: 'fault', reason: 'internal', id: null }));
    expect(faults).toEqual(['cluster']);
  });
});

describe('requests of other instances', () => {
  it('[P1] of a POST reach the session as they were sent, one message or an array of them', () => {
    const { posts, serve } = createFixture();
    const texts = [JSON.stringify(request('ü')), `{"jsonrpc": "2.0", "method":"x","params":{"n":1e400}}`];
    serve({ kind: 'post', key: 'k', request: facts, again: true, isBatch: true }, `[${texts.join()}]`);
    serve({ kind: 'post', key: 'k', request: facts, group: {} }, `[${texts.join()}]`);
    serve({ kind: 'post', key: 'k', request: facts, group: { endsUnused: true } });
    serve({ kind: 'post', key: 'k', request: facts, group: { keeps: 7 } });
    serve({ kind: 'post', key: 'k', request: facts }, JSON.stringify(note(1)));
    expect(posts.map(({ post: { messages, ...rest } }) => [messages.map(({ text }) => text.toString()), rest])).toEqual(
      [
        [texts, { isBatch: true, again: true }],
        [texts, { isBatch: false, again: false, group: {} }],
        [[], { isBatch: false, again: false, group: { endsUnused: true } }],
        [[], { isBatch: false, again: false, group: { keeps: 7 } }],
        [[JSON.stringify(note(1))], { isBatch: false, again: false }],
      ],
    );
  });

  it('of a GET and a DELETE reach the session too', () => {
    const { listens, serve } = createFixture();
    const replies = [
      serve({ kind: 'listen', key: 'k', request: facts, after: '3.5-7~1' }),
      serve({ kind: 'listen', key: 'k', request: facts }),
      serve({ kind: 'remove', key: 'k', request: facts }),
    ];
    expect(listens).toEqual([{ stream: 3, epoch: 5, seq: 7, requests: '~1' }, undefined]);
    expect(replies.map(({ given }) => given?.kind)).toEqual(['stream', 'stream', 'removed']);
  });

  it('to open a session here are served, or denied if another instance has to', () => {
    const { serve } = createFixture();
    const principal = { issuer: '', subject: '', client: '' };
    const opened = ['s', 'other'].map((server) =>
      serve(
        { kind: 'post', key: 'new', request: facts, opens: { server, digest: 'd', principal } },
        JSON.stringify(request(1, 'initialize')),
      ),
    );
    expect(opened.map(({ given, denials }) => [given?.kind, denials])).toEqual([
      ['json', []],
      [undefined, ['moved']],
    ]);
  });

  it('[C-06] for a session that is not held here are denied, with the state of one that is ending or opening', () => {
    const { serve } = createFixture();
    const denials = ['ending', 'other'].map((key) => serve({ kind: 'listen', key, request: facts }).denials);
    expect(denials).toEqual([['ending'], ['moved']]);
  });

  it('that are malformed are a fault of the other instance', () => {
    const { serve } = createFixture();
    for (const body of ['abc', '[{"jsonrpc":"2.0"}]'])
      expect(() => serve({ kind: 'post', key: 'k', request: facts }, body)).toThrow('no message');
  });
});
