// Files of results: one JSON line for each cell, runs one behind the other. A run begins with the line of its machine.
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './command.mjs';

export const resultsFolder = path.join(path.dirname(fileURLToPath(import.meta.url)), '../results');

/** The file that `--out` names, by a word or by its path. */
const resultsFile = (out) => (out.endsWith('.jsonl') ? out : path.join(resultsFolder, `${out}.jsonl`));

/** The same, if anything was measured. */
export function findResults(out) {
  const file = resultsFile(out);
  if (!existsSync(file))
    throw new UsageError(`There is no ${path.relative('', file)}; measure first: node bench/bench.mjs`);
  return file;
}

/** The rows of a file, in their order. */
export const readRows = (file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** A file that a run is appended to. `isNew`: nothing that is in it is kept. */
export function openResults(name, { isNew = false } = {}) {
  mkdirSync(resultsFolder, { recursive: true });
  const file = resultsFile(name);
  if (isNew) rmSync(file, { force: true });
  return { file, keep: (row) => appendFileSync(file, `${JSON.stringify(row)}\n`) };
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
