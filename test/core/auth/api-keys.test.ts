import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ApiKeys, digestOfKey } from '../../../src/core/auth/api-keys.ts';
import { BearerToken } from '../../../src/core/auth/bearer-token.ts';
import type { Identity } from '../../../src/core/auth/identity.ts';
import { requestWith } from './authentication-request.ts';

const key = (name: string, secret: string, more: object = {}) => ({ name, sha256: digestOfKey(secret), ...more });
const shown = (keys: ApiKeys, token?: string) =>
  keys.authenticator(requestWith(), token === undefined ? undefined : new BearerToken(token));

describe('API keys', () => {
  it('are those whose hash is known, each with its name and scopes', () => {
    const keys = new ApiKeys([key('alice', 'one'), key('bob', 'two', { scopes: ['read'] })]);
    expect(shown(keys, 'one')).toEqual({
      principal: { issuer: 'api-key', subject: 'alice', client: '' },
      scopes: undefined,
      expiresAtMs: undefined,
      claims: {},
    });
    expect((shown(keys, 'two') as Identity).scopes).toEqual(new Set(['read']));
    expect([shown(keys, 'three'), shown(keys, undefined), shown(keys, digestOfKey('one'))]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('[B19] are no good any more once they expire', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const keys = new ApiKeys([key('alice', 'one', { expiresAtMs: Date.now() + 1_000 })]);
    expect(shown(keys, 'one')).toMatchObject({ principal: { subject: 'alice' } });
    vi.advanceTimersByTime(1_000);
    expect(shown(keys, 'one')).toMatchObject({
      reason: 'credentials_invalid',
      detail: { why: 'expired_key', seen: { name: 'alice' } },
    });
  });

  it('[S03] end at once for who showed one that is removed or changed, and nobody else', () => {
    const old = [key('alice', 'one'), key('bob', 'two'), key('carol', 'three', { scopes: ['a'] }), key('dave', 'four')];
    const keys = new ApiKeys(old);
    const [alice, bob, carol, dave] = ['one', 'two', 'three', 'four'].map((token) => shown(keys, token) as Identity);
    keys.replace([key('alice', 'one'), key('carol', 'three', { scopes: ['b'] }), key('eve', 'four')]);
    expect([alice, bob, carol, dave].map((identity) => identity?.expiresAtMs)).toEqual([undefined, 0, 0, 0]);
    expect(shown(keys, 'one')).toBe(alice);
    expect(shown(keys, 'two')).toBeUndefined();
    expect(shown(keys, 'three')).toMatchObject({ scopes: new Set(['b']), expiresAtMs: undefined });
    expect(shown(keys, 'four')).toMatchObject({ principal: { subject: 'eve' } });
  });

  it('of one name are one principal, so that a key can take the place of another', () => {
    const keys = new ApiKeys([key('alice', 'one'), key('alice', 'two')]);
    expect((shown(keys, 'one') as Identity).principal).toEqual((shown(keys, 'two') as Identity).principal);
  });
});
