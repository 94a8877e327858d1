import { type Dirent, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { BoundedMap } from '../../../util/bounded-map.ts';
import { editDistance } from '../../../util/text/nearest-name.ts';
import { isExecutable } from './locate-program.ts';

/** The names that are compared at most, so that a huge folder in PATH does not block the gateway (P8). */
const maxNames = 20_000;

/** More proposals do not help, and lengthen the message. */
const maxProposals = 3;

/** Shorter names are similar to too many others. */
const minLength = 3;

/** Longer names are not compared, because the comparison is quadratic. */
const maxLength = 64;

/** A misspelt command fails at each session, and the folders are not read again each time. */
const known = new BoundedMap<string, readonly string[]>(32);

/**
 * Returns the programs in PATH that a misspelt name probably means, at most three. A name may have one mistake, and a
 * name of six letters or more may have two.
 * @param folders the value of PATH
 */
export function similarPrograms(name: string, folders: string): readonly string[] {
  if (name.length < minLength || name.length > maxLength || name.includes('/')) return [];
  const key = `${name}\0${folders}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  const found = findSimilar(name, folders);
  known.set(key, found);
  return found;
}

function findSimilar(name: string, folders: string): readonly string[] {
  const limit = name.length < 6 ? 1 : 2;
  const byDistance = new Map<number, Set<string>>();
  let compared = 0;
  for (const folder of new Set(folders.split(':'))) {
    if (folder === '') continue; // an empty entry means the working directory, which differs between servers
    for (const entry of entriesOf(folder)) {
      compared += 1;
      if (compared > maxNames) return nearestOf(byDistance);
      if (entry.isDirectory() || Math.abs(entry.name.length - name.length) > limit) continue;
      const distance = editDistance(name, entry.name);
      if (distance > limit || !isExecutable(join(folder, entry.name))) continue;
      const same = byDistance.get(distance) ?? new Set();
      byDistance.set(distance, same.add(entry.name));
    }
  }
  return nearestOf(byDistance);
}

const nearestOf = (byDistance: ReadonlyMap<number, ReadonlySet<string>>): readonly string[] =>
  [...(byDistance.get(Math.min(...byDistance.keys())) ?? [])].sort().slice(0, maxProposals);

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // expected: PATH often names folders that do not exist or cannot be read
  }
}
