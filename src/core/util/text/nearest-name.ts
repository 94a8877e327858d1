// src/core/util/text: finds the known names that are similar to a wrong one.

/** Longer names are not compared: no known name is that long, and the comparison is quadratic. */
const maxComparedLength = 64;

/** The known name that the user probably meant, or undefined if none is similar. */
export function nearestName(unknown: string, known: Iterable<string>): string | undefined {
  if (unknown.length > maxComparedLength) return undefined;
  let nearest: string | undefined;
  // The distance must be smaller than 2, plus 1 for every three letters: two mistakes, as in `prot`, are allowed. Of three
  // letters or fewer, only one may be wrong: `url` is not `era`.
  const { length } = normalize(unknown);
  let limit = length > 3 ? Math.floor(length / 3) + 2 : 2;
  for (const name of known) {
    if (Math.abs(normalize(name).length - length) >= limit) continue;
    const distance = editDistance(normalize(unknown), normalize(name));
    if (distance < limit) [nearest, limit] = [name, distance];
  }
  return (
    nearest ??
    [...known].find((name) => unknown.length >= minPrefixLength && normalize(name).startsWith(normalize(unknown)))
  );
}

/** Shorter prefixes match too many names. */
const minPrefixLength = 4;

/** Gives `max_body_bytes`, `MaxBodyBytes` and `--limits.request.body` the same form. */
const normalize = (name: string): string => name.toLowerCase().replace(/[-_.]/g, '');

/** The number of letters to add, remove, replace or swap with their neighbour, so that one word becomes the other. */
export function editDistance(from: string, to: string): number {
  let earlier: readonly number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let index = 0; index < from.length; index++) {
    const next = [index + 1];
    for (let column = 1; column < row.length; column++) {
      const isSame = to[column - 1] === from[index];
      const isSwapped = index > 0 && to[column - 1] === from[index - 1] && to[column - 2] === from[index];
      const replaced = cellAt(row, column - 1) + (isSame ? 0 : 1);
      const swapped = isSwapped ? cellAt(earlier, column - 2) + 1 : replaced;
      next.push(Math.min(replaced, swapped, cellAt(row, column) + 1, cellAt(next, column - 1) + 1));
    }
    [earlier, row] = [row, next];
  }
  return cellAt(row, row.length - 1);
}

const cellAt = (row: readonly number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY;
