import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { PeerLink } from '../../../src/cluster/link/peer-link.ts';
import { decodePeerMessage, encodePeerMessage, type PeerMessageHead } from '../../../src/cluster/link/peer-messages.ts';
import type { Instances } from '../../../src/store/instances.ts';
import { reportFaultsTo } from '../../../src/util/boundary.ts';
import { createFakeInstances } from '../two-instances/fake-instances.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));

const listen: PeerMessageHead = {
  kind: 'listen',
  n: 1,
  key: 'k',
  request: { accepts: { json: true, sse: true } },
  continues: false,
};

type OnLetter = (from: string, head: PeerMessageHead, body: Buffer) => void;

function createFixture(onLetter?: OnLetter) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const instances = createFakeInstances();
  const names = { now: 'me' };
  const letters: string[] = [];
  const losses: string[] = [];
  const misread: [string, unknown, string][] = [];
  const mail = new PeerLink({
    instances,
    name: () => names.now,
    requestWaitMs: 1_000,
    mailboxMaxBytes: 100_000,
    onMessage: onLetter ?? ((from, head, body) => void letters.push(`${from} ${head.kind} ${body}`)),
    onUnreadable: (from, { n }, why) => void misread.push([from, n, why]),
    onLoss: (peer) => void losses.push(peer),
  });
  onTestFinished(() => mail.close());
  const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  const take = (number: number, head: PeerMessageHead = { kind: 'accepted', n: number }, from = 'peer'): void =>
    mail.receive({ from, number, content: encodePeerMessage(head) });
  const posts = () =>
    instances.posts.map(({ name, from, first, contents }) => [
      name,
      from,
      first,
      ...contents.map((content) => decodePeerMessage(Buffer.from(content)).head.kind),
    ]);
  return { mail, instances, names, letters, losses, misread, pass, take, posts };
}

describe('a peer message on the link', () => {
  it('is numbered for each receiver, in order', async () => {
    const { mail, instances, posts, pass } = createFixture();
    for (const to of ['a', 'b', 'a']) void mail.send(to, { kind: 'gone', n: 1 });
    await pass();
    for (const post of instances.posts) post.answer('posted');
    await pass();
    void mail.send('a', { kind: 'hello' });
    await pass();
    expect(posts()).toEqual([
      ['a', 'me', 1, 'gone', 'gone'],
      ['b', 'me', 1, 'gone'],
      ['a', 'me', 3, 'hello'],
    ]);
  });

  it('[C-10] of an unknown version, or whose handler throws, is reported, and the next one is taken', () => {
    const reported: unknown[] = [];
    onTestFinished(reportFaultsTo((seam) => void reported.push(seam)));
    const { mail, misread, letters, take } = createFixture((from, head) => {
      if (head.kind === 'cut') throw new Error('a slip');
      letters.push(`${from} ${head.kind}`);
    });
    const newer = Buffer.from('{"v":3,"kind":"json","n":5}');
    mail.receive({ from: 'peer', number: 1, content: Buffer.concat([Buffer.from([0, 0, 0, newer.length]), newer]) });
    take(2, { kind: 'cut', n: 6 });
    take(3, { kind: 'finish', n: 7 });
    expect(misread).toEqual([
      ['peer', 5, 'version'],
      ['peer', 6, 'fault'],
    ]);
    expect([letters, reported]).toEqual([['peer finish'], ['cluster']]);
  });

  it('[C-10] of an unknown version is reported also if it came in parts', () => {
    const { mail, misread, losses } = createFixture();
    const ofVersion2 = (head: object, body: Buffer = Buffer.alloc(0)): Buffer => {
      const text = Buffer.from(JSON.stringify({ v: 3, ...head }));
      const length = Buffer.alloc(4);
      length.writeUInt32BE(text.length);
      return Buffer.concat([length, text, body]);
    };
    const whole = ofVersion2({ kind: 'post', n: 7, key: 'k' }, Buffer.alloc(100));
    const parts = [whole.subarray(0, 60), whole.subarray(60)];
    for (const [index, part] of parts.entries())
      mail.receive({
        from: 'peer',
        number: index + 1,
        content: ofVersion2({ kind: 'part', index, isLast: index === 1 }, part),
      });
    mail.receive({ from: 'peer', number: 3, content: ofVersion2({ kind: 'hole' }) });
    expect([misread, losses]).toEqual([[['peer', 7, 'version']], ['peer']]);
  });

  it('[C-10] that is malformed is reported to its sender as a gap, after a pause', async () => {
    const reported: unknown[] = [];
    onTestFinished(reportFaultsTo((seam) => void reported.push(seam)));
    const { mail, posts, pass } = createFixture();
    mail.receive({ from: 'peer', number: 1, content: Buffer.from('\0\0\0\x05{"no') });
    await pass(999);
    expect(posts()).toEqual([]);
    await pass(1);
    expect([posts(), reported]).toEqual([[['peer', 'me', 1, 'hole']], ['cluster']]);
  });

  it('of a client waits for room for a limited time, while an answer waits without limit', async () => {
    const { mail, instances, pass } = createFixture();
    const outcomes: string[] = [];
    void mail.send('a', { kind: 'finish', n: 1 }).then((posted) => outcomes.push(`finish ${posted}`));
    void mail.send('a', listen).then((posted) => outcomes.push(`listen ${posted}`));
    for (let n = 0; n < 40; n++) {
      await pass(250);
      instances.posts[n]?.answer('full');
    }
    await pass();
    expect(outcomes).toEqual(['listen full']);
  });

  it('is taken once, in order', () => {
    const { letters, losses, take } = createFixture();
    for (const number of [1, 2, 2, 1, 3]) take(number);
    take(1, { kind: 'accepted', n: 1 }, 'other');
    expect(letters).toEqual(['peer accepted ', 'peer accepted ', 'peer accepted ', 'other accepted ']);
    expect(losses).toEqual([]);
  });

  it('after a gap has that gap reported once to both sides, before it is taken', async () => {
    const { letters, losses, take, posts, pass } = createFixture();
    take(1);
    take(4);
    take(5);
    await pass();
    expect([letters.length, losses, posts()]).toEqual([3, ['peer'], [['peer', 'me', 1, 'hole']]]);
  });

  it('that is the first to arrive after a gap has that gap reported too', () => {
    const { losses, take } = createFixture();
    take(2);
    expect(losses).toEqual(['peer']);
  });

  it('reports lost messages of this instance', () => {
    const { letters, losses, take } = createFixture();
    take(1, { kind: 'hole' });
    expect([letters, losses]).toEqual([[], ['peer']]);
  });

  describe('if it is large', () => {
    /** What a mail of 700 KiB is put into mailboxes as. */
    const largeLetters = async (): Promise<{ body: Buffer; contents: readonly Buffer[] }> => {
      const contents: Buffer[] = [];
      const instances = createFakeInstances();
      const post: Instances['enqueue'] = async (_to, _from, _first, more) => {
        contents.push(...more);
        return 'posted';
      };
      const mail = new PeerLink({
        instances: { ...instances, enqueue: post },
        name: () => 'peer',
        requestWaitMs: 1_000,
        mailboxMaxBytes: 10_000_000,
        onMessage: () => undefined,
        onUnreadable: (_, head) => expect.fail(`misread ${head.kind}`),
        onLoss: () => undefined,
      });
      const body = Buffer.from(Array.from({ length: 700 * 1024 }, (_, n) => n % 251));
      expect(await mail.send('me', { kind: 'json', n: 7 }, [body])).toBe('posted');
      return { body, contents };
    };

    it('is sent in parts of about 256 KiB, and is the same when assembled', async () => {
      const taken: { from: string; head: PeerMessageHead; body: Buffer }[] = [];
      const { mail } = createFixture((from, head, body) => void taken.push({ from, head, body }));
      const { body, contents } = await largeLetters();
      expect(contents).toHaveLength(3);
      for (const content of contents) expect(content.length).toBeLessThan(257 * 1024);
      for (const [index, content] of contents.entries()) {
        mail.receive({ from: 'peer', number: index + 1, content });
        mail.receive({ from: 'peer', number: index + 1, content }); // a repeat
        mail.receive({ from: 'other', number: index + 1, content: encodePeerMessage({ kind: 'gone', n: index }) });
      }
      const [whole] = taken.filter(({ from }) => from === 'peer');
      expect(whole?.head).toEqual({ kind: 'json', n: 7 });
      expect(whole?.body.equals(body)).toBe(true);
      expect(taken).toHaveLength(4);
    });

    it('is dropped if any of its parts is lost, and the next message is taken', async () => {
      const { contents } = await largeLetters();
      for (const missing of [0, 1, 2]) {
        const { mail, letters, losses } = createFixture();
        for (const [index, content] of contents.entries()) {
          if (index !== missing) mail.receive({ from: 'peer', number: index + 1, content });
        }
        mail.receive({ from: 'peer', number: 4, content: encodePeerMessage({ kind: 'accepted', n: 8 }) });
        expect([letters, losses]).toEqual([['peer accepted '], ['peer']]);
      }
    });

    it('[C-11] [P8] is forgotten with its sender, which the link names until then, and with the instance name that it was sent to', async () => {
      const { contents } = await largeLetters();
      for (const end of ['forget', 'restart'] as const) {
        const { mail, letters } = createFixture();
        mail.receive({ from: 'peer', number: 1, content: contents[0] as Buffer });
        expect(mail.peers).toEqual(['peer']);
        mail[end]('peer');
        expect(mail.peers).toEqual([]);
        mail.receive({ from: 'peer', number: 1, content: contents[1] as Buffer });
        mail.receive({ from: 'peer', number: 2, content: contents[2] as Buffer });
        expect(letters).toEqual([]);
      }
    });
  });

  it('is followed by a greeting to each receiver, so that a gap shows', async () => {
    const { mail, instances, posts, pass } = createFixture();
    mail.sendHello();
    void mail.send('a', { kind: 'gone', n: 1 });
    await pass();
    instances.posts[0]?.answer('posted');
    await pass();
    mail.sendHello();
    await pass();
    expect(posts()).toEqual([
      ['a', 'me', 1, 'gone'],
      ['a', 'me', 2, 'hello'],
    ]);
  });

  it('is numbered from the start under a new instance name, in both directions', async () => {
    const { mail, instances, names, letters, losses, take, posts, pass } = createFixture();
    void mail.send('a', { kind: 'gone', n: 1 });
    await pass();
    instances.posts[0]?.answer('posted');
    await pass();
    take(1);
    names.now = 'me too';
    mail.restart();
    void mail.send('a', { kind: 'gone', n: 2 });
    take(1);
    await pass();
    expect(posts().at(-1)).toEqual(['a', 'me too', 1, 'gone']);
    expect([letters.length, losses]).toEqual([2, []]);
  });

  // The store hands out again what was not freed, and a call that its ingress asked for would be run twice.
  it('[P3] of an ended instance is not sent, and is not taken twice', async () => {
    const { mail, letters, take, pass } = createFixture();
    const waiting = mail.send('peer', { kind: 'gone', n: 1 });
    take(1);
    mail.forget('peer');
    take(1);
    await pass();
    expect([await waiting, letters.length]).toEqual(['gone', 1]);
  });

  it('[P4] has no number again that a peer knows, even if the peer seemed dead for a while', async () => {
    const { mail, instances, posts, pass } = createFixture();
    void mail.send('peer', { kind: 'gone', n: 1 });
    await pass();
    instances.posts[0]?.answer('posted');
    await pass();
    mail.forget('peer');
    void mail.send('peer', { kind: 'gone', n: 2 });
    void mail.send('another', { kind: 'gone', n: 2 });
    await pass();
    expect(posts().slice(1)).toEqual([
      ['peer', 'me', 2, 'gone'],
      ['another', 'me', 1, 'gone'],
    ]);
  });

  it('[P8] is remembered for the last thousand senders', () => {
    const { letters, losses, take } = createFixture();
    take(1, listen, 'busy');
    take(1, listen, 'lost long ago');
    take(2, listen, 'busy');
    for (let n = 0; n < 998; n++) take(1, listen, `${n}`);
    expect(letters).toHaveLength(1_001);
    take(2, listen, 'busy');
    take(1, listen, 'lost long ago');
    expect(letters).toHaveLength(1_001);
    take(1, listen, 'one more');
    take(1, listen, '1');
    expect(letters).toHaveLength(1_002);
    take(1, listen, 'lost long ago');
    expect([letters.length, losses]).toEqual([1_003, []]);
  });

  it('is not sent after the link is closed', async () => {
    const { mail, posts, pass } = createFixture();
    const waiting = mail.send('a', { kind: 'gone', n: 1 });
    mail.close();
    await pass(10_000);
    expect([await waiting, posts()]).toEqual(['gone', []]);
  });

  // Its receiver would drop all of it as repeats.
  it('is never numbered from the start again for the same receiver, whatever the store does', async () => {
    const { mail, instances, posts, pass } = createFixture();
    for (const text of [1, 2]) {
      void mail.send('a', { kind: 'gone', n: text });
      await pass();
      if (text === 1) instances.posts[0]?.answer('posted');
      else instances.posts[1]?.fail(new Error('wrong type'));
      await pass();
    }
    void mail.send('a', { kind: 'gone', n: 3 });
    await pass();
    expect(posts().at(-1)?.[2]).toBeGreaterThan(2);
  });

  it('[C-11] [P8] is numbered for a thousand receivers, and a forgotten receiver mistakes no later message for a repeat', async () => {
    const { mail, instances, posts, pass } = createFixture();
    const send = async (to: string): Promise<void> => {
      void mail.send(to, { kind: 'gone', n: 1 });
      await pass();
      instances.posts.at(-1)?.answer('posted');
      await pass();
    };
    for (let n = 0; n < 5; n += 1) await send('early');
    await send('busy');
    for (let n = 0; n < 999; n += 1) await send(`${n}`);
    expect(mail.peers).toHaveLength(1_000);
    expect(mail.peers).not.toContain('early');
    await send('busy');
    await send('early');
    expect(mail.peers).toHaveLength(1_000);
    expect(mail.peers).toContain('busy');
    const [toBusy, toEarly] = posts().slice(-2);
    expect([toBusy?.[2], toEarly?.[2]]).toEqual([2, 6]);
  });

  it('leads to one greeting for each receiver', async () => {
    const { mail, posts, pass } = createFixture();
    for (const to of ['a', 'b']) void mail.send(to, { kind: 'gone', n: 1 });
    mail.sendHello();
    await pass();
    expect(posts().map(([to, , , ...kinds]) => [to, ...kinds])).toEqual([
      ['a', 'gone', 'hello'],
      ['b', 'gone', 'hello'],
    ]);
  });
});
