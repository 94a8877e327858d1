import { expect, it } from 'vitest';
import { lostReports } from './lost-reports.ts';
import type { SessionTranscript } from './transcript.ts';

const progress = (number: number, id = `1.1-${number}`) => ({
  id,
  data: JSON.stringify({ method: 'notifications/progress', params: { progressToken: 'c', progress: number } }),
});
const told = (n: number) => ({
  id: `1.1-${n}`,
  data: JSON.stringify({ method: 'notifications/told', params: { n, mark: 'mark=s/c.' } }),
});
const answer = (more: object) => ({
  id: '1.1-9',
  data: JSON.stringify({ id: 'c', result: { content: [{ type: 'text', text: JSON.stringify(more) }] } }),
});

/** A session with one call, whose events come over these connections. */
function sessionWith(...connections: readonly (readonly object[])[]): SessionTranscript {
  const call = { id: 'c', mark: 'mark=s/c.', isOnce: true, isGivenUp: false, startedAt: 0, endedAt: 1 };
  const recorded = connections.map((events) => ({ call: 'c', isWhole: true, status: 200, text: '', events }));
  return { name: 's', sessionId: 'x', calls: [call], connections: recorded, isEnded: false } as never;
}

const whats = (transcript: SessionTranscript, hasOwnProcess = true): string[] =>
  lostReports(transcript, { hasOwnProcess }).map(({ what }) => what);

it('finds nothing where all has come, over one connection or several', () => {
  expect(whats(sessionWith([progress(1), progress(2), answer({ counted: 2 })]))).toEqual([]);
  expect(whats(sessionWith([progress(1)], [progress(2), answer({ counted: 2 })]))).toEqual([]);
});

it('finds the progress that an answered call lacks, at its beginning, amid it and at its end', () => {
  const [found] = whats(sessionWith([progress(2), progress(4), answer({ counted: 5 })]));
  expect(found).toContain('without progress 1, 3, 5 of 5');
});

it('finds what was told outside of the call, if the session has a process of its own', () => {
  const transcript = sessionWith([told(1), answer({ told: 2 })]);
  expect(whats(transcript)).toEqual([expect.stringContaining('without message 2 of 2')]);
  expect(whats(transcript, false)).toEqual([]);
});

it('finds nothing in a session that was told of a gap', () => {
  const gap = { event: 'gap', data: '' };
  expect(whats(sessionWith([gap, progress(2), answer({ counted: 2 })]))).toEqual([]);
});

it('knows from the log that a call that only reads ran again, before its client had anything of the first run', () => {
  const transcript = sessionWith([answer({ told: 1 })]);
  const entry = (stream: number, { data }: { readonly data: string }) => ({
    epoch: 1,
    seq: 1,
    stream,
    data,
    last: false,
  });
  const list = { data: JSON.stringify({ id: 'list', result: {} }) };
  const logOf = (...streams: readonly number[]) => ({
    entries: [entry(2, told(1)), ...streams.map((stream) => entry(stream, list))] as never,
  });
  const found = [logOf(2, 3), logOf(2)].map((log) => lostReports(transcript, { hasOwnProcess: true, log }).length);
  expect(found).toEqual([0, 1]);
});
