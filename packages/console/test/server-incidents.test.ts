import { expect, test } from 'vitest';
import { incidentSpanMs, ServerIncidents } from '../src/record/incidents/server-incidents.ts';
import { fakeHost } from './fake-host.ts';

function createIncidents() {
  let now = 0;
  return { incidents: new ServerIncidents(fakeHost, () => now), pass: (ms: number) => (now += ms) };
}

test('exits count for five minutes, each by itself', () => {
  const { incidents, pass } = createIncidents();
  incidents.addExit('files', 'exited with code 1');
  pass(incidentSpanMs - 1);
  incidents.addExit('files', 'exited with code 2');
  incidents.addExit('mail', 'exited with code 3');
  expect(incidents.of('files').lastExit).toBe('exited with code 2');
  expect(incidents.of('files').exits).toBe(2);
  pass(1);
  expect([incidents.of('files').exits, incidents.of('mail').exits, incidents.of('other').exits]).toEqual([1, 1, 0]);
  incidents.forget('files');
  expect(incidents.of('files').exits).toBe(0);
});

test('noise stops counting five minutes after its last line, and its last lines stay readable', () => {
  const { incidents, pass } = createIncidents();
  for (let line = 1; line <= 7; line += 1) incidents.addNoise('files', Buffer.from(`line ${line}`));
  expect(incidents.of('files')).toEqual({
    exits: 0,
    lastExit: undefined,
    exitSpanMs: 0,
    lastWords: [],
    noise: 7,
    since: expect.any(Number),
    noiseLines: ['line 3', 'line 4', 'line 5', 'line 6', 'line 7'],
  });
  pass(incidentSpanMs);
  expect(incidents.of('files').noise).toBe(0);
  expect(incidents.of('files').noiseLines).toHaveLength(5);
  incidents.addNoise('files', Buffer.from('password: hunter2'));
  const { noise, noiseLines } = incidents.of('files');
  expect(noise).toBe(1);
  expect(noiseLines.at(-1)).toBe('password: •••');
});

test('trouble that goes on is told since its beginning, and new trouble after a quiet time since then', () => {
  const { incidents, pass } = createIncidents();
  const beganAt = Date.now();
  for (let minute = 0; minute < 60; minute += 1) {
    incidents.addExit('files', 'exited with code 1');
    pass(60_000);
  }
  const sinceMs = (at: number | undefined) => Math.round((beganAt - (at ?? 0)) / 60_000);
  expect(sinceMs(incidents.of('files').since)).toBe(60);
  pass(incidentSpanMs);
  expect(incidents.of('files').since).toBeUndefined();
  incidents.addExit('files', 'exited with code 1');
  pass(60_000);
  expect(sinceMs(incidents.of('files').since)).toBe(1);
});

test('the last distinct lines before the last exit are kept, without credentials', () => {
  const incidents = new ServerIncidents(fakeHost);
  incidents.addExit('reports', 'It exited.', [
    'older',
    'cannot open the index',
    'password is hunter2',
    'giving up',
    'giving up',
  ]);
  expect(incidents.of('reports')).toMatchObject({
    lastWords: ['cannot open the index', 'password is •••', 'giving up'],
    exitSpanMs: expect.any(Number),
  });
});
