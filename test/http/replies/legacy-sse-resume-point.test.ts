import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  beginning,
  formatPlace,
  isToken,
  newToken,
  parsePlace,
} from '../../../src/http/replies/legacy-sse-resume-point.ts';
import { formatEventId } from '../../../src/protocol/wire/event-id.ts';

describe('an endpoint token', () => {
  it('[S01b] is 256 random bits in visible characters that need no escape in a URL', () => {
    const tokens = new Set(Array.from({ length: 10_000 }, newToken));
    expect(tokens.size).toBe(10_000);
    for (const token of tokens) expect([isToken(token), encodeURIComponent(token)]).toEqual([true, token]);
  });

  it.each(['', 'A', 'A'.repeat(42), 'A'.repeat(44), `${'A'.repeat(42)}B`, `${'A'.repeat(42)}+`, `\n${'A'.repeat(43)}`])(
    'is nothing else: %j',
    (text) => {
      expect(isToken(text)).toBe(false);
    },
  );
});

describe('a place on the stream', () => {
  const token = newToken();
  const place = fc.record({ stream: fc.nat(), epoch: fc.maxSafeNat(), seq: fc.maxSafeNat() });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(place, (after) => {
        expect(parsePlace(formatPlace(token, formatEventId(after.stream, after)))).toEqual({ token, after });
      }),
    );
    expect(parsePlace(`${token}.0.0-0`)).toEqual({ token, after: beginning });
  });

  it.each([
    '',
    '.',
    token,
    `${token}.`,
    '0.1-1',
    `.0.1-1`,
    `${token}.0.1-1 `,
    `${token}.0.-1-1`,
    `${token}.0.1-1.0.1-1`,
    `${token}${token}.0.1-1`,
    `${token}.0.1-${2n ** 64n}`,
    `${token}.${'1'.repeat(8_000)}`,
  ])('is nothing else: %j', (text) => {
    expect(parsePlace(text)).toBeUndefined();
  });
});
