import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { BackendEnd } from '../../../../src/core/backend/backend.ts';
import type { Handshake } from '../../../../src/core/protocol/handshake.ts';
import { createMessage, type Message } from '../../../../src/core/protocol/message/message.ts';
import type { Server } from '../../../../src/core/server/server.ts';
import { ServerLink } from '../../../../src/core/session/server/server-link.ts';
import type { SessionTelemetry } from '../../../../src/core/session/session-events.ts';
import { asMessage } from '../../../support/as-message.ts';
import { createFakeAnswer } from '../../../support/fake-answer.ts';
import { createFakeServer, type FakeBackend, readMessage } from '../../../support/fake-backend.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';
import { createCore, silentEvents } from '../core-fixture.ts';
import { openSessions } from '../open-sessions.ts';
import { createServer, silentTelemetry } from '../session-fixture.ts';

const epoch = 5;
const handshake: Handshake = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
const initialize = { jsonrpc: '2.0', id: 'init', method: 'initialize' };
const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
const welcome = { jsonrpc: '2.0', id: 'init', result: handshake };
const message = (n: number | string): Message => createMessage({ method: 'x', params: { n } });
const note = (n: number | string) => JSON.parse(message(n).text.toString());

/** An upstream whose losses are always restored, on a clock that the test moves. */
function createFixture({
  maxQueuedBytes = 1_000,
  answers = true,
  isAdopted = false,
  isRemote = false,
  isInitialized = true,
  isOwner = (): boolean => true,
  server: fields = {} as Partial<Server>,
} = {}) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const lines: string[] = [];
  const losses: BackendEnd[] = [];
  const away: BackendEnd[] = [];
  const expired: Message[] = [];
  const expiredFor: string[] = [];
  const unanswered: object[] = [];
  const onRestored = vi.fn();
  const fake = createFakeServer((sent, backend) => {
    if (answers && sent['method'] === 'initialize') backend.says(welcome);
  });
  const { server } = createServer({ open: fake.open, startTimeoutMs: 10_000, isRemote, ...fields });
  const emit: SessionTelemetry['emit'] = (event) => event.type === 'backend-ended' && away.push(event.end);
  const { session, ends: givenUp } = createCore({
    limits: { maxQueuedBytes: 2 * maxQueuedBytes },
    parts: { server, isOwner, telemetry: { ...silentTelemetry, emit } },
    start: { epoch, initialize: Buffer.from(JSON.stringify(initialize)) },
  });
  const { client } = session;
  session.handshake = handshake;
  if (isInitialized) client.noteSent(readMessage(initialized));
  if (isAdopted) Object.assign(session, { earlier: { tails: new Map(), newestStream: 0, pending: [] } });
  vi.spyOn(session, 'fail').mockImplementation((cause) => expect.fail(String(cause)));
  const upstream = new ServerLink(session);
  upstream.events = {
    ...silentEvents,
    onMessages: (some) => void lines.push(...some.map(({ text }) => text.toString())),
    onNoise: (text) => void lines.push(text.toString()),
    onLost: (end) => {
      losses.push(end);
      upstream.restore();
    },
    onUnanswered: (ids, reason, isFinal) => void unanswered.push({ ids, reason, isFinal }),
    onUnsent(unsent, reason) {
      expired.push(unsent);
      expiredFor.push(reason);
    },
    onRestored,
  };
  if (!isAdopted) upstream.open();
  const sent = ({ sent: { items } }: FakeBackend): unknown[] => [...items];
  const told = { lines, losses, givenUp, away, expired, expiredFor, unanswered, onRestored };
  return { upstream, fake, client, session, ...told, sent, pass: vi.advanceTimersByTimeAsync };
}

describe('a backend that hibernates', () => {
  it('is closed without counting as lost, and is restored for the next message, which waits', async () => {
    const { upstream, fake, losses, sent, onRestored, pass } = createFixture({ answers: false });
    const first = fake.backend;
    upstream.hibernate();
    expect([first.isClosed, upstream.pid, losses]).toEqual([true, undefined, []]);
    await pass(60_000);
    expect(fake.backend).toBe(first);
    expect(upstream.send(message(1))).toBe('sent');
    await pass(0);
    expect(fake.backend).not.toBe(first);
    fake.backend.says(welcome);
    expect(sent(fake.backend)).toEqual([initialize, initialized, note(1)]);
    expect([upstream.incarnation, onRestored.mock.calls.length]).toEqual([`${epoch}-1`, 1]);
    expect(upstream.restoration).toEqual({ isWaking: true, losses: 0 });
    fake.backend.ends();
    await pass(0);
    fake.backend.says(welcome);
    expect(upstream.restoration).toMatchObject({ isWaking: false, losses: 1 });
  });

  it('[P8] is never in a crash loop by waking often, but by failing to start', async () => {
    const { upstream, fake, givenUp, pass } = createFixture();
    for (let n = 0; n < 20; n++) {
      upstream.hibernate();
      upstream.send(message(n));
      await pass(0);
      expect(upstream.state).toBe('live');
    }
    for (let n = 0; n < 6; n++) {
      fake.backend.ends();
      await pass(2_000);
    }
    expect(givenUp).toEqual(['crash_loop']);
  });

  it('is not started again before the last process is gone', async () => {
    const { upstream, fake, pass } = createFixture();
    const first = fake.backend;
    const gone = first.holdClose();
    upstream.hibernate();
    upstream.send(message(1));
    await pass(1_000);
    expect(fake.backend).toBe(first);
    gone();
    await pass(0);
    expect(fake.backend).not.toBe(first);
  });
});

describe('a lost backend', () => {
  it('[F12] is replaced at once by one that gets initialize, then the rest of the replay, then the waiting messages', async () => {
    const { upstream, fake, client, sent, onRestored, pass } = createFixture({ answers: false });
    client.noteAnswered('logging/setLevel', Buffer.from('{"jsonrpc":"2.0","id":3,"method":"logging/setLevel"}'), {
      isError: false,
    });
    expect([upstream.incarnation, upstream.pid]).toEqual(['', 1000]);
    fake.backend.ends();
    for (const n of [1, 2]) expect(upstream.send(message(n))).toBe('sent');
    await pass(0);
    expect(sent(fake.backend)).toEqual([initialize]);
    fake.backend.says(welcome);
    expect(sent(fake.backend).slice(1)).toEqual([
      initialized,
      { jsonrpc: '2.0', id: expect.any(Number), method: 'logging/setLevel' },
      note(1),
      note(2),
    ]);
    expect([upstream.incarnation, upstream.pid]).toEqual([`${epoch}-1`, 1001]);
    expect(onRestored).toHaveBeenCalledTimes(1);
  });

  it('[F12] has answers to its replay dropped once, while all other messages pass', async () => {
    const { fake, client, lines, sent, pass } = createFixture({ answers: false });
    client.noteAnswered('logging/setLevel', Buffer.from('{"jsonrpc":"2.0","id":3,"method":"logging/setLevel"}'), {
      isError: false,
    });
    fake.backend.ends();
    await pass(0);
    fake.backend.says(note('early'), 'noise', welcome, note('same burst'));
    const { id } = sent(fake.backend)[2] as { id: string };
    fake.backend.says({ jsonrpc: '2.0', id, result: {} }, note('a'), { jsonrpc: '2.0', id, result: { again: true } });
    expect(lines).toEqual([
      ...['noise', JSON.stringify(note('early')), JSON.stringify(note('same burst')), JSON.stringify(note('a'))],
      JSON.stringify({ jsonrpc: '2.0', id, result: { again: true } }),
    ]);
  });

  it('[F12] gets notifications/initialized once, even if the client sends it during the restore', async () => {
    const { upstream, fake, client, sent, pass } = createFixture();
    fake.backend.ends();
    client.noteSent(readMessage(initialized));
    upstream.send(asMessage(initialized));
    await pass(0);
    // It had said so before too: what is replayed is what was said up to the loss, what waits is said again.
    expect(sent(fake.backend)).toEqual([initialize, initialized, initialized]);
    const late = createFixture({ isInitialized: false });
    late.upstream.restore();
    late.client.noteSent(readMessage(initialized));
    late.upstream.send(asMessage(initialized));
    await late.pass(0);
    expect(late.sent(late.fake.backend)).toEqual([initialize, initialized]);
  });

  it('[F12] [P8] has a limit for waiting messages, and room again after the restore', async () => {
    const { upstream, fake, pass } = createFixture({ maxQueuedBytes: message(1).text.length * 2 });
    fake.backend.ends();
    expect([1, 2, 3].map((n) => upstream.send(message(n)))).toEqual(['sent', 'sent', 'full']);
    await pass(0);
    expect(upstream.send(message(4))).toBe('sent');
    fake.backend.ends();
    expect([5, 6, 7].map((n) => upstream.send(message(n)))).toEqual(['sent', 'sent', 'full']);
  });

  it('[F12] [P8] has its successor ended if that sends too much before it answers initialize', async () => {
    const { fake, lines, pass } = createFixture({ answers: false });
    fake.backend.ends();
    await pass(0);
    const talkative = fake.backend;
    for (let n = 0; n < 40; n++) talkative.says(JSON.stringify(note('x'.repeat(100_000))));
    expect(talkative.isClosed).toBe(true);
    await pass(300);
    expect(fake.opened).toHaveLength(3);
    expect(lines).toEqual([]);
  });

  it('[P6] gets waiting messages only once its instance is known to own the session', async () => {
    let owns = false;
    const { upstream, fake, sent, pass, expired } = createFixture({ answers: false, isOwner: () => owns });
    fake.backend.ends();
    upstream.send(message(1));
    await pass(0);
    fake.backend.says(welcome);
    await pass(500);
    upstream.send(message(2));
    expect(sent(fake.backend)).toEqual([initialize, initialized]);
    owns = true;
    await pass(100);
    upstream.send(message(3));
    expect(sent(fake.backend)).toEqual([initialize, initialized, note(1), note(2), note(3)]);
    expect(expired).toEqual([]);
  });

  it('[P7] whose instance does not learn in time whether it owns the session has its waiting messages refused', async () => {
    const { upstream, fake, sent, pass, expired, expiredFor } = createFixture({
      answers: false,
      isOwner: () => false,
    });
    fake.backend.ends();
    upstream.send(message(1));
    await pass(0);
    fake.backend.says(welcome);
    await pass(1_100);
    expect(sent(fake.backend)).toEqual([initialize, initialized]);
    expect(expired.map(({ text }) => JSON.parse(text.toString()))).toEqual([note(1)]);
    expect(expiredFor).toEqual(['store_unavailable']);
  });

  it('[F12] stays paused after its restore if it was paused, and is read again when resumed', async () => {
    const { upstream, fake, pass } = createFixture();
    upstream.pause();
    fake.backend.ends();
    await pass(0);
    expect(fake.backend.isPaused).toBe(true);
    upstream.resume();
    expect(fake.backend.isPaused).toBe(false);
  });
});

describe('the backend supervisor of a session that was taken over', () => {
  it('[F12] has no backend until the restore, and keeps earlier messages waiting', async () => {
    const { upstream, fake, sent, onRestored, pass } = createFixture({ isAdopted: true });
    expect([fake.opened, upstream.incarnation, upstream.pid]).toEqual([[], `${epoch}-0`, undefined]);
    expect(upstream.send(message(1))).toBe('sent');
    upstream.restore();
    await pass(0);
    expect(sent(fake.backend)).toEqual([initialize, initialized, note(1)]);
    expect([onRestored.mock.calls.length, upstream.incarnation]).toEqual([1, `${epoch}-1`]);
  });
});

describe('a backend that does not start again', () => {
  it('[F12] is retried with growing pauses and abandoned after the fifth, with its messages reported as unsent', async () => {
    const { upstream, fake, givenUp, losses, pass } = createFixture({ answers: false });
    fake.backend.ends();
    for (const pauseMs of [0, 250, 500, 1_000, 2_000]) {
      const before = fake.opened.length;
      await pass(Math.max(0, pauseMs - 1));
      if (pauseMs > 0) expect(fake.opened).toHaveLength(before);
      await pass(1);
      expect(fake.opened).toHaveLength(before + 1);
      fake.backend.ends({ reason: 'failed' });
    }
    expect([givenUp, losses.length, upstream.send(message(1))]).toEqual([['crash_loop'], 1, 'ended']);
    await pass(100_000);
    expect(fake.opened).toHaveLength(6);
  });

  it('[F28] since nothing listens for it is told within two seconds, and is retried all the same', async () => {
    const { upstream, fake, expired, givenUp, pass } = createFixture({ isRemote: true, answers: false });
    const refused = { reason: 'failed' as const, cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) };
    const failStarts = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 100) {
        await pass(100);
        if (!fake.backend.isClosed && fake.living.length > 0) fake.backend.ends(refused);
      }
    };
    fake.backend.ends();
    upstream.send(message(1));
    await failStarts(2_000);
    upstream.send(message(2));
    await failStarts(2_000);
    expect([expired.length, givenUp, upstream.state]).toEqual([2, [], 'restoring']);
  });

  it('[F28] but is remote is retried with bounded random pauses while the session lives', async () => {
    const { fake, givenUp, away, onRestored, sent, upstream, pass } = createFixture({ answers: false, isRemote: true });
    fake.backend.ends();
    for (const nominalMs of [250, 250, 500, 1_000, 2_000, 4_000, ...Array.from({ length: 30 }, () => 5_000)]) {
      const before = fake.opened.length;
      await pass(nominalMs / 2 - 1);
      expect(fake.opened).toHaveLength(before);
      await pass(nominalMs / 2 + 1);
      expect(fake.opened.length).toBeGreaterThan(before);
      const { length } = fake.opened;
      fake.backend.ends({ reason: 'failed' });
      expect(fake.opened).toHaveLength(length);
    }
    expect(givenUp).toEqual([]);
    expect(away.map(({ reason }) => reason)).toEqual(['failed']); // told once, not at each try
    expect(upstream.send(message(1))).toBe('sent');
    await pass(5_000);
    fake.backend.says(welcome);
    expect(sent(fake.backend)).toEqual([initialize, initialized, note(1)]);
    expect(onRestored).toHaveBeenCalledTimes(1);
  });

  it('[F28] [P8] but is remote fails each message that waits too long', async () => {
    const { fake, upstream, expired, sent, pass } = createFixture({ answers: false, isRemote: true });
    fake.backend.ends();
    expect(upstream.send(message(1))).toBe('sent');
    await pass(14_000);
    for (const n of [2, 3]) expect(upstream.send(message(n))).toBe('sent');
    expect(expired).toEqual([]);
    await pass(1_000);
    expect(expired.map((each) => JSON.parse(String(each?.text)))).toEqual([note(1)]);
    fake.backend.says(welcome);
    expect(sent(fake.backend).slice(2)).toEqual([note(2), note(3)]);
    await pass(100_000);
    expect(expired).toHaveLength(1);
  });

  it('[F12] and is local has no time limit for waiting messages', async () => {
    const { fake, upstream, expired, sent, pass } = createFixture({ answers: false });
    fake.backend.ends();
    upstream.send(message(1));
    await pass(9_999);
    fake.backend.says(welcome);
    expect([expired, sent(fake.backend).at(-1)]).toEqual([[], note(1)]);
  });

  it('[F12] in time is ended and started again', async () => {
    const { fake, onRestored, pass } = createFixture({ answers: false });
    fake.backend.ends();
    await pass(0);
    const slow = fake.backend;
    await pass(10_000);
    expect(slow.isClosed).toBe(true);
    await pass(250);
    expect(fake.opened).toHaveLength(3);
    fake.backend.says(welcome);
    expect(onRestored).toHaveBeenCalledTimes(1);
    await pass(20_000); // the limit of a start that is over ends nothing
    expect(fake.backend.isClosed).toBe(false);
  });

  it.each([
    ['by a proxy every four seconds', true, 4_000, false, false],
    ['after each answer', true, 100, true, false],
    ['before it has worked', true, 100, false, true],
    ['every four seconds, and is local', false, 4_000, true, true],
  ])(
    '[F28] whose connection ends %s is in a crash loop only if it does not work',
    async (_, isRemote, lifeMs, answers, isLoop) => {
      const { upstream, fake, givenUp, pass } = createFixture({ isRemote });
      for (let n = 0; n < 20 && givenUp.length === 0; n++) {
        if (answers) fake.backend.says(note(n));
        await pass(lifeMs);
        fake.backend.ends();
        do await pass(500);
        while (upstream.state === 'restoring');
      }
      expect([givenUp, upstream.state]).toEqual(isLoop ? [['crash_loop'], 'closed'] : [[], 'live']);
    },
  );

  it('[F12] more than five times in a minute is in a crash loop, but not over a longer time', async () => {
    const slowly = createFixture();
    for (let n = 0; n < 20; n++) {
      slowly.fake.backend.ends();
      await slowly.pass(13_000);
    }
    expect([slowly.givenUp, slowly.upstream.incarnation]).toEqual([[], `${epoch}-20`]);
    const fast = createFixture();
    for (let n = 0; n < 6; n++) {
      fast.fake.backend.ends();
      await fast.pass(2_000);
    }
    expect([fast.givenUp, fast.upstream.incarnation]).toEqual([['crash_loop'], `${epoch}-5`]);
  });

  it.each([
    ['of another revision', { protocolVersion: '2025-06-18', capabilities: { tools: {} } }],
    ['with fewer capabilities', { protocolVersion: '2025-11-25', capabilities: {} }],
    ['that refuses initialize', undefined],
  ])('[F12] is abandoned for a successor %s, whose messages are dropped', async (_, result) => {
    const { upstream, fake, lines, givenUp, onRestored, sent, pass } = createFixture({ answers: false });
    fake.backend.ends();
    await pass(0);
    fake.backend.says(
      { jsonrpc: '2.0', id: 'init', ...(result ? { result } : { error: { code: 1, message: '' } }) },
      note(1),
    );
    expect([givenUp, lines, onRestored.mock.calls.length]).toEqual([['server_changed'], [], 0]);
    expect(sent(fake.backend)).toEqual([initialize]);
    expect(upstream.send(message(1))).toBe('ended');
  });
});

describe('a message that the server has not seen', () => {
  const texts = ({ undelivered = [] }: BackendEnd) =>
    undelivered.map(({ message: of }) => JSON.parse(of.text.toString()));

  it('[P3] is told with the loss if its backend had ended before it, after those that came earlier', async () => {
    const { upstream, fake, losses } = createFixture();
    const { backend } = fake;
    backend.answerToSend = 'ended';
    expect(upstream.send(message(2))).toBe('sent');
    backend.ends({ undelivered: [{ message: message(1), headers: {} }] });
    expect(losses.map(texts)).toEqual([[note(1), note(2)]]);
  });

  it('[P3] is told with the loss if it waits because this instance may not own the session', async () => {
    let isOwner = true;
    const { upstream, fake, losses, pass } = createFixture({ isOwner: () => isOwner });
    upstream.hibernate();
    isOwner = false;
    upstream.send(message(1));
    await pass(0);
    expect([upstream.state, losses]).toEqual(['live', []]);
    fake.backend.ends();
    expect(losses.map(texts)).toEqual([[note(1)]]);
  });

  it('[P3] is answered if the new backend has no room for it', async () => {
    const { upstream, fake, unanswered, pass } = createFixture({ answers: false });
    upstream.hibernate();
    const request = createMessage({ id: 7, method: 'tools/call' });
    expect([upstream.send(request), upstream.send(message(1))]).toEqual(['sent', 'sent']);
    await pass(0);
    fake.backend.answerToSend = 'full';
    fake.backend.says(welcome);
    expect(unanswered).toEqual([{ ids: [7], reason: 'server_busy', isFinal: true }]);
  });
});

it('[P8] a server whose session moves to another process is paused with the session', async () => {
  const { upstream, fake, session } = createFixture({
    server: { affinity: { readsMeta: true, readMeta: () => 'other' } as never, canMoveSessions: () => true },
  });
  session.holder = {} as never;
  const call = { id: 1, method: 'tools/call', answer: createFakeAnswer(1), activeAt: 0, startedAt: 0 };
  session.calls.add({ ...call, progressToken: undefined, taskId: undefined, request: undefined });
  upstream.send(createMessage({ id: 2, method: 'tools/call' }));
  expect(upstream.state).toBe('moving');
  upstream.pause();
  expect(fake.backend.isPaused).toBe(true);
});

describe('a closed backend supervisor', () => {
  it('[P10] ends its backend without a report, and sends nothing more', async () => {
    const { upstream, fake, losses } = createFixture();
    await upstream.close();
    expect([fake.living, losses, upstream.send(message(1))]).toEqual([[], [], 'ended']);
  });

  it('[P10] starts no further backend if it was closed during a restore', async () => {
    const { upstream, fake, pass } = createFixture({ answers: false });
    fake.backend.ends();
    await upstream.close();
    await pass(100_000);
    expect(fake.opened).toHaveLength(1);
    const other = createFixture({ answers: false });
    other.fake.backend.ends();
    await other.pass(0);
    await other.upstream.close();
    await other.pass(100_000);
    expect([other.fake.opened.length, other.fake.living, other.givenUp]).toEqual([2, [], []]);
  });
});

it('the next server gets `initialized` once, also if the lost one has not seen it', async () => {
  const { open } = openSessions();
  const { session, backend } = await open();
  const { server } = session;
  const opened: FakeBackend[] = [];
  const realOpen = server.open;
  vi.spyOn(server as { open: typeof server.open }, 'open').mockImplementation((...of) => {
    const next = realOpen(...of) as FakeBackend;
    opened.push(next);
    return next;
  });
  backend.answerToSend = 'ended';
  session.post({ messages: [readMessage(initialized)], isBatch: false }, createFakeReply());
  backend.ends();
  await vi.waitFor(() => expect(opened[0]?.sent.items.length).toBeGreaterThanOrEqual(2));
  await delay(50);
  expect(opened[0]?.sent.items.map(({ method }) => method)).toEqual(['initialize', 'notifications/initialized']);
});
