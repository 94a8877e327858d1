import { expect, it } from 'vitest';
import { BoundedMap } from '../../src/util/bounded-map.ts';

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
