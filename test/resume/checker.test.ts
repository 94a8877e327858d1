import { describe, expect, test } from 'vitest';
import { faultsOfTranscript, sharedIds } from '../support/checker.ts';
import type { Listened } from '../support/resuming-client.ts';
import type { SseEvent } from '../support/sse-reader.ts';

const texts = ['a', 'b', 'c', 'end'];
const prime = (seq: number, stream = 1): SseEvent => ({ id: `${stream}.7-${seq}`, retry: 1, data: '' });
const message = (n: number, seq = n + 2, stream = 1): SseEvent => ({
  id: `${stream}.7-${seq}`,
  event: 'message',
  data: texts[n] ?? `${n}`,
});
const post = (...events: SseEvent[]): Listened => ({
  method: 'POST',
  after: undefined,
  status: 200,
  events,
  text: '',
  isWhole: true,
});
const get = (seq: number, ...events: SseEvent[]): Listened => ({
  ...post(prime(seq), ...events),
  method: 'GET',
  after: `1.7-${seq}`,
});
const faultsOf = (...transcript: Listened[]) =>
  faultsOfTranscript(transcript, { texts, primes: true, isWhole: true }).join('; ');

describe('the checker of transcripts', () => {
  test('passes a stream that was resumed, twice from one place, and asked for when it was over', () => {
    const transcript = [
      post(prime(1), message(0), message(1)),
      get(2, message(1)),
      get(3, message(2), message(3)),
      get(2, message(1), message(2), message(3)),
      { ...get(5), status: 204, events: [] },
    ];
    expect(faultsOf(...transcript)).toBe('');
  });

  test.each<[string, string, readonly Listened[]]>([
    ['a gap', 'message 2 instead of message 1', [post(prime(1), message(0)), get(2, message(2), message(3))]],
    ['a double', 'message 0 again instead of message 1', [post(prime(1), message(0)), get(2, message(0, 3))]],
    ['a wrong order', 'message 1 instead of message 0', [post(prime(1), message(1), message(0))]],
    ['an id that stands twice', 'stands for two events', [post(prime(1), message(0), message(1, 2))]],
    [
      'a second id of an event',
      'has the ids 1.7-3 and 1.7-9',
      [post(prime(1), message(0), message(1)), get(2, message(1, 9))],
    ],
    ['ids that go down', 'does not come after', [post(prime(1), message(0, 9), message(1, 5))]],
    ['an id of another stream', 'is of another stream', [post(prime(1), message(0), message(1, 3, 2))]],
    [
      'two responses',
      'message 3 again instead of the end',
      [post(prime(1), ...[0, 1, 2, 3].map((n) => message(n)), message(3, 8))],
    ],
    ['what never came', '1 of 4 messages came', [post(prime(1), message(0))]],
    ['a priming event too many', 'does not belong here', [post(prime(1), message(0), prime(2))]],
    ['none', 'without a priming event', [post(message(0))]],
    ['an end too early', '204 after 1 messages', [post(prime(1), message(0)), { ...get(2), status: 204, events: [] }]],
    ['an unknown type', 'of type gap', [post(prime(1), { ...message(0), event: 'gap' })]],
    ['a refusal', 'status 404', [post(prime(1), message(0)), { ...get(2), status: 404, events: [] }]],
  ])('finds %s', (_, fault, transcript) => {
    expect(faultsOf(...transcript)).toContain(fault);
  });

  test('finds an id that two streams have', () => {
    const streams = [[post(prime(1), message(0))], [post(prime(5, 2), message(0, 2))]];
    expect(sharedIds(streams)).toEqual(['1.7-2']);
    expect(sharedIds(streams.slice(1))).toEqual([]);
  });
});
