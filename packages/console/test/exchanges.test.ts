import { expect, test } from 'vitest';

const file = new URL('../src/page/exchanges.js', import.meta.url).href;
const { Exchanges, isFailed } = await import(file);

const request = { number: 1, from: 'client', kind: 'request', method: 'tools/call', size: 10 };

test('a call that the gateway has failed ends with the name of the fault', () => {
  const exchanges = new Exchanges(10);
  exchanges.add(request);
  exchanges.add({ number: 2, from: 'server', kind: 'fault', answers: 1, fault: 'outcome_unknown', isError: true });
  expect(exchanges.entries).toMatchObject([{ number: 1, response: { fault: 'outcome_unknown' } }]);
  expect(isFailed(exchanges.entries[0])).toBe(true);
});

test('a request that is sent again after the loss of its server stays one row', () => {
  const exchanges = new Exchanges(10);
  exchanges.add(request);
  exchanges.add({ ...request, number: 2, repeats: 1 });
  exchanges.add({ number: 3, from: 'server', kind: 'response', answers: 1, isError: false });
  expect(exchanges.entries).toMatchObject([{ number: 1, sent: 2, response: { number: 3 } }]);
  expect(isFailed(exchanges.entries[0])).toBe(false);
});
