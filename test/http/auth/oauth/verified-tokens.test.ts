import { expect, it } from 'vitest';
import { VerifiedTokens } from '../../../../src/http/auth/oauth/verified-tokens.ts';
import type { VerifiedToken } from '../../../../src/http/auth/oauth/verify-token.ts';

const keys = {};
const verified = (): VerifiedToken => ({ expiresAtMs: 1_000, issuer: { current: keys }, keys }) as never;

it('keeps 4,096 tokens, and of more the ones that were used last', () => {
  const tokens = new VerifiedTokens();
  const first = verified();
  tokens.add('first', first);
  tokens.add('second', verified());
  for (let i = 2; i < 4_096; i++) tokens.add(`${i}`, verified());
  expect(tokens.find('first', 0)).toBe(first);
  tokens.add('one more', verified());
  expect(tokens.find('second', 0)).toBeUndefined();
  expect(tokens.find('first', 0)).toBe(first);
  expect(tokens.find('one more', 0)).toBeDefined();
});

it('knows a token by all of its characters', () => {
  const tokens = new VerifiedTokens();
  tokens.add('a.b.c', verified());
  for (const other of ['a.b.d', 'a.b.C', 'a.b.c ', 'a.b']) expect(tokens.find(other, 0)).toBeUndefined();
});
