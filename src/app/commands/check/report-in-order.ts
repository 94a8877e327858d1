/**
 * Works on all items, at most `atOnce` at a time. Reports each result in the order of the items, as soon as all results
 * before it are reported. Rejects with the first failure.
 */
export async function reportInOrder<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
  report: (result: Result) => void,
): Promise<void> {
  const unreported = new Map<number, () => void>();
  const queue = items.entries(); // shared by all workers: each takes the next item
  let next = 0;
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) {
      const result = await work(item);
      unreported.set(index, () => report(result));
      for (let reportNext = unreported.get(next); reportNext !== undefined; reportNext = unreported.get(next)) {
        unreported.delete(next++);
        reportNext();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}
