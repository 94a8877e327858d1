import { expect, onTestFinished, test } from 'vitest';
import { reportFaultsTo } from '../../../../src/core/util/boundary.ts';
import { emitTo } from '../../../../src/core/util/telemetry/emit.ts';

test('each sink gets each event, in order', () => {
  const received: string[] = [];
  const emit = emitTo<string>([
    (event) => void received.push(`first ${event}`),
    (event) => void received.push(`second ${event}`),
  ]);
  emit('a');
  emit('b');
  expect(received).toEqual(['first a', 'second a', 'first b', 'second b']);
});

test('a sink that throws is reported once for each event, and harms neither the emitter nor the other sinks', () => {
  const faults: unknown[] = [];
  onTestFinished(reportFaultsTo((seam, cause) => void faults.push([seam, cause])));
  const slip = new Error('slip');
  const received: string[] = [];
  const emit = emitTo<string>([
    () => {
      throw slip;
    },
    (event) => void received.push(event),
  ]);
  emit('a');
  expect([received, faults]).toEqual([['a'], [['background', slip]]]);
});
