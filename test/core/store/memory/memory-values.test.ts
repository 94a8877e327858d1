import { describe, expect, it } from 'vitest';
import { createMemoryValues, maxValueBytes } from '../../../../src/core/store/memory/memory-values.ts';

describe('values in memory', () => {
  const eighth = Buffer.alloc(maxValueBytes.outcome / 8 - 1_024);

  it('[P8] drop those that were set least recently when they are too many, and none of another kind', () => {
    const values = createMemoryValues(() => 0);
    const isKept = (name: string): boolean => values.get('outcome', name) !== undefined;
    values.set('secret', 'key', Buffer.from('secret'), 1_000);
    for (let n = 0; n < 8; n++) values.set('outcome', `${n}`, eighth, 1_000);
    expect(isKept('0')).toBe(true);
    values.keep('outcome', '0', eighth, 1_000); // which is the newest now
    values.set('outcome', 'next', eighth, 1_000);
    expect(['0', '1', '2'].map(isKept)).toEqual([true, false, true]);
    expect(values.get('secret', 'key')?.toString()).toBe('secret');
  });

  it('[P8] are bounded by their names, too', () => {
    const values = createMemoryValues(() => 0);
    const count = Math.ceil(maxValueBytes.owner / 1_024) + 1;
    for (let n = 0; n < count; n++) values.set('owner', `${n}`.padStart(1_024), Buffer.alloc(0), 1_000);
    expect(values.get('owner', '0'.padStart(1_024))).toBeUndefined();
    expect(values.get('owner', `${count - 1}`.padStart(1_024))).toBeDefined();
  });

  it('give back what has had its time', () => {
    let nowMs = 0;
    const values = createMemoryValues(() => nowMs);
    values.set('outcome', 'a', eighth, 10);
    values.set('outcome', 'b', eighth, 20);
    nowMs = 10;
    values.sweep();
    expect([...values.all()].map(([, name, , ttlMs]) => [name, ttlMs])).toEqual([['b', 10]]);
  });
});
