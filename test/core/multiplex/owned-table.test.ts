import { expect, it } from 'vitest';
import { OwnedTable } from '../../../src/core/multiplex/owned-table.ts';

const filled = () => {
  const table = new OwnedTable<string, number, string>(3);
  table.claim('alice', 1, 'a');
  table.claim('bob', 2, 'b');
  return table;
};

it('[P11] what belongs to another peer does not exist for the asker', () => {
  const table = filled();
  expect([table.get('alice', 1), table.get('bob', 1), table.get('bob', 3)]).toEqual(['a', undefined, undefined]);
  expect([table.take('bob', 1), table.has('alice', 1)]).toEqual([undefined, true]);
  expect([table.take('alice', 1), table.has('alice', 1)]).toEqual(['a', false]);
});

it('[P11] nobody takes over a key of another peer, until its entry ends', () => {
  const table = filled();
  expect([table.claim('bob', 1, 'mine'), table.get('alice', 1), table.ownerOf(1)]).toEqual([false, 'a', 'alice']);
  table.release('alice');
  expect([table.claim('bob', 1, 'mine'), table.keysOf('bob')]).toEqual([true, [2, 1]]);
});

it('[P8] drops the oldest entry of a full table', () => {
  const table = filled();
  table.claim('bob', 3, 'c');
  table.claim('bob', 4, 'd');
  expect([table.size, table.ownerOf(1), table.isFreeFor('bob', 1)]).toEqual([3, undefined, true]);
});
