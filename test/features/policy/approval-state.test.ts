import { randomBytes } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { configuredKeys } from '../../../src/core/keys/state-keys.ts';
import { ApprovalStates, digestOf, isApprovalState } from '../../../src/features/policy/approval-state.ts';

const secret = randomBytes(32).toString('hex');

function createStates(text = secret) {
  const used = new Map<string, Buffer>();
  const keep = async (_kind: string, name: string, candidate: Buffer): Promise<Buffer> => {
    if (!used.has(name)) used.set(name, candidate);
    return used.get(name) as Buffer;
  };
  return new ApprovalStates(configuredKeys([text]), { keep });
}

const asked = { server: 's', method: 'tools/call', name: 'echo', uri: undefined, sender: undefined };

it('a state opens once, for its own request, while it is young', async () => {
  const states = createStates();
  const digest = digestOf(asked, Buffer.from('{"a":1}'));
  const state = await states.seal(digest);
  expect(isApprovalState(state)).toBe(true);
  expect(await states.open(state, digestOf(asked, Buffer.from('{"a":2}')))).toBeUndefined();
  const ada = { principal: { subject: 'ada' }, scopes: undefined, headers: {} };
  expect(await states.open(state, digestOf({ ...asked, sender: ada }, Buffer.from('{"a":1}')))).toBeUndefined();
  expect(await createStates('another').open(state, digest)).toBeUndefined();
  expect(await states.open(`${state}x`, digest)).toBeUndefined();
  expect(await states.open(state, digest)).toMatchObject({ isApproved: false });
  expect(await states.open(state, digest)).toBeUndefined();
  const old = await states.seal(digest);
  vi.useFakeTimers({ now: Date.now() + 11 * 60_000, toFake: ['Date'] });
  expect(await states.open(old, digest)).toBeUndefined();
  vi.useRealTimers();
});

it('the state of an approved request carries the state of the server, and can be sent again', async () => {
  const states = createStates();
  const digest = digestOf(asked, undefined);
  const state = await states.seal(digest, { inner: 'of the server' });
  for (let time = 0; time < 2; time += 1)
    expect(await states.open(state, digest)).toMatchObject({ isApproved: true, inner: 'of the server' });
});
