import { describe, expect, it } from 'vitest';
import { KnownByClient, KnownItems } from '../../../src/core/backend/known-items.ts';

/** Knowledge of a list with these pages. */
function knowing(...pages: readonly (readonly string[])[]) {
  const items = new KnownItems<true>(10);
  const asked: (string | undefined)[] = [];
  let duringPage = (): void => undefined;
  const readPage = async (cursor: string | undefined) => {
    asked.push(cursor);
    const at = Number(cursor ?? 0);
    const names = pages[at];
    if (names === undefined) return 'unread' as const;
    for (const name of names) items.facts.set(name, true);
    duringPage();
    return { names, nextCursor: at + 1 < pages.length ? String(at + 1) : undefined };
  };
  return {
    items,
    asked,
    read: () => items.read(readPage),
    names: () => [...items.facts.keys()],
    during: (act: () => void) => {
      duringPage = act;
    },
  };
}

describe('what is known of a list', () => {
  it('is read as a whole once for all that wait, and loses what no page has', async () => {
    const { items, asked, read, names } = knowing(['a'], ['b']);
    items.facts.set('gone', true);
    expect(items.wasReadWithin(Number.POSITIVE_INFINITY)).toBe(false);
    expect(await Promise.all([read(), read()])).toEqual([true, true]);
    expect([asked, names()]).toEqual([
      [undefined, '1'],
      ['a', 'b'],
    ]);
    expect(items.wasReadWithin(60_000)).toBe(true);
  });

  it('stays as it is if the server gives no list', async () => {
    const { items, read, names } = knowing();
    items.facts.set('known', true);
    expect([await read(), names(), items.wasReadWithin(60_000)]).toEqual([false, ['known'], false]);
  });

  it('is not whole if the list has changed while it was read', async () => {
    const { items, read, during } = knowing(['a']);
    during(() => items.forget());
    await read();
    expect([items.facts.size, items.wasReadWithin(60_000)]).toEqual([0, false]);
    during(() => undefined);
    await read();
    expect(items.wasReadWithin(60_000)).toBe(true);
  });
});

it('[P8] [P11] what is known is kept apart for each of the latest 100 clients', () => {
  const byClient = new KnownByClient(String, () => new KnownItems<true>(10));
  byClient.of(0).facts.set('a', true);
  expect([byClient.known(0)?.facts.has('a'), byClient.known(1), byClient.of(1).facts.size]).toEqual([
    true,
    undefined,
    0,
  ]);
  byClient.forget();
  expect(byClient.known(0)?.facts.size).toBe(0);
  for (let client = 2; client <= 100; client += 1) byClient.of(client);
  expect([byClient.size, byClient.known(0)]).toEqual([100, undefined]);
});
