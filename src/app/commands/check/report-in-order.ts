/**
 * Works on all items, so many at once, and tells what came of each in the order of the items, as soon as all before it are
 * told. Rejects as the first work that does.
 */
export async function reportInOrder<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
  tell: (result: Result) => void,
): Promise<void> {
  const waiting = new Map<number, () => void>();
  const left = items.entries(); // one for all workers: each takes the next
  let next = 0;
  const worker = async (): Promise<void> => {
    for (const [index, item] of left) {
      const result = await work(item);
      waiting.set(index, () => tell(result));
      for (let turn = waiting.get(next); turn !== undefined; turn = waiting.get(next)) {
        waiting.delete(next++);
        turn();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}
