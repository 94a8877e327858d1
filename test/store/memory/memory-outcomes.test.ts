import { describe, expect, it } from 'vitest';
import { createMemoryOutcomes, maxOutcomeBytes } from '../../../src/store/memory/memory-outcomes.ts';

describe('outcomes in memory', () => {
  it('[P8] forget those that were told first when they are too many, and no other', async () => {
    const outcomes = createMemoryOutcomes(() => 0);
    const eighth = Buffer.alloc(maxOutcomeBytes / 8);
    const kept = async (call: string): Promise<boolean> => (await outcomes.find(call, 1)) !== undefined;
    for (let n = 0; n < 8; n++) await outcomes.keep(`${n}`, 1, eighth, 1_000);
    expect(await kept('0')).toBe(true);
    await outcomes.keep('0', 2, Buffer.from('again'), 1_000); // which is the newest now
    expect([await kept('0'), await kept('1'), await kept('2')]).toEqual([true, false, true]);
    await outcomes.keep('0', 1, eighth, 1_000); // known already: it takes no more room
    expect(await kept('2')).toBe(true);
  });

  it('give back what has had its time', async () => {
    let nowMs = 0;
    const outcomes = createMemoryOutcomes(() => nowMs);
    await outcomes.keep('a', 1, Buffer.alloc(maxOutcomeBytes), 10);
    nowMs = 10;
    outcomes.sweep();
    await outcomes.keep('b', 1, Buffer.alloc(maxOutcomeBytes), 10);
    await outcomes.keep('a', 2, Buffer.alloc(0), 10);
    expect(await outcomes.find('b', 1)).toBeDefined();
    expect(await outcomes.find('a', 1)).toBeUndefined();
  });
});
