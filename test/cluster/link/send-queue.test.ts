import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { DirectChannel, DirectSender } from '../../../src/cluster/link/direct-connection.ts';
import { type SendOutcome, SendQueue } from '../../../src/cluster/link/send-queue.ts';
import { StoreUnavailable } from '../../../src/store/store-unavailable.ts';
import { createFakeInstances, type PostCall } from '../two-instances/fake-instances.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));

const away = (): StoreUnavailable => new StoreUnavailable('unreachable');

interface FixtureOptions {
  readonly maxBytes?: number;
  direct?(): DirectChannel | undefined;
}

function createFixture({ maxBytes = 1_000, direct = () => undefined }: FixtureOptions = {}) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const instances = createFakeInstances();
  const controller = new AbortController();
  const outbox = new SendQueue({
    instances,
    from: 'me',
    to: 'you',
    first: 1,
    maxBytes,
    signal: controller.signal,
    direct,
  });
  const outcomes: Record<string, SendOutcome> = {};
  const send = (text: string, waitMs?: number): void => {
    void outbox.send([Buffer.from(text)], waitMs).then((posted) => {
      outcomes[text.slice(0, 10)] = posted;
    });
  };
  const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  const post = (n: number): PostCall => {
    const call = instances.posts[n];
    if (call === undefined) throw new Error(`there is no post ${n}`);
    return call;
  };
  const answer = async (n: number, posted: 'posted' | 'full' | 'gone'): Promise<void> => {
    post(n).answer(posted);
    await pass();
  };
  const posts = () => instances.posts.map(({ first, contents }) => [first, ...contents]);
  return { outbox, controller, send, outcomes, post, posts, pass, answer };
}

describe('messages in the send queue to another instance', () => {
  it('of one tick are sent together in order, and later ones in the next send with the next numbers', async () => {
    const { send, outcomes, post, posts, pass, answer } = createFixture();
    send('a');
    send('b');
    expect(posts()).toEqual([]);
    await pass();
    send('c');
    send('d');
    await pass();
    expect([posts(), outcomes]).toEqual([[[1, 'a', 'b']], {}]);
    expect([post(0).name, post(0).from]).toEqual(['you', 'me']);
    await answer(0, 'posted');
    await answer(1, 'posted');
    send('e');
    await pass();
    expect(posts()).toEqual([
      [1, 'a', 'b'],
      [3, 'c', 'd'],
      [5, 'e'],
    ]);
    expect(outcomes).toEqual({ a: 'posted', b: 'posted', c: 'posted', d: 'posted' });
  });

  it('[P8] are sent in batches of at most one megabyte, and a larger one is sent alone', async () => {
    const { send, posts, pass, answer } = createFixture({ maxBytes: 10_000_000 });
    for (const letter of ['a', 'b', 'c', 'd']) send(letter.repeat(letter === 'c' ? 2_000_000 : 600_000));
    await pass();
    for (let n = 0; n < 4; n++) await answer(n, 'posted');
    expect(posts().map(([first, ...contents]) => [first, ...contents.map((text) => String(text)[0])])).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
      [4, 'd'],
    ]);
  });

  it('[U-07] report the number of their last part, unless they may have been sent twice', async () => {
    const { outbox, post, pass, answer } = createFixture();
    const numbers: [string, number][] = [];
    const send = (...parts: string[]) =>
      void outbox.send(
        parts.map((part) => Buffer.from(part)),
        undefined,
        false,
        (number) => numbers.push([parts.join(), number]),
      );
    send('a');
    send('b', 'c');
    await pass();
    await answer(0, 'posted');
    expect(numbers).toEqual([
      ['a', 1],
      ['b,c', 3],
    ]);
    send('d');
    await pass();
    post(1).fail(away());
    await pass(10_000);
    await answer(2, 'posted');
    send('e');
    await pass();
    await answer(3, 'posted');
    expect(numbers.slice(2)).toEqual([['e', 5]]);
  });

  it('[P7] are sent again under the same numbers while the store is away', async () => {
    const { send, outcomes, post, posts, pass, answer } = createFixture();
    send('a');
    await pass();
    post(0).fail(away());
    await pass(1_000);
    send('b');
    post(1).fail(away());
    await pass(1_000);
    expect([posts(), outcomes]).toEqual([
      [
        [1, 'a'],
        [1, 'a'],
        [1, 'a'],
      ],
      {},
    ]);
    await answer(2, 'posted');
    expect(posts().at(-1)).toEqual([2, 'b']);
  });

  it('wait for room up to their limit, and leave no gap in the numbers', async () => {
    const { send, outcomes, posts, pass, answer } = createFixture();
    send('patient');
    send('hasty', 50);
    await pass();
    await answer(0, 'full');
    expect(outcomes).toEqual({});
    await pass(10);
    await answer(1, 'full');
    await pass(100);
    await answer(2, 'full');
    expect(outcomes).toEqual({ hasty: 'full' });
    await pass(250);
    send('next');
    await answer(3, 'posted');
    await pass();
    expect(outcomes).toEqual({ hasty: 'full', patient: 'posted' });
    expect(posts()).toEqual([...[1, 2, 3].map(() => [1, 'patient', 'hasty']), [1, 'patient'], [2, 'next']]);
  });

  it('in parts are dropped together, or not at all once a part has arrived', async () => {
    const { outbox, posts, pass, answer } = createFixture({ maxBytes: 10_000_000 });
    const outcomes: string[] = [];
    const part = (letter: string): Buffer => Buffer.alloc(300 * 1024, letter);
    const send = (letters: string): void =>
      void outbox.send([...letters].map(part), 100).then((posted) => outcomes.push(`${letters[0]} ${posted}`));
    send('abc');
    send('de');
    await pass();
    await answer(0, 'posted'); // one part fits into a post
    for (let n = 1; n <= 10; n++) {
      await answer(n, 'full');
      await pass(250);
    }
    expect(outcomes).toEqual(['d full']);
    for (const n of [11, 12]) await answer(n, 'posted');
    await pass();
    expect(outcomes).toEqual(['d full', 'a posted']);
    const sent = [0, 11, 12].map((n) => posts()[n]).map((post) => [post?.[0], String(post?.[1])[0], post?.length]);
    expect(sent).toEqual([
      [1, 'a', 2],
      [2, 'b', 2],
      [3, 'c', 2],
    ]);
  });

  it('[P8] over the limit of bytes are refused at once, and fit again when others are sent', async () => {
    const { send, outcomes, pass, answer } = createFixture({ maxBytes: 10 });
    send('123456');
    send('12345');
    send('1234');
    await pass();
    expect(outcomes).toEqual({ 12345: 'full' });
    await answer(0, 'posted');
    send('x'.repeat(100)); // nothing else waits: one letter is taken whatever its size
    await pass();
    expect(outcomes).toEqual({ 12345: 'full', 123456: 'posted', 1234: 'posted' });
  });

  it('[P8] that report a loss are sent above the limit, but not twice in a row', async () => {
    const { outbox, send, posts, pass, answer } = createFixture({ maxBytes: 10 });
    const notify = (text: string): Promise<SendOutcome> => outbox.send([Buffer.from(text)], undefined, true);
    send('1234567890');
    await pass();
    const outcomes = ['hole', 'hole', 'hello', 'hole', 'hole'].map(notify);
    await answer(0, 'posted');
    notify('hole'); // the one before is being sent, so this one reports a later loss
    await answer(1, 'posted');
    await answer(2, 'posted');
    expect(posts()).toEqual([
      [1, '1234567890'],
      [2, 'hole', 'hello', 'hole'],
      [5, 'hole'],
    ]);
    expect(await Promise.all(outcomes)).toEqual(['posted', 'full', 'posted', 'posted', 'full']);
  });

  it('to a dead instance are reported as never received, and so is every later one', async () => {
    const { outbox, send, outcomes, posts, pass, answer } = createFixture();
    send('a');
    await pass();
    send('b');
    await answer(0, 'gone');
    send('c');
    await pass(1_000);
    expect([outcomes, posts().length, outbox.isClosed]).toEqual([{ a: 'gone', b: 'gone', c: 'gone' }, 1, true]);
  });

  it('are reported as possibly received if the store stays away or fails, and those behind as never received', async () => {
    for (const cause of [away(), new Error('wrong type')]) {
      const { controller, outbox, send, outcomes, post, pass } = createFixture();
      send('a');
      await pass();
      send('b');
      post(0).fail(cause);
      await pass();
      controller.abort();
      await pass(10_000);
      expect([outcomes, outbox.isClosed]).toEqual([{ a: 'lost', b: 'gone' }, true]);
    }
  });

  it('that wait when the queue is closed are not sent, while those in flight settle by themselves', async () => {
    const { outbox, send, outcomes, posts, pass, answer } = createFixture();
    send('a');
    await pass();
    send('b');
    outbox.close();
    await pass();
    expect(outcomes).toEqual({ b: 'gone' });
    await answer(0, 'posted');
    await pass(1_000);
    expect([outcomes, posts()]).toEqual([{ a: 'posted', b: 'gone' }, [[1, 'a']]]);
  });

  it('that wait for room when the queue is closed are not sent', async () => {
    const { outbox, send, outcomes, posts, pass, answer } = createFixture();
    send('a');
    await pass();
    await answer(0, 'full');
    outbox.close();
    await pass(10_000);
    expect([outcomes, posts()]).toEqual([{ a: 'gone' }, [[1, 'a']]]);
  });

  it('[P3] are possibly received if the queue closes at a full mailbox after an unanswered send', async () => {
    const { outbox, send, outcomes, post, pass, answer } = createFixture();
    send('unsure');
    await pass();
    send('behind');
    post(0).fail(away());
    await pass(1_000);
    await answer(1, 'full');
    outbox.close();
    await pass(10_000);
    expect(outcomes).toEqual({ unsure: 'lost', behind: 'gone' });
  });

  it('[P3] are never received if the queue closes and the mailbox is full at the first send', async () => {
    const { outbox, send, outcomes, pass, answer } = createFixture();
    send('a');
    await pass();
    outbox.close();
    await answer(0, 'full');
    await pass(10_000);
    expect(outcomes).toEqual({ a: 'gone' });
  });
});

/** A direct connection of which a test decides everything. */
function createFakeChannel() {
  let sender: DirectSender | undefined;
  const sent: [number, ...string[]][] = [];
  const starts: number[] = [];
  const channel = {
    hasRoom: true,
    isOpen: true,
    use(next: DirectSender, number: number) {
      sender = next;
      starts.push(number);
    },
    release() {
      sender = undefined;
    },
    send: (first: number, contents: readonly Buffer[]) =>
      void sent.push([first, ...contents.map((content) => content.toString())]),
  };
  const end = (refusedFrom?: number): void => {
    const ended = sender;
    sender = undefined;
    channel.isOpen = refusedFrom !== undefined;
    ended?.onEnded(refusedFrom);
  };
  return { channel, sent, starts, end, acknowledge: (number: number) => sender?.onAcknowledged(number) };
}

describe('messages in the send queue over a direct connection', () => {
  function createDirect(maxBytes = 10_000_000) {
    const fake = createFakeChannel();
    const fixture = createFixture({ maxBytes, direct: () => (fake.channel.isOpen ? fake.channel : undefined) });
    return { ...fixture, ...fake };
  }

  it('go there at once, before earlier ones are acknowledged, and nothing goes into the mailbox', async () => {
    const { send, sent, outcomes, posts, pass, acknowledge } = createDirect();
    send('a');
    send('b');
    await pass();
    send('c');
    await pass();
    expect([sent, outcomes]).toEqual([
      [
        [1, 'a', 'b'],
        [3, 'c'],
      ],
      {},
    ]);
    acknowledge(2);
    await pass();
    expect(outcomes).toEqual({ a: 'posted', b: 'posted' });
    acknowledge(3);
    await pass();
    expect([outcomes, posts()]).toEqual([{ a: 'posted', b: 'posted', c: 'posted' }, []]);
  });

  it('[P8] wait while the window of the connection is full', async () => {
    const { send, sent, channel, pass, acknowledge } = createDirect();
    send('a');
    await pass();
    channel.hasRoom = false;
    send('b');
    await pass();
    expect(sent).toEqual([[1, 'a']]);
    channel.hasRoom = true;
    acknowledge(1);
    expect(sent).toEqual([
      [1, 'a'],
      [2, 'b'],
    ]);
  });

  it('[P3] go into the mailbox under the same numbers if the connection breaks, and are then never withdrawn', async () => {
    const { outbox, outcomes, send, posts, pass, answer, end, acknowledge } = createDirect();
    const numbers: number[] = [];
    send('arrived');
    await pass();
    void outbox.send([Buffer.from('unsure')], undefined, false, (number) => void numbers.push(number));
    await pass();
    acknowledge(1);
    end();
    void outbox.send([Buffer.from('new')], undefined, false, (number) => void numbers.push(number));
    await pass();
    await answer(0, 'posted');
    await answer(1, 'posted');
    expect(posts()).toEqual([
      [2, 'unsure'],
      [3, 'new'],
    ]);
    expect([outcomes, numbers]).toEqual([{ arrived: 'posted' }, [3]]);
  });

  it('[P3] that were under way to a dead instance may have been received, and later ones were not', async () => {
    const { send, outcomes, pass, answer, end } = createDirect();
    send('unsure');
    await pass();
    end();
    send('new');
    await pass();
    await answer(0, 'gone');
    expect(outcomes).toEqual({ unsure: 'lost', new: 'gone' });
  });

  it('[P3] that were refused were not received, and go into the mailbox; later ones use the connection again', async () => {
    const { send, sent, starts, outcomes, posts, pass, answer, end } = createDirect();
    send('a');
    await pass();
    end(1);
    await pass();
    await answer(0, 'posted');
    send('soon');
    await pass();
    await answer(1, 'posted');
    await pass(100);
    send('later');
    await pass();
    expect(posts()).toEqual([
      [1, 'a'],
      [2, 'soon'],
    ]);
    expect([sent, starts, outcomes]).toEqual([
      [
        [1, 'a'],
        [3, 'later'],
      ],
      [1, 3],
      { a: 'posted', soon: 'posted' },
    ]);
  });

  it('[P3] that were refused by a dead instance were never received', async () => {
    const { send, outcomes, pass, answer, end } = createDirect();
    send('a');
    await pass();
    end(1);
    await pass();
    await answer(0, 'gone');
    expect(outcomes).toEqual({ a: 'gone' });
  });

  it('of which a part has arrived are not given up for want of room', async () => {
    const { outbox, outcomes, send, pass, answer, end, acknowledge } = createDirect();
    const whole = outbox.send([Buffer.alloc(400_000), Buffer.alloc(400_000)], 50);
    send('patient');
    await pass();
    acknowledge(1);
    end(2);
    await pass();
    for (let n = 0; n < 5; n += 1) {
      await answer(n, 'full');
      await pass(250);
    }
    await answer(5, 'posted');
    expect([await whole, outcomes]).toEqual(['posted', { patient: 'posted' }]);
  });

  it('may have been received if the queue is closed', async () => {
    const { outbox, send, outcomes, posts, pass } = createDirect();
    send('a');
    await pass();
    outbox.close();
    await pass();
    expect([outcomes, posts()]).toEqual([{ a: 'lost' }, []]);
  });
});
