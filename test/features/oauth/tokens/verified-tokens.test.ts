import { expect, it } from 'vitest';
import { BearerToken } from '../../../../src/core/auth/bearer-token.ts';
import { VerifiedTokens } from '../../../../src/features/oauth/tokens/token-authenticator.ts';
import type { VerifiedToken } from '../../../../src/features/oauth/tokens/verify-token.ts';

const verified = (): VerifiedToken => ({ expiresAtMs: 1_000, isCurrent: () => true }) as never;

it('keeps 4,096 tokens, and of more the ones that were used last', () => {
  const tokens = new VerifiedTokens();
  const first = verified();
  tokens.add(new BearerToken('first'), first);
  tokens.add(new BearerToken('second'), verified());
  for (let i = 2; i < 4_096; i++) tokens.add(new BearerToken(`${i}`), verified());
  expect(tokens.find(new BearerToken('first'), 0)).toBe(first);
  tokens.add(new BearerToken('one more'), verified());
  expect(tokens.find(new BearerToken('second'), 0)).toBeUndefined();
  expect(tokens.find(new BearerToken('first'), 0)).toBe(first);
  expect(tokens.find(new BearerToken('one more'), 0)).toBeDefined();
});

it('knows a token by all of its characters', () => {
  const tokens = new VerifiedTokens();
  tokens.add(new BearerToken('a.b.c'), verified());
  for (const other of ['a.b.d', 'a.b.C', 'a.b.c ', 'a.b'])
    expect(tokens.find(new BearerToken(other), 0)).toBeUndefined();
});
