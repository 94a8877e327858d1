import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PlaygroundSessions } from '../src/playground-sessions.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const awayMs = 10_000;
const name = { server: 'files', session: 'abcd1234' };
const sender = { issuer: 'i', subject: 'alice', client: '' };

function play() {
  const onGone = vi.fn();
  const sessions = new PlaygroundSessions({ awayMs, onGone });
  /** A request of the session; returns what ends it, with this status. */
  const ask = (of = name, by = (): typeof sender | undefined => sender) => {
    const outgoing = Object.assign(new EventEmitter(), { headersSent: false, statusCode: 200 });
    sessions.trackRequest(of, outgoing as unknown as ServerResponse, by);
    return (statusCode?: number): void => {
      Object.assign(outgoing, statusCode !== undefined && { headersSent: true, statusCode });
      outgoing.emit('close');
    };
  };
  return { sessions, onGone, ask };
}

test('a session ends when nothing of it is open any more, after the time in which its page may come back', () => {
  const { onGone, ask } = play();
  const stopListening = ask();
  ask()(202);
  vi.advanceTimersByTime(awayMs * 10);
  expect(onGone).not.toHaveBeenCalled();
  stopListening(200);
  vi.advanceTimersByTime(awayMs - 1);
  expect(onGone).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onGone.mock.calls).toEqual([[name, sender]]);
  expect(vi.getTimerCount()).toBe(0);
});

test('[P11] a session that no request has reached is not ended: it can be that of another user', () => {
  const { onGone, ask } = play();
  ask(name, () => undefined)(200);
  vi.advanceTimersByTime(awayMs * 10);
  expect(onGone).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

test('a page that comes back in time keeps its session; others are not asked', () => {
  const { onGone, ask } = play();
  ask()(200);
  vi.advanceTimersByTime(awayMs - 1);
  const listening = ask();
  ask({ ...name, session: 'other' })(200);
  vi.advanceTimersByTime(awayMs);
  expect(onGone.mock.calls).toEqual([[{ ...name, session: 'other' }, sender]]);
  listening(200);
  vi.advanceTimersByTime(awayMs);
  expect(onGone).toHaveBeenLastCalledWith(name, sender);
});

test('[P11] who is not let in by the endpoint ends nothing', () => {
  const { onGone, ask } = play();
  ask()(404);
  ask()(401);
  ask()();
  vi.advanceTimersByTime(awayMs * 10);
  expect(onGone).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
  const theirs = ask();
  ask()(404);
  theirs(200);
  vi.advanceTimersByTime(awayMs);
  expect(onGone).toHaveBeenCalledTimes(1);
});

test('when the page is closed for good, nothing is left to do', () => {
  const { sessions, onGone, ask } = play();
  ask()(200);
  sessions.close();
  vi.advanceTimersByTime(awayMs);
  expect(onGone).not.toHaveBeenCalled();
});
