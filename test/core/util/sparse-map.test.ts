import { describe, expect, it } from 'vitest';
import { SparseMap } from '../../../src/core/util/sparse-map.ts';

describe('a map that is mostly empty', () => {
  it('is read as an empty one before the first entry, and after it was cleared', () => {
    const map = new SparseMap<string, number>();
    const look = () => [map.size, map.has('a'), map.get('a'), map.delete('a'), [...map], [...map.keys()]];
    expect(look()).toEqual([0, false, undefined, false, [], []]);
    map.set('a', 1).clear();
    expect(look()).toEqual([0, false, undefined, false, [], []]);
    expect(new SparseMap<string, number>().size).toBe(0); // none shares its entries with another one
  });

  it('is a map with entries, in their order', () => {
    const map = new SparseMap([
      ['b', 1],
      ['a', 2],
    ]);
    map.set('b', 3);
    const seen: unknown[] = [];
    map.forEach((value, key) => void seen.push([key, value]));
    expect([map.size, map.has('a'), map.get('b'), [...map.values()]]).toEqual([2, true, 3, [3, 2]]);
    expect([[...map], [...map.entries()], seen]).toEqual(
      Array(3).fill([
        ['b', 3],
        ['a', 2],
      ]),
    );
    expect([map.delete('b'), map.delete('b'), [...map.keys()]]).toEqual([true, false, ['a']]);
  });
});
