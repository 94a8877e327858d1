// Files of results: one JSON line for each cell, runs one behind the other. A run begins with the line of its machine.
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './command.mjs';

export const resultsFolder = path.join(path.dirname(fileURLToPath(import.meta.url)), '../results');

export const resultsFile = (name) => path.join(resultsFolder, `${name}.jsonl`);

/** The file of results that a word names: by its path, or as `--out` did. */
export function findResults(word) {
  const places = [word, resultsFile(word)];
  const found = places.find((place) => statSync(place, { throwIfNoEntry: false })?.isFile());
  if (found !== undefined) return found;
  const file = /\/|\.jsonl$/.test(word) ? word : path.relative('', places[1]);
  throw new UsageError(`There is no ${file}; measure first: node bench/bench.mjs, or curves.mjs`);
}

/** The rows of files, in their order. */
export const readRows = (files) =>
  files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, i) => (line === '' ? [] : [rowOf(line, `line ${i + 1} of ${file}`)])),
  );

function rowOf(line, where) {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new UsageError(`There is no JSON in ${where}: is that a file of results? (${error.message.split('\n', 1)})`);
  }
}

/** The rows of the last run in a file, the first of which is that of its machine; none if there is no run. */
export function lastRunIn(file) {
  const rows = existsSync(file) ? readRows([file]) : [];
  const begin = rows.findLastIndex(({ machine }) => machine !== undefined);
  return begin === -1 ? [] : rows.slice(begin);
}

/**
 * A file that a run is appended to.
 * @param isNew nothing that is in it is kept
 * @param isResumed goes on with the last run in it
 */
export function openResults(name, { isNew = false, isResumed = false } = {}) {
  mkdirSync(resultsFolder, { recursive: true });
  const file = resultsFile(name);
  if (isNew) rmSync(file, { force: true });
  const done = new Set((isResumed ? lastRunIn(file) : []).map(keyOf));
  return {
    file,
    /** True if there is no run to go on with. */
    isFirst: done.size === 0,
    has: (round, scenario, target) => done.has(keyOf({ round, scenario: scenario.name, target: target.name })),
    keep: (row) => appendFileSync(file, `${JSON.stringify(row)}\n`),
  };
}

const keyOf = ({ round, scenario, target }) => `${round}/${scenario}/${target}`;

/**
 * The newest of each part: the cells of a scenario and a target are those of the last run that has any. `round` of each says in which round of
 * which run it was measured, and is the same for cells to be compared. A cell that was measured twice in a round counts as the last time.
 */
export function newestCells(rows) {
  const all = new Map();
  const lastRun = new Map();
  let run = 0;
  for (const row of rows) {
    if (row.machine !== undefined) run += 1;
    if (row.scenario === undefined || row.target === undefined) continue;
    all.set(`${run}/${keyOf(row)}`, { ...row, run, round: `${run}/${row.round}` });
    lastRun.set(partOf(row), run);
  }
  const newest = [...all.values()].filter((row) => lastRun.get(partOf(row)) === row.run);
  /** The cell of the same scenario and round, of another target; also of a run that is not that target's newest. */
  const beside = ({ run: of, round, scenario }, target) =>
    all.get(`${of}/${round.split('/')[1]}/${scenario}/${target}`);
  return { cells: newest, beside };
}

const partOf = ({ scenario, target }) => `${scenario}/${target}`;
