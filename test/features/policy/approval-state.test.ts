import { randomBytes } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { configuredKeys } from '../../../src/core/keys/state-keys.ts';
import { ApprovalStates, bindingOf, isApprovalState } from '../../../src/features/policy/approval-state.ts';

const keys = configuredKeys([randomBytes(32).toString('hex')]);

function createStates() {
  const used = new Map<string, Buffer>();
  const keep = async (_kind: string, name: string, candidate: Buffer): Promise<Buffer> => {
    if (!used.has(name)) used.set(name, candidate);
    return used.get(name) as Buffer;
  };
  return new ApprovalStates(keys, { keep });
}

const asked = { server: 's', method: 'tools/call', name: 'echo', uri: undefined, sender: undefined };

it('a state opens once, for its own request, while it is young', async () => {
  const states = createStates();
  const binding = bindingOf(asked, Buffer.from('{"a":1}'));
  const state = (await states.seal(binding)) as string;
  expect(isApprovalState(state)).toBe(true);
  expect(await states.open(state, bindingOf(asked, Buffer.from('{"a":2}')))).toBeUndefined();
  const ada = { principal: { subject: 'ada' }, scopes: undefined, headers: {} };
  expect(await states.open(state, bindingOf({ ...asked, sender: ada }, Buffer.from('{"a":1}')))).toBeUndefined();
  expect(await states.open(`${state}x`, binding)).toBeUndefined();
  expect(await states.open(state, binding)).toMatchObject({ isApproved: false });
  expect(await states.open(state, binding)).toBeUndefined();
  const old = (await states.seal(binding)) as string;
  vi.useFakeTimers({ now: Date.now() + 11 * 60_000, toFake: ['Date'] });
  expect(await states.open(old, binding)).toBeUndefined();
  vi.useRealTimers();
});

it('the state of an approved request carries the state of the server, and can be sent again', async () => {
  const states = createStates();
  const binding = bindingOf(asked, undefined);
  const state = (await states.seal(binding, { inner: 'of the server' })) as string;
  for (let time = 0; time < 2; time += 1)
    expect(await states.open(state, binding)).toMatchObject({ isApproved: true, inner: 'of the server' });
});

it('[P8] a state of the server that is too long is not carried', async () => {
  const inner = 'x'.repeat(4 * 1024 * 1024);
  expect(await createStates().seal(bindingOf(asked, undefined), { inner })).toBeUndefined();
});
