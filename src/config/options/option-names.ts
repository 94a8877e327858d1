import type { ConfigurationIssue, NameOf } from '../issues.ts';

/**
 * Flags that are not named by their keys: one is given for each header, while the file has all of them in one place; one that
 * turns off what its key names; and the file of keys, since no keys can be given on the command line.
 */
const flagNames = new Map([
  ['headers', '--header'],
  ['forwardHeaders', '--forward-header'],
  ['credentials', '--credential'],
  ['apiKeysFile', '--api-keys'],
  ['sse', '--no-sse'],
  ['ws', '--no-ws'],
]);

/** `maxBodyBytes` → `--max-body-bytes`. */
export const flagOf = (key: string): string =>
  flagNames.get(key) ?? `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** `maxBodyBytes` → `GANGWAY_MAX_BODY_BYTES`. */
export const environmentNameOf = (key: string): string =>
  `GANGWAY_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

/**
 * What options are called where a fault stands, so that who mistook himself on the command line is told in its words.
 * @param hasFile there is a file, where all stands that is neither in the environment nor an option of the command line
 */
export function namesAt(path: ConfigurationIssue['path'], hasFile: boolean): NameOf {
  if (path.startsWith('GANGWAY_')) return environmentNameOf;
  return path.startsWith('--') || !hasFile ? flagOf : (key) => key;
}

/** Names longer than this are not compared: no known one comes near, and the comparison is quadratic. */
const maxComparedLength = 64;

/** The known name that an unknown one was probably meant to be, or undefined if none is near. */
export function nearestName(unknown: string, known: Iterable<string>): string | undefined {
  if (unknown.length > maxComparedLength) return undefined;
  let nearest: string | undefined;
  // Two mistakes, as in `prot`, and one more for every three letters.
  let least = Math.floor(plain(unknown).length / 3) + 2;
  for (const name of known) {
    const distance = editDistance(plain(unknown), plain(name));
    if (distance < least) [nearest, least] = [name, distance];
  }
  return (
    nearest ?? [...known].find((name) => unknown.length >= minStartLength && plain(name).startsWith(plain(unknown)))
  );
}

/** Shorter ones are the beginning of too many names. */
const minStartLength = 4;

/** What `max_body_bytes`, `MaxBodyBytes` and `--max-body-bytes` have in common. */
const plain = (name: string): string => name.toLowerCase().replace(/[-_]/g, '');

/** Levenshtein's distance, one row at a time. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let column = 1; column < row.length; column++) {
      const replaced = at(row, column - 1) + (to[column - 1] === letter ? 0 : 1);
      next.push(Math.min(replaced, at(row, column) + 1, at(next, column - 1) + 1));
    }
    row = next;
  }
  return at(row, row.length - 1);
}

const at = (row: readonly number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY;
