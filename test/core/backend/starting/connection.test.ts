import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { BackendEvents } from '../../../../src/core/backend/backend.ts';
import { Connection, type StartOptions } from '../../../../src/core/backend/starting/connection.ts';
import { createMessage } from '../../../../src/core/protocol/message/message.ts';
import { createFakeServer } from '../../../support/fake-backend.ts';

const request = createMessage({ id: 'i', method: 'initialize' });
const answer = { jsonrpc: '2.0', id: 'i', result: {} };
const note = (n: number) => ({ jsonrpc: '2.0', method: 'x', params: { n } });

/** Opens a starting backend and records everything that it reports, in order. */
function createFixture({ maxEarlyBytes, ...options }: Partial<StartOptions> = { maxEarlyBytes: 10_000 }) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const server = createFakeServer();
  const got: unknown[] = [];
  const events: BackendEvents = {
    onMessages: (messages, ids) => {
      for (const { text } of messages) got.push(JSON.parse(`${text}`).params?.n ?? `${text}`);
      if (ids !== undefined) got.push({ ids });
    },
    onNoise: (text) => void got.push(`${text}`),
    onUnanswered: (ids) => void got.push({ unanswered: ids }),
    onState: (state) => void got.push({ state }),
    onEnd: ({ reason }) => void got.push({ end: reason }),
  };
  const backend = new Connection({ isRemote: false }).open(server.open, {
    request,
    timeoutMs: 1_000,
    ...(maxEarlyBytes !== undefined && { maxEarlyBytes }),
    events,
    onAnswer: () => got.push('started') > 0,
    onFailed: ({ reason }, why) => void got.push({ failed: why, reason }),
    ...options,
  });
  backend.send(request);
  return { server, backend, events, got };
}

describe('a starting backend', () => {
  it('has started with the answer to its request, and reports early output, then the rest, then all later events', async () => {
    const { server, got } = createFixture();
    const { says, saysBeside, tells, leaves, ends } = server.backend;
    saysBeside([3], note(1), { jsonrpc: '2.0', id: 'other', result: {}, params: { n: 2 } });
    says('noise', note(3));
    tells('s');
    expect(got).toEqual([]);
    says(note(4), answer, note(5), note(6));
    const start = [1, 2, { ids: [3] }, 'noise', 3, { state: 's' }, 4];
    expect(got.splice(0)).toEqual(['started', ...start, 5, 6]);
    says('more noise', note(7));
    says(answer);
    tells('t');
    leaves([9], 'internal');
    await vi.advanceTimersByTimeAsync(60_000);
    ends();
    expect(got).toEqual([
      'more noise',
      7,
      JSON.stringify(answer),
      { state: 't' },
      { unanswered: [9] },
      { end: 'exited' },
    ]);
  });

  it('reports early output at once if it has no limit for it', () => {
    const { server, got } = createFixture({});
    server.backend.says('noise', note(1));
    expect(got).toEqual(['noise', 1]);
    server.backend.says(note(2), answer, note(3));
    expect(got.slice(2)).toEqual([2, 'started', 3]);
  });

  it('takes no request of the server for the answer', () => {
    const { server, got } = createFixture();
    server.backend.says({ jsonrpc: '2.0', id: 'i', method: 'ping' });
    expect(got).toEqual([]);
  });

  it('hands its events to the user directly once it has started', () => {
    const onMessages = vi.fn();
    const { server, events } = createFixture({ maxEarlyBytes: 1_000 });
    server.backend.says(answer);
    Object.assign(events, { onMessages });
    server.backend.says(note(1), note(2));
    expect(onMessages).toHaveBeenCalledTimes(1);
  });

  it('[P8] that writes more than its limit before the answer is closed, and none of its output is reported', async () => {
    const { server, got } = createFixture({ maxEarlyBytes: 1_000 });
    server.backend.says(...Array.from({ length: 5 }, (_, n) => note(n)), answer);
    expect([server.backend.isClosed, got]).toEqual([true, []]);
    await Promise.resolve();
    expect(got).toEqual([{ failed: 'flooded', reason: 'closed' }]);
  });

  it('that logs its start on stdout has no limit on that', () => {
    const { server, got } = createFixture({ maxEarlyBytes: 1_000 });
    server.backend.says(...Array.from({ length: 1_000 }, () => '.'.repeat(250)), answer, note(1));
    expect(server.backend.isClosed).toBe(false);
    expect(got.at(-1)).toBe(1);
  });

  it('that sends ping before its answer gets an answer at once, and the user does not see the ping', () => {
    const { server, got } = createFixture({ maxEarlyBytes: 1_000 });
    server.backend.says({ jsonrpc: '2.0', id: 'early', method: 'ping' });
    expect(server.backend.sent.items.at(-1)).toEqual({ jsonrpc: '2.0', id: 'early', result: {} });
    server.backend.says(answer, note(1));
    expect(got.at(-1)).toBe(1);
    expect(got.filter((each) => each === undefined)).toEqual([]);
  });

  it('[F13] that does not answer in time is closed, whatever else it writes', async () => {
    const { server, got } = createFixture();
    await vi.advanceTimersByTimeAsync(999);
    server.backend.says(note(1));
    expect(server.backend.isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(server.backend.isClosed).toBe(true);
    expect(got).toEqual([{ failed: 'silent', reason: 'closed' }]);
  });

  it('reports nothing between the time limit and its end', async () => {
    const { server, got } = createFixture({});
    const endNow = server.backend.holdClose();
    await vi.advanceTimersByTimeAsync(1_000);
    server.backend.tells('s');
    expect(got).toEqual([]);
    endNow();
    await vi.advanceTimersByTimeAsync(0);
    expect(got).toEqual([{ failed: 'silent', reason: 'closed' }]);
  });

  it('whose answer the user refuses is closed, and none of its output is reported', async () => {
    const { server, got } = createFixture({ maxEarlyBytes: 1_000, onAnswer: () => false });
    server.backend.says('noise', note(1), answer, note(2));
    expect(server.backend.isClosed).toBe(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(got).toEqual([{ failed: 'refused', reason: 'closed' }]);
  });

  it('that ends before the answer has failed, and its early output is dropped', async () => {
    const { server, got } = createFixture();
    server.backend.says('noise', note(1));
    server.backend.ends({ reason: 'failed' });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(got).toEqual([{ failed: 'ended', reason: 'failed' }]);
  });

  it('that its user closes before the answer has failed, and its timer is gone', async () => {
    const { backend, server, got } = createFixture();
    server.backend.says(note(1));
    await backend.close();
    expect([got, vi.getTimerCount()]).toEqual([[{ failed: 'ended', reason: 'closed' }], 0]);
  });

  it('that ends while its early output is delivered delivers nothing after its end', () => {
    const { server, events, got } = createFixture();
    const { onNoise } = events;
    Object.assign(events, {
      onNoise(text: Buffer) {
        onNoise(text);
        server.backend.ends();
      },
    });
    server.backend.says('a');
    server.backend.says(note(1), answer, note(2));
    expect(got).toEqual(['started', 'a', { end: 'exited' }]);
  });

  it('that ends while its answer is handled has failed', () => {
    const { server, got } = createFixture({
      maxEarlyBytes: 1_000,
      onAnswer() {
        server.backend.ends();
        return true;
      },
    });
    server.backend.says('a', note(1), answer, note(2));
    expect(got).toEqual([{ failed: 'ended', reason: 'exited' }]);
  });

  it('[F12] starts the next one after the pause that the losses require, unless its user has stopped it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const connection = new Connection({ isRemote: false });
    const starts: number[] = [];
    const lose = (): void => {
      connection.countLoss();
      connection.afterPause(() => starts.push(performance.now()));
    };
    const before = performance.now();
    lose();
    expect(connection.isPausing).toBe(true);
    await vi.advanceTimersByTimeAsync(1);
    expect([starts.length, connection.isPausing]).toEqual([1, false]);
    lose();
    await vi.advanceTimersByTimeAsync(1_000);
    expect((starts[1] as number) - before).toBeGreaterThanOrEqual(250);
    lose();
    connection.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([starts.length, connection.isPausing]).toEqual([2, false]);
  });

  it('that starts ends the row of failed starts', () => {
    const connection = new Connection({ isRemote: false });
    const server = createFakeServer();
    connection.countFailedStart();
    const ignore = () => undefined;
    const events = { onMessages: ignore, onNoise: ignore, onUnanswered: ignore, onEnd: ignore };
    const how = { request, timeoutMs: 60_000, events, onAnswer: () => true, onFailed: ignore };
    connection.open(server.open, how).send(request);
    expect(connection.failedStarts).toBe(1);
    server.backend.says(answer);
    expect(connection.failedStarts).toBe(0);
  });
});
