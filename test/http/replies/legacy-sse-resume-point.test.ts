import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  beginningOfStream,
  formatLegacySseEventId,
  isEndpointToken,
  newEndpointToken,
  parseLegacySseEventId,
} from '../../../src/http/replies/legacy-sse-resume-point.ts';
import { formatEventId } from '../../../src/protocol/wire/event-id.ts';

describe('an endpoint token', () => {
  it('[S01b] is 256 random bits in visible characters that need no escape in a URL', () => {
    const tokens = new Set(Array.from({ length: 10_000 }, newEndpointToken));
    expect(tokens.size).toBe(10_000);
    for (const token of tokens) expect([isEndpointToken(token), encodeURIComponent(token)]).toEqual([true, token]);
  });

  it.each(['', 'A', 'A'.repeat(42), 'A'.repeat(44), `${'A'.repeat(42)}B`, `${'A'.repeat(42)}+`, `\n${'A'.repeat(43)}`])(
    'is nothing else: %j',
    (text) => {
      expect(isEndpointToken(text)).toBe(false);
    },
  );
});

describe('a place on the stream', () => {
  const token = newEndpointToken();
  const place = fc.record({ stream: fc.nat(), epoch: fc.maxSafeNat(), seq: fc.maxSafeNat() });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(place, (after) => {
        expect(parseLegacySseEventId(formatLegacySseEventId(token, formatEventId(after.stream, after)))).toEqual({
          token,
          after,
        });
      }),
    );
    expect(parseLegacySseEventId(`${token}.0.0-0`)).toEqual({ token, after: beginningOfStream });
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
    expect(parseLegacySseEventId(text)).toBeUndefined();
  });
});
