// The growth curves of results: the points of each line, its slope, and a table.
import { axes, cellAt } from '../axes.mjs';
import { newestCells } from '../lib/results.mjs';
import { median, number } from './measures.mjs';
import { describe } from './report.mjs';

/** At the large end, where what is there once no longer counts. */
const slopePoints = 3;

/** The tables of all axes that were measured. */
export function curvesOf(rows) {
  const tables = Object.values(axes).flatMap((axis) => {
    const lines = linesOf(axis, rows);
    return lines.length === 0 ? [] : [`**${axis.title}** (${axis.note})\n\n${tableOf(axis, lines)}`];
  });
  return [describe(rows, []), ...tables].join('\n\n');
}

/** The lines of an axis with their points `[x, cost of a unit]`, medians over the rounds; without lines that have none. */
function linesOf(axis, rows) {
  const { cells } = newestCells(rows);
  const rowsAt = ({ scenario, target }) =>
    cells.filter((cell) => cell.scenario === scenario.name && cell.target === target.name && cell.failed === undefined);
  return axis.lines
    .map((line) => ({ name: line.name, points: pointsOf(axis, line, rowsAt) }))
    .filter(({ points }) => points.length > 0);
}

function pointsOf({ x, cost }, line, rowsAt) {
  const pointAt = (tick) => {
    const cell = cellAt(line, tick);
    return [tick, cell && median(rowsAt(cell).map((row) => cost(row, tick)))];
  };
  return x.ticks.map(pointAt).filter(isPoint);
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

function tableOf(axis, lines) {
  const ticks = axis.x.ticks.filter((tick) => lines.some(({ points }) => points.some(([x]) => x === tick)));
  const rows = lines.map(({ name, points }) => {
    const values = ticks.map((tick) => points.find(([x]) => x === tick)?.[1]);
    const slope = slopeOf(points);
    const texts = [...values.map((value) => (value === undefined ? '–' : number(value))), slope?.toFixed(2) ?? '–'];
    return `| ${name} | ${texts.join(' | ')} |`;
  });
  const head = `| ${axis.x.label} | ${ticks.map((tick) => inUnits(tick, axis.x)).join(' | ')} | slope |`;
  return [head, `|:--|${'--:|'.repeat(ticks.length + 1)}`, ...rows].join('\n');
}

const inUnits = (tick, { unit = 1 }) => (tick / unit).toLocaleString('en', { maximumFractionDigits: 1 });
