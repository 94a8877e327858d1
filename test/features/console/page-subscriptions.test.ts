import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { maxOpenPages, PageSubscriptions } from '../../../packages/console/src/page-subscriptions.ts';
import { FailedCalls } from '../../../packages/console/src/record/incidents/failed-calls.ts';
import { RecentEvents } from '../../../packages/console/src/record/recent-events.ts';
import type { SessionQuery } from '../../../packages/console/src/sessions/session-list.ts';
import type { SessionView } from '../../../packages/console/src/sessions/session-view.ts';
import type { Snapshot } from '../../../packages/console/src/snapshot/snapshot.ts';
import { consoleHost } from '../../../src/features/console/console-host.ts';
import { MessageTap } from '../../../src/features/console/message-tap.ts';
import { asMessage } from '../../support/as-message.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A connection that takes everything, or nothing. */
class FakeOutgoing extends EventEmitter {
  readonly written: string[] = [];
  writableNeedDrain = false;
  write(text: string): void {
    this.written.push(text);
  }
  end(): void {
    this.emit('close');
  }
  /** The types of what it was sent. */
  get types(): (string | undefined)[] {
    return this.written.map((text) => /^event: (\w+)\ndata: .*\n\n$/.exec(text)?.[1]);
  }
}

function createViewers() {
  const flow = new MessageTap(false);
  const happenings = new RecentEvents(consoleHost);
  const snapshot = vi.fn((query: SessionQuery) => ({ query }) as unknown as Snapshot);
  const session = vi.fn((): SessionView | undefined => undefined);
  const failedCalls = new FailedCalls(consoleHost);
  const viewers = new PageSubscriptions({
    ...{ host: consoleHost, tap: flow, events: happenings, failedCalls, snapshot, session },
  });
  const open = (search = '', watched?: { server: string; session: string }) => {
    const outgoing = new FakeOutgoing();
    viewers.add(outgoing as unknown as ServerResponse, { search, page: 0, isEverywhere: false, watched });
    return outgoing;
  };
  return { flow, happenings, failedCalls, snapshot, session, viewers, open };
}

test('while no page is open nothing is looked at', () => {
  const { snapshot, open } = createViewers();
  vi.advanceTimersByTime(10_000);
  expect(snapshot).not.toHaveBeenCalled();
  open().end();
  snapshot.mockClear();
  vi.advanceTimersByTime(10_000);
  expect(snapshot).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

test('pages that ask for the same share a look, one a second', () => {
  const { snapshot, open } = createViewers();
  const [one, two, other] = [open(), open(), open('files')];
  snapshot.mockClear();
  vi.advanceTimersByTime(3_000);
  expect(snapshot.mock.calls.map(([{ search }]) => search)).toEqual(['', 'files', '', 'files', '', 'files']);
  for (const { types } of [one, two, other]) expect(types).toEqual(new Array(4).fill('state'));
});

test('a page hears what happened before it came, once, and then what happens', () => {
  const { happenings, open } = createViewers();
  happenings.receive({ type: 'takeover-limit-reached', name: { server: 'files', session: 'abcd1234' } });
  const page = open();
  vi.advanceTimersByTime(500);
  happenings.receive({ type: 'store-joined' });
  vi.advanceTimersByTime(250);
  const told = page.written
    .filter((text) => text.startsWith('event: happened'))
    .map((text) => JSON.parse(text.split('data: ')[1] as string));
  expect(told).toEqual([
    [expect.objectContaining({ number: 1, kind: 'session_worn_out', server: 'files', session: 'abcd1234' })],
    [expect.objectContaining({ number: 2, kind: 'redis_back' })],
  ]);
});

test('a page hears the failed calls from before it came, once, and then the next ones', () => {
  const { failedCalls, open } = createViewers();
  const fail = (name: string, client?: string) =>
    failedCalls.add({
      type: 'call-ended',
      origin: { server: 'files', principal: undefined, session: client === undefined ? 'abcd1234' : undefined },
      ...{
        method: 'tools/call',
        name,
        client,
        outcome: { kind: 'tool_error' },
        durationMs: 1,
        serverMs: 1,
        waitedMs: 0,
      },
    });
  fail('read');
  const page = open();
  vi.advanceTimersByTime(500);
  fail('write', 'Field App 3.1');
  vi.advanceTimersByTime(250);
  const told = page.written
    .filter((text) => text.startsWith('event: failed'))
    .map((text) => JSON.parse(text.split('data: ')[1] as string));
  expect(told).toEqual([
    [expect.objectContaining({ name: 'read' })],
    [expect.objectContaining({ name: 'write', client: 'Field App 3.1' })],
  ]);
});

test('a flood of messages reaches a page in portions, with the count of what is left out', () => {
  const { flow, open } = createViewers();
  const watched = { server: 'files', session: 'abcd1234' };
  const page = open('', watched);
  for (let number = 0; number < 1_000; number += 1)
    flow.passed(watched, 'server', asMessage('{"jsonrpc":"2.0","method":"x"}'));
  vi.advanceTimersByTime(250);
  const [told] = page.written
    .filter((text) => text.startsWith('event: flow'))
    .map((text) => JSON.parse(text.split('data: ')[1] as string));
  expect(told).toMatchObject({ ...watched, skipped: 950 });
  expect(told.messages).toHaveLength(50);
  page.end();
  expect(flow.isWatched).toBe(false);
});

test('a page that watches a session is told how that is, and when it is not here any more', () => {
  const { session, open } = createViewers();
  const watched = { server: 'files', session: 'abcd1234' };
  session.mockReturnValueOnce({ messages: 3 } as SessionView);
  const page = open('', watched);
  vi.advanceTimersByTime(1_000);
  const told = page.written
    .filter((text) => text.startsWith('event: watched'))
    .map((text) => JSON.parse(text.split('data: ')[1] as string));
  expect(told).toEqual([{ ...watched, found: { messages: 3 } }, watched]);
  expect(session).toHaveBeenCalledWith(watched);
  const other = open();
  vi.advanceTimersByTime(1_000);
  expect(other.types).not.toContain('watched');
});

test('a page that does not read is sent nothing until it does, and not what it missed', () => {
  const { open } = createViewers();
  const page = open();
  page.writableNeedDrain = true;
  vi.advanceTimersByTime(60_000);
  expect(page.types).toEqual(['state']);
  page.writableNeedDrain = false;
  vi.advanceTimersByTime(1_000);
  expect(page.types).toEqual(['state', 'state']);
});

test('there are no more pages than may be', () => {
  const { viewers, open } = createViewers();
  const pages = Array.from({ length: maxOpenPages }, () => open());
  expect(viewers.isFull).toBe(true);
  pages[0]?.end();
  expect(viewers.isFull).toBe(false);
  viewers.close();
  expect(viewers.isFull).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});
