import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type RequestStateBinding, RequestStates } from '../../src/core/keys/request-state.ts';
import { configuredKeys } from '../../src/core/keys/state-keys.ts';
import { record } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const states = new RequestStates(configuredKeys(['a key of these fuzzers, long enough', 'an older one']), {
  now: () => 999,
});
const part = fc.oneof(fc.string({ unit: 'binary', maxLength: 6 }), fc.constantFrom('', 'a', '"', '","'));
const binding: fc.Arbitrary<RequestStateBinding> = record({
  principal: record({ issuer: part, subject: part, client: part }),
  server: part,
  digest: part,
});
const content = record({
  round: fc.nat(),
  expiresAtMs: fc.constantFrom(0, 999, 1_000, 10_000),
  value: fc.jsonValue({ maxDepth: 2 }),
});

/** What somebody may do to a state, by where and how. */
type Change = readonly [how: 'flip' | 'cut' | 'drop' | 'put', at: number];
const change: fc.Arbitrary<Change> = fc.tuple(fc.constantFrom('flip', 'cut', 'drop', 'put'), fc.nat());

function changed(state: string, [how, at]: Change): string {
  const index = at % state.length;
  if (how === 'cut') return state.slice(0, index);
  if (how === 'drop') return state.slice(0, index) + state.slice(index + 1);
  if (how === 'put') return `${state.slice(0, index)}A${state.slice(index)}`;
  const bytes = Buffer.from(state, 'base64url');
  const byte = (at >> 3) % bytes.length;
  bytes[byte] = (bytes[byte] as number) ^ (1 << (at & 7));
  return bytes.toString('base64url');
}

const sealed = createFuzzer({
  name: 'request states: open for what they were sealed for, and for nothing else, and not with any bit changed',
  share: 2,
  cases: fc.tuple(binding, binding, content, change),
  async check([bound, other, given, how]) {
    const state = (await states.seal(bound, given)) as string;
    const isValid = given.expiresAtMs > 999;
    assert.deepEqual(await states.open(bound, state), isValid ? JSON.parse(JSON.stringify(given)) : undefined);
    if (JSON.stringify(other) !== JSON.stringify(bound)) assert.equal(await states.open(other, state), undefined);
    const forged = changed(state, how);
    if (forged !== state) assert.equal(await states.open(bound, forged), undefined);
  },
});

const invented = createFuzzer({
  name: 'invented request states: none opens',
  share: 2,
  cases: fc.tuple(binding, fc.oneof(fc.string({ unit: 'binary' }), fc.base64String({ maxLength: 300 }))),
  async check([bound, state]) {
    assert.equal(await states.open(bound, state), undefined);
  },
});

export const fuzzers = [sealed, invented];
