import { expect, test } from 'vitest';
import { incidentSpanMs, ServerIncidents } from '../../../src/console/record/server-incidents.ts';

function createIncidents() {
  let now = 0;
  return { incidents: new ServerIncidents(() => now), pass: (ms: number) => (now += ms) };
}

test('exits count for five minutes, each by itself', () => {
  const { incidents, pass } = createIncidents();
  incidents.addExit('files');
  pass(incidentSpanMs - 1);
  incidents.addExit('files');
  incidents.addExit('mail');
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
    noise: 7,
    noiseLines: ['line 3', 'line 4', 'line 5', 'line 6', 'line 7'],
  });
  pass(incidentSpanMs);
  expect(incidents.of('files').noise).toBe(0);
  expect(incidents.of('files').noiseLines).toHaveLength(5);
  incidents.addNoise('files', Buffer.from('password: hunter2 {"password":"hunter2"}'));
  const { noise, noiseLines } = incidents.of('files');
  expect(noise).toBe(1);
  expect(noiseLines.at(-1)).toContain('"password":"•••"');
});
