import { expect, test } from 'vitest';
import { walkPages } from '../../../src/core/protocol/list-page.ts';

/** Walks through pages with these next cursors, and returns the cursors that were asked for with the end. */
async function walk(next: (page: number) => string | undefined | 'unread') {
  const asked: (string | undefined)[] = [];
  const end = await walkPages(async (cursor) => {
    asked.push(cursor);
    const found = next(asked.length);
    return found === 'unread' ? found : { nextCursor: found };
  });
  return { asked, end };
}

test.each([
  ['the last page', ['b', 'c', undefined], [undefined, 'b', 'c'], 'last'],
  ['an empty cursor', ['b', ''], [undefined, 'b'], 'last'],
  ['a page that was not read', ['b', 'unread'], [undefined, 'b'], 'unread'],
  ['a cursor that was followed before', ['b', 'c', 'b'], [undefined, 'b', 'c'], 'circle'],
])('a walk through the pages of a list ends at %s', async (_, next, asked, end) => {
  expect(await walk((page) => next[page - 1])).toEqual({ asked, end });
});

test('[P8] a walk through a list without end reads 100 pages', async () => {
  const { asked, end } = await walk((page) => `${page}`);
  expect([asked.length, end]).toEqual([100, 'many']);
});
