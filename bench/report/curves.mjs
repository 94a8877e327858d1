// The growth curves of results: the points of each line, its slope, and a table.
import { cellAt } from '../axes.mjs';
import { newestCells } from '../lib/results.mjs';
import { median, number } from './measures.mjs';

/** At the large end, where what is there once no longer counts. */
const slopePoints = 3;

/** The lines of an axis with their points `[x, cost of a unit]`, medians over the rounds; without lines that have none. */
export function linesOf(axis, rows) {
  const { cells } = newestCells(rows);
  const rowsAt = ({ scenario, target }) =>
    cells.filter((cell) => cell.scenario === scenario.name && cell.target === target.name && cell.failed === undefined);
  return axis.lines
    .map((line) => ({ name: line.name, points: pointsOf(axis, line, rowsAt) }))
    .filter(({ points }) => points.length > 0);
}

function pointsOf({ x, stepsOf, cost }, line, rowsAt) {
  if (stepsOf !== undefined) {
    const all = rowsAt(cellAt(line, x.ticks[0])).flatMap((row) => stepsOf(row) ?? []);
    return x.ticks
      .map((tick) => [tick, median(all.filter(([at]) => at === tick).map(([, value]) => value))])
      .filter(isPoint);
  }
  return x.ticks
    .map((tick) => {
      const cell = cellAt(line, tick);
      return [tick, cell && median(rowsAt(cell).map((row) => (line.cost ?? cost)(row, tick)))];
    })
    .filter(isPoint);
}

const isPoint = ([, value]) => Number.isFinite(value) && value > 0;

/** How the cost of a unit grows with the number of units: the slope of a line through the logarithms of the last points. */
export function slopeOf(points) {
  const last = points.slice(-slopePoints).map(([x, y]) => [Math.log(x), Math.log(y)]);
  if (last.length < 2) return undefined;
  const [meanX, meanY] = [0, 1].map((i) => last.reduce((sum, point) => sum + point[i], 0) / last.length);
  const over = last.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return over / last.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

export function tableOf(axis, lines) {
  const ticks = axis.x.ticks.filter((tick) => lines.some(({ points }) => points.some(([x]) => x === tick)));
  const rows = lines.map(({ name, points }) => {
    const values = ticks.map((tick) => points.find(([x]) => x === tick)?.[1]);
    const slope = slopeOf(points);
    const texts = [...values.map((value) => (value === undefined ? '–' : number(value))), slope?.toFixed(2) ?? '–'];
    return `| ${name} | ${texts.join(' | ')} |`;
  });
  const head = `| ${axis.x.label} | ${ticks.map(short).join(' | ')} | slope |`;
  return [head, `|:--|${'--:|'.repeat(ticks.length + 1)}`, ...rows].join('\n');
}

/** `1500000` as `1.5M`; sizes that are powers of two as `64Ki`. */
function short(value) {
  for (const [unit, sign] of [
    [2 ** 20, 'Mi'],
    [2 ** 10, 'Ki'],
  ]) {
    if (value >= unit && value % unit === 0) return `${value / unit}${sign}`;
  }
  for (const [unit, sign] of [
    [1e6, 'M'],
    [1e3, 'k'],
  ]) {
    if (value >= unit) return `${Number((value / unit).toPrecision(3))}${sign}`;
  }
  return `${Number(value.toPrecision(3))}`;
}
