import { expect, test } from 'vitest';
import { type FindMeter, meterIn } from '../../../../src/core/util/telemetry/meter.ts';

test.each([0, 1, 2, 3])('an amount is added to the meters of %i takers, each found once', (count) => {
  const sums = new Map<string, number>();
  let found = 0;
  const takers = Array.from(
    { length: count },
    (_, taker): FindMeter<'a' | 'b'> =>
      (name, ...labels) => {
        found += 1;
        const key = [taker, name, ...labels].join(' ');
        return { add: (amount) => void sums.set(key, (sums.get(key) ?? 0) + amount) };
      },
  );
  const meter = meterIn(takers)('a', 'x');
  meter.add(2);
  meter.add(3);
  expect(found).toBe(count);
  expect([...sums]).toEqual(Array.from({ length: count }, (_, taker) => [`${taker} a x`, 5]));
});
