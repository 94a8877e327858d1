import type { ConfigurationIssue, NameOf } from '../issues.ts';

/**
 * Flags whose names differ from their keys. A repeatable flag has a singular name. A flag that turns a feature off
 * begins with `--no-`. `--api-keys` is short because the command line accepts no keys themselves.
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
 * The option names of the source with a fault, so that a message about the command line names flags.
 * @param hasFile true if there is a configuration file. A path of neither the environment nor a flag is in the file
 * then.
 */
export function namesAt(path: ConfigurationIssue['path'], hasFile: boolean): NameOf {
  if (path.startsWith('GANGWAY_')) return environmentNameOf;
  return path.startsWith('--') || !hasFile ? flagOf : (key) => key;
}

/** Longer names are not compared: no known name is that long, and the comparison is quadratic. */
const maxComparedLength = 64;

/** The known name that the user probably meant, or undefined if none is similar. */
export function nearestName(unknown: string, known: Iterable<string>): string | undefined {
  if (unknown.length > maxComparedLength) return undefined;
  let nearest: string | undefined;
  // The distance must be smaller than 2, plus 1 for every three letters: two mistakes, as in `prot`, are allowed.
  let limit = Math.floor(normalize(unknown).length / 3) + 2;
  for (const name of known) {
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

/** Gives `max_body_bytes`, `MaxBodyBytes` and `--max-body-bytes` the same form. */
const normalize = (name: string): string => name.toLowerCase().replace(/[-_]/g, '');

/** The Levenshtein distance of two words. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let column = 1; column < row.length; column++) {
      const replaced = cellAt(row, column - 1) + (to[column - 1] === letter ? 0 : 1);
      next.push(Math.min(replaced, cellAt(row, column) + 1, cellAt(next, column - 1) + 1));
    }
    row = next;
  }
  return cellAt(row, row.length - 1);
}

const cellAt = (row: readonly number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY;
