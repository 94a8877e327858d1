import { describe, expect, it } from 'vitest';
import { BoundedMap, budgetOfTexts, emptyEntryBytes } from '../../../src/core/util/bounded-map.ts';

const filled = () => new BoundedMap<string, number>(2).set('a', 1).set('b', 2);

it('[P8] drops the oldest entry for a new key', () => {
  expect([...filled().set('c', 3)]).toEqual([
    ['b', 2],
    ['c', 3],
  ]);
});

it('makes the entry of a known key the newest, and drops none', () => {
  expect([...filled().set('a', 4)]).toEqual([
    ['b', 2],
    ['a', 4],
  ]);
  expect([...filled().set('a', 4).set('c', 3).keys()]).toEqual(['a', 'c']);
});

it('keeps the order and the value when the newest entry is set again', () => {
  const map = filled();
  expect([...map.set('b', 2)]).toEqual([
    ['a', 1],
    ['b', 2],
  ]);
  map.delete('b');
  expect([...map.set('b', 2).set('b', 3)]).toEqual([
    ['a', 1],
    ['b', 3],
  ]);
});

it('returns the entry that a new key would drop', () => {
  const map = filled();
  expect(map.makeRoomFor('c')).toEqual(['a', 1]);
  expect([...map.keys()]).toEqual(['b']);
  expect(map.makeRoomFor('d')).toBeUndefined();
  expect(map.makeRoomFor('b')).toBeUndefined();
});

it('drops no entry for an undefined value', () => {
  const map = new BoundedMap<string | undefined, number>(1).set(undefined, 1);
  expect([...map.set('a', 2).keys()]).toEqual(['a']);
});

describe('a table with a budget of bytes', () => {
  const bytesOf = (text: string): number => Buffer.byteLength(text);
  const texts = () => new BoundedMap<string, true>(100, { maxBytes: 10, maxEntryBytes: 4, bytesOf });

  it('[P8] drops the oldest entries for a new one, and keeps none that is too large', () => {
    const map = texts().set('aaaa', true).set('bbbb', true).set('cccc', true);
    expect([[...map.keys()], map.bytes]).toEqual([['bbbb', 'cccc'], 8]);
    expect([...map.set('ddddd', true).keys()]).toEqual(['bbbb', 'cccc']);
    expect(map.set('bbbb', true).bytes).toBe(8);
  });

  it('[P8] counts bytes, not characters, and returns them with each entry that goes', () => {
    const map = texts().set('ü€', true);
    expect([map.size, map.bytes]).toEqual([0, 0]);
    map.set('üü', true).set('a', true);
    expect(map.bytes).toBe(5);
    map.delete('üü');
    expect(map.bytes).toBe(1);
    map.clear();
    expect(map.bytes).toBe(0);
  });

  it('[P8] counts what empty texts take', () => {
    const map = new BoundedMap<string, true>(100, budgetOfTexts(2 * emptyEntryBytes, 0));
    expect([...map.set('', true).set('a', true).keys()]).toEqual(['']);
  });

  it('knows whether an entry drops others', () => {
    const map = texts().set('aaaa', true).set('bbbb', true);
    expect(['cc', 'ccc', 'aaaa', 'ccccc'].map((key) => map.hasRoomFor(key, true))).toEqual([true, false, true, false]);
  });
});
