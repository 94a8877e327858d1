// The bars as a table: what was measured last, whether it is enough, and how to measure it again.
import { bars } from '../bars.mjs';
import { newestCells } from '../lib/results.mjs';
import { scenarios as allScenarios } from '../scenarios.mjs';
import { median, number } from './measures.mjs';

/** Fewer rounds than this are no measurement. */
const leastRounds = 5;

/** @param rows of results, as files have them */
export function barsTable(rows) {
  const { cells, beside } = newestCells(rows);
  const lines = bars.map((bar) => lineOf(bar, resultOf(bar, cells, beside)));
  return ['| Quantity | Bar | Measured | Met | Command |', '|:--|:--|--:|:--|:--|', ...lines].join('\n');
}

/** The worst of a bar's scenarios; undefined if one of them was not measured. */
function resultOf({ scenarios, target, value, against, atMost }, cells, beside) {
  const results = scenarios.map((scenario) => {
    const values = cells
      .filter((cell) => cell.scenario === scenario && cell.target === target && cell.failed === undefined)
      .map((cell) => (against === undefined ? value(cell) : value(cell) / bestOf(cell, { against, value, atMost })))
      .filter(Number.isFinite);
    return { scenario, middle: median(values), rounds: values.length };
  });
  if (results.some(({ middle }) => middle === undefined)) return undefined;
  return results.sort((a, b) => (atMost === undefined ? a.middle - b.middle : b.middle - a.middle))[0];

  function bestOf(cell, { against: names, value: of, atMost: most }) {
    const others = names.map((name) => of(beside(cell, name) ?? {})).filter(Number.isFinite);
    return others.length === 0 ? undefined : most === undefined ? Math.max(...others) : Math.min(...others);
  }
}

function lineOf(bar, result) {
  const { what, atLeast, atMost, unit } = bar;
  const hasBar = atLeast !== undefined || atMost !== undefined;
  const wanted = hasBar
    ? `${atLeast === undefined ? '≤' : '≥'} ${atLeast ?? atMost}${unit ? ` ${unit}` : ''}`
    : 'no bar';
  return `| ${what} | ${wanted} | ${measured(bar, result)} | ${hasBar ? verdict(bar, result) : ''} | \`${commandOf(bar)}\` |`;
}

function measured({ scenarios }, result) {
  if (result === undefined) return '–';
  const kind = scenarios.length > 1 ? ` (${result.scenario})` : '';
  return `${number(result.middle)}${kind}`;
}

function verdict({ atLeast = 0, atMost = Number.POSITIVE_INFINITY }, result) {
  if (result === undefined) return 'not measured';
  const isMet = result.middle >= atLeast && result.middle <= atMost;
  const rounds = result.rounds < leastRounds ? `, ${result.rounds} of ${leastRounds} rounds` : '';
  return `${isMet ? 'yes' : '**no**'}${rounds}`;
}

/** With all that these cells are compared with by any bar: measured again without, they would have no ratio to it. */
function commandOf({ scenarios, target, command }) {
  if (command !== undefined) return command;
  const same = bars.filter((bar) => bar.target === target && bar.scenarios.some((name) => scenarios.includes(name)));
  const all = new Set([target, ...same.flatMap(({ against = [] }) => against)]);
  return `node bench/bench.mjs --rounds ${leastRounds} --scenario ${scenariosWord(scenarios)} --target ${[...all].join(',')}`;
}

/** The scenarios as `--scenario` takes them: by what they begin with, if no others do. */
function scenariosWord(scenarios) {
  const start = scenarios[0].replace(/[a-z]+$/, '');
  const same = Object.keys(allScenarios).filter((name) => name.startsWith(start));
  const isAll = start !== '' && same.length === scenarios.length && scenarios.every((name) => same.includes(name));
  return isAll && same.length > 1 ? `'${start}*'` : scenarios.join(',');
}
