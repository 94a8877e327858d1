// What has to be run for growth curves: each scenario once, with all targets that a line needs it for.
import { cellAt } from '../axes.mjs';

const quickTicks = 3;
const quickTimes = { warmMs: 100, runMs: 300 };
const quickIdle = { settleMs: 200, watchMs: 200 };

/** @param isQuick without the large end of each axis, and without peers */
export function groupsOf(axes, isQuick) {
  const groups = new Map();
  for (const { scenario, target } of axes.flatMap((axis) => cellsOf(axis, isQuick))) {
    const group = groups.get(scenario.name) ?? { scenario, targets: [] };
    if (!group.targets.some(({ name }) => name === target.name)) group.targets.push(target);
    groups.set(scenario.name, group);
  }
  return [...groups.values()];
}

function cellsOf({ x, lines, stepsOf }, isQuick) {
  const ticks = stepsOf === undefined ? x.ticks : x.ticks.slice(0, 1);
  const cells = ticks
    .slice(0, isQuick ? quickTicks : undefined)
    .flatMap((tick) => lines.map((line) => cellAt(line, tick)))
    .filter((cell) => cell !== undefined);
  if (!isQuick) return cells;
  return cells
    .filter(({ target }) => !target.isPeer)
    .map(({ scenario, target }) => ({ scenario: shortened(scenario), target }));
}

const shortened = ({ steps, ...scenario }) =>
  steps === undefined
    ? { ...scenario, ...quickTimes }
    : { ...scenario, ...quickIdle, steps: steps.slice(0, quickTicks) };
