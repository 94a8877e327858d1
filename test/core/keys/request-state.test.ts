import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxStateLength, type RequestStateBinding, RequestStates } from '../../../src/core/keys/request-state.ts';
import { configuredKeys } from '../../../src/core/keys/state-keys.ts';

const keys = configuredKeys(['the key of all these tests, long enough']);
const binding: RequestStateBinding = {
  principal: { issuer: 'i', subject: 's', client: 'c' },
  server: 'everything',
  digest: 'd',
};
const content = { round: 2, expiresAtMs: 1_000, value: { session: 'k', ids: [1, '1'], after: '1.2-3' } };
const states = new RequestStates(keys, { now: () => 999 });

async function sealed(): Promise<string> {
  return (await states.seal(binding, content)) as string;
}

describe('a request state', () => {
  it('[R4.06] opens with the binding that it was sealed for, on every instance with the same key', async () => {
    const state = await sealed();
    expect(state).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(await new RequestStates(keys, { now: () => 999 }).open(binding, state)).toEqual(content);
  });

  it.each([
    ['issuer', { principal: { ...binding.principal, issuer: 'x' } }],
    ['subject', { principal: { ...binding.principal, subject: 'x' } }],
    ['client', { principal: { ...binding.principal, client: 'x' } }],
    ['server', { server: 'x' }],
    ['request', { digest: 'x' }],
  ])('[R4.06] [P11] does not open for another %s', async (_, other) => {
    expect(await states.open({ ...binding, ...other }, await sealed())).toBeUndefined();
  });

  it('[R4.06] does not confuse one part of the binding with another', async () => {
    const principal = { issuer: 'a","b', subject: 'c', client: '' };
    const state = (await states.seal({ ...binding, principal }, content)) as string;
    const shifted = { issuer: 'a', subject: 'b","c', client: '' };
    expect(await states.open({ ...binding, principal: shifted }, state)).toBeUndefined();
  });

  it('[R4.06] does not open from the moment at which it expires', async () => {
    expect(await new RequestStates(keys, { now: () => 1_000 }).open(binding, await sealed())).toBeUndefined();
  });

  it('[R4.06] does not open with any bit flipped', async () => {
    const state = await sealed();
    const bytes = Buffer.from(state, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(await states.open(binding, changed.toString('base64url'))).toBeUndefined();
    }
  });

  it('[R4.06] does not open with any character changed, also by bits that base64 does not use', async () => {
    const state = await sealed();
    const at = fc.nat(state.length - 1);
    const character = fc.constantFrom(...'ABCDwxyz0189-_+/= \n\0é');
    await fc.assert(
      fc.asyncProperty(at, character, async (index, by) => {
        const changed = state.slice(0, index) + by + state.slice(index + 1);
        fc.pre(changed !== state);
        expect(await states.open(binding, changed)).toBeUndefined();
      }),
    );
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    for (const by of alphabet.replace(state.at(-1) as string, '')) {
      expect(await states.open(binding, state.slice(0, -1) + by)).toBeUndefined();
    }
  });

  it('[R4.06] does not open if it is truncated, lengthened or any other text', async () => {
    const state = await sealed();
    for (let length = 0; length < state.length; length++) {
      expect(await states.open(binding, state.slice(0, length))).toBeUndefined();
    }
    expect(await states.open(binding, `${state}A`)).toBeUndefined();
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
        expect(await states.open(binding, text)).toBeUndefined();
      }),
    );
  });

  it('[P8] [R4.06] is refused unread above the longest length, and is never made longer', async () => {
    const asked: string[] = [];
    const watched = new RequestStates({
      async all() {
        asked.push('all');
        return keys.all();
      },
      async reread() {
        asked.push('reread');
        return keys.reread();
      },
    });
    expect(await watched.open(binding, 'A'.repeat(64 * 1024))).toBeUndefined();
    expect(await watched.seal(binding, { ...content, value: 'x'.repeat(maxStateLength) })).toBeUndefined();
    expect(asked).toEqual([]);
    for (let more = 0; more < 8; more++) {
      const state = await states.seal(binding, { ...content, value: 'x'.repeat(36_700 + more) });
      expect(state?.length).toBeLessThanOrEqual(maxStateLength);
    }
  });

  it('opens with every configured key, and is sealed with the first', async () => {
    const old = await sealed();
    const [first, second] = ['another key that is long enough', 'the key of all these tests, long enough'];
    const rotated = new RequestStates(configuredKeys([first, second]), { now: () => 999 });
    expect(await rotated.open(binding, old)).toEqual(content);
    const fresh = (await rotated.seal(binding, content)) as string;
    expect(await states.open(binding, fresh)).toBeUndefined();
    expect(await new RequestStates(configuredKeys([first]), { now: () => 999 }).open(binding, fresh)).toEqual(content);
  });

  it('[P12] reveals nothing of its content, and is never the same twice', async () => {
    const [first, second] = [await sealed(), await sealed()];
    expect(first).not.toBe(second);
    expect(Buffer.from(first, 'base64url').toString('latin1')).not.toContain('session');
  });
});
