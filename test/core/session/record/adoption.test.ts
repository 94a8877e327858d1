import { describe, expect, it, onTestFinished } from 'vitest';
import { prepareAdoption } from '../../../../src/core/session/record/adoption.ts';
import type { PendingCall } from '../../../../src/core/store/event-log.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import { aRecord, createLogWriter, epoch } from '../../../contract/log-writer.ts';

const key = 'k';
const text = (message: object): string => JSON.stringify({ jsonrpc: '2.0', ...message });
const ask = (id: string | number, method = 'elicitation/create'): string => text({ id, method });
const cancel = (requestId: string | number): string =>
  text({ method: 'notifications/cancelled', params: { requestId } });
const progress = (value: unknown): string =>
  text({ method: 'notifications/progress', params: { progressToken: 't', progress: value } });
const note = text({ method: 'notifications/message', params: { level: 'info', data: 'x' } });
const aCall = (stream: number, id: string | number): PendingCall => ({
  stream,
  id,
  method: 'tools/call',
  text: Buffer.from(text({ id, method: 'tools/call', params: { _meta: { progressToken: 't' } } })),
});

/** A session whose owner wrote what the test says, and was lost. Events are [stream, text]. */
async function adoptAfter(events: readonly (readonly [number, string])[], pending: readonly PendingCall[]) {
  const store = createMemoryStore({ maxEvents: 10_000, maxBytes: 10_000_000, maxAgeMs: 60_000 });
  onTestFinished(() => store.close());
  await store.sessions.create(key, aRecord());
  const made = createLogWriter(store, key).make(...events.map(([stream, data]) => ({ stream, text: data })));
  const opened = new Set<number>();
  const withCalls = made.map((event) => {
    const opens = opened.has(event.stream) ? [] : pending.filter(({ stream }) => stream === event.stream);
    opened.add(event.stream);
    return opens.length > 0 ? { ...event, opens } : event;
  });
  if (made.length > 0) expect(await store.log.append(key, epoch, 0, withCalls)).toEqual({ outcome: 'stored' });
  const taken = await store.sessions.takeOver(key, { owner: 'instance-1', epoch }, 'instance-2');
  if (taken.outcome !== 'taken') throw new Error(taken.outcome);
  return prepareAdoption(store.log, key, taken.record, taken.log);
}

describe('the state that a new owner adopts', () => {
  it('is only the record under its own epoch for an idle session', async () => {
    const { record, log, calls, serverRequests: questions } = await adoptAfter([[0, note]], []);
    expect(record).toMatchObject({ ...aRecord(), owner: 'instance-2', epoch: expect.any(Number) });
    expect(record.epoch).toBeGreaterThan(epoch);
    expect([log.newestStream, calls, questions]).toEqual([0, [], []]);
  });

  it('can be that of a session without events', async () => {
    expect(await adoptAfter([], [])).toMatchObject({ calls: [], serverRequests: [], log: { newestStream: -1 } });
  });

  it('[P3] has the pending calls as they were sent', async () => {
    const left = [aCall(1, 'a'), aCall(2, 7)];
    const { calls } = await adoptAfter(
      [
        [1, ''],
        [2, note],
      ],
      left,
    );
    const known = { progressToken: 't', taskId: undefined, hasAsked: false, lastProgress: undefined };
    expect(calls.map(({ request, ...call }) => ({ ...call, text: request?.text }))).toEqual(
      left.map((call) => ({ ...call, ...known })),
    );
  });

  it('[P3] shows which calls have had a question, even a withdrawn or answered one', async () => {
    const { calls } = await adoptAfter(
      [
        [1, ask('q')],
        [2, note],
        [3, ask('r')],
        [3, cancel('r')],
      ],
      [aCall(1, 'a'), aCall(2, 'b'), aCall(3, 'c')],
    );
    expect(calls.map(({ id, hasAsked }) => [id, hasAsked])).toEqual([
      ['a', true],
      ['b', false],
      ['c', true],
    ]);
  });

  it('has the newest progress of each call, whatever the server sent as progress', async () => {
    const { calls } = await adoptAfter(
      [
        [1, progress(1)],
        [1, note],
        [1, progress(2.5)],
        [2, progress('much')],
        [2, progress(null)],
        [3, progress(0)],
      ],
      [aCall(1, 'a'), aCall(2, 'b'), aCall(3, 'c')],
    );
    expect(calls.map(({ lastProgress }) => lastProgress)).toEqual([2.5, undefined, 0]);
  });

  it('has the open questions of the GET stream and of calls, by the type of their ids', async () => {
    const { serverRequests: questions } = await adoptAfter(
      [
        [0, ask(1)],
        [0, ask('1')],
        [1, ask('q')],
        [0, cancel(1)],
        [1, ask('r')],
        [1, cancel('r')],
        [1, cancel('none')],
      ],
      [aCall(1, 'a')],
    );
    expect(questions).toEqual([
      { stream: 0, id: '1' },
      { stream: 1, id: 'q' },
    ]);
  });

  it('comes from streams of any length, past entries that are no message', async () => {
    const many = Array.from({ length: 700 }, () => [1, note] as const);
    const { calls, serverRequests: questions } = await adoptAfter(
      [[1, ''], [1, ask('first')], ...many, [1, 'no JSON'], [1, '[]'], [1, progress(9)], [1, ask('last')]],
      [aCall(1, 'a')],
    );
    expect(calls).toMatchObject([{ hasAsked: true, lastProgress: 9 }]);
    expect(questions.map(({ id }) => id)).toEqual(['first', 'last']);
  });
});
