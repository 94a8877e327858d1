import { h } from './dom.js';
import { time } from './formats.js';

/** The plotting library, which a script of its own has loaded. */
const { uPlot } = globalThis;

/** All plots show the same moment under the pointer. */
const cursor = { sync: { key: 'time' }, points: { size: 6 }, drag: { x: false, y: false } };

/**
 * Creates a plot over time: axes with units, a legend with the values under the pointer, and one line for each series.
 * Screen readers get one image with a description.
 * @param {{ title: string, height: number, increments?: readonly number[], hasLegend: boolean, series: readonly { key: string, label: string, color: string }[],
 *   format(value: number): string, formatAxis?(ticks: number[]): string[], nowLabel?: string, leastMax?: number, nothing: string }} options `color` is a custom property of the style sheet;
 *   `nowLabel` names the time of the values that `update` is given for a legend without a pointer; the axis reaches at least
 *   to `leastMax`, so that small differences do not look large; `nothing` is said in a plot without any value above 0
 */
export function createPlot({
  title,
  height,
  series,
  format,
  formatAxis = (ticks) => ticks.map(format),
  increments,
  hasLegend,
  nowLabel = 'now',
  leastMax = 1,
  nothing,
}) {
  const probe = h('span', { hidden: true });
  const box = h('div', { role: 'img' });
  const hint = h('p.muted.nothing', { hidden: true }, nothing);
  const element = h('figure.plot', { hidden: true }, h('figcaption', {}, title), h('div.area', {}, box, hint), probe);
  const colors = createColors(probe);
  let current = {};
  // Without a pointer, the legend shows the values that the rest of the page shows, or the newest ones.
  const formatValue = (self, value, at, index) => {
    const newestOf = () => current[series[at - 1].key] ?? self.data[at].findLast((known) => known !== null);
    const shown = index === null ? newestOf() : value;
    return shown === null || shown === undefined ? '–' : format(shown);
  };
  const axis = {
    stroke: () => colors.of('--muted'),
    grid: { stroke: () => colors.of('--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui',
  };
  let span = [0, 1];
  let plot;
  const draw = (width, data) =>
    new uPlot(
      {
        width,
        height,
        cursor,
        legend: { show: hasLegend, markers: { fill: (_, index) => colors.of(series[index - 1].color) } },
        scales: { x: { range: () => span }, y: { range: (_, _min, max) => [0, Math.max((max ?? 0) * 1.1, leastMax)] } },
        axes: [
          { ...axis, size: 28, space: 80, values: (_, ticks) => ticks.map((at) => time(at * 1_000)) },
          { ...axis, size: 64, space: 28, incrs: increments, values: (_, ticks) => formatAxis(ticks) },
        ],
        series: [
          { label: '', value: (_, at) => (at === null ? nowLabel : time(at * 1_000)) },
          ...series.map(({ label, color }) => ({
            label,
            width: 1.5,
            stroke: () => colors.of(color),
            value: formatValue,
            // A value between steps without one is on no line, so it is a point.
            points: {
              show: true,
              size: 4,
              fill: () => colors.of(color),
              filter: (self, at) => isolated(self.data[at]),
            },
          })),
        ],
      },
      data,
      box,
    );
  let newest;
  const show = () => {
    const width = Math.floor(box.clientWidth);
    if (width === 0 || newest === undefined) return; // the view is hidden
    if (plot === undefined) plot = draw(width, newest);
    else {
      if (plot.width !== width) plot.setSize({ width, height });
      plot.setData(newest);
    }
  };
  new ResizeObserver(show).observe(box);
  return {
    element,
    /**
     * @param {{ times: number[], span: [number, number], values: Record<string, (number | null)[]> }} track in seconds
     * @param {Record<string, number | null>} shown what the page shows for a series, if that is not its newest step
     */
    update({ times, span: newSpan, values }, shown = {}) {
      current = shown;
      element.hidden = false;
      span = newSpan;
      newest = [times, ...series.map(({ key }) => values[key] ?? times.map(() => null))];
      hint.hidden = series.some(({ key }) => values[key]?.some((value) => value > 0));
      box.setAttribute('aria-label', describe(title, series, values, format, { nowLabel, current }));
      show();
    },
  };
}

/** The places of the values whose neighbours are unknown. */
const isolated = (values) =>
  values.flatMap((value, index) =>
    value !== null && values[index - 1] == null && values[index + 1] == null ? [index] : [],
  );

/** Describes the newest and the highest value of each series in words. */
function describe(title, series, values, format, { nowLabel, current }) {
  const parts = series.map(({ key, label }) => {
    const known = (values[key] ?? []).filter((value) => value !== null);
    if (known.length === 0) return `${label}: no value`;
    return `${label}: ${nowLabel} ${format(current[key] ?? known.at(-1))}, maximum ${format(Math.max(...known))}`;
  });
  return `${title}. ${parts.join('; ')}.`;
}

/** Resolves the colors of the style sheet, which depend on the theme: a canvas does not know custom properties. */
function createColors(probe) {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let theme;
  let known = new Map();
  return {
    of(name) {
      const current = `${document.documentElement.dataset.theme} ${dark.matches}`;
      if (current !== theme) known = new Map();
      theme = current;
      if (!known.has(name)) {
        probe.style.color = `var(${name})`;
        known.set(name, getComputedStyle(probe).color);
      }
      return known.get(name);
    },
  };
}
