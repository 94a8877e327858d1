import { expect, test } from 'vitest';
import { Absences } from '../../src/features/views/absences.ts';

const user = (subject: string) => ({ issuer: 'i', subject, client: 'c' });

test('an absence is of one user, ends after 30 seconds, and ends at once when the server is back', () => {
  let now = 0;
  const absences = new Absences(() => now);
  const [alice, bob] = [absences.of(user('alice')), absences.of(user('bob'))];
  alice.note('slow', 'start');
  expect(alice.has('slow', 'start')).toBe(true);
  expect(alice.has('slow', 'lists')).toBe(false);
  expect(alice.has('other', 'start')).toBe(false);
  expect(bob.has('slow', 'start')).toBe(false); // [P11]
  expect(absences.of(user('alice')).has('slow', 'start')).toBe(true);
  now = 30_000;
  expect(alice.has('slow', 'start')).toBe(false);
  alice.note('slow', 'lists');
  alice.forget('slow', 'lists');
  expect(alice.has('slow', 'lists')).toBe(false);
});

test('[P8] a limited number of absences is remembered', () => {
  const absences = new Absences(() => 0);
  absences.of(user('first')).note('slow', 'start');
  for (let index = 0; index < 10_000; index++) absences.of(user(`${index}`)).note('slow', 'start');
  expect(absences.of(user('first')).has('slow', 'start')).toBe(false);
});
