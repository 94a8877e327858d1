import { h } from './dom.js';
import { bytes, bytesAxis, duration, durationAxis, number } from './formats.js';
import { ranges } from './history.js';
import { createPlot } from './plot.js';

const calls = [
  { key: 'calls', label: 'Calls', color: '--accent' },
  { key: 'failures', label: 'Failed', color: '--bad' },
];
const times = [
  { key: 'p50Ms', label: 'Median', color: '--second' },
  { key: 'p95Ms', label: 'p95', color: '--accent' },
  { key: 'p99Ms', label: 'p99', color: '--warn' },
];
const perSecond = (value) => `${number(value)}/s`;

/** Steps between the lines of a plot of whole numbers or milliseconds, and of one of bytes. */
const wholeSteps = Array.from({ length: 27 }, (_, index) => [1, 2, 5][index % 3] * 10 ** Math.floor(index / 3));
const byteSteps = Array.from({ length: 34 }, (_, index) => 2 ** (10 + index));

/** The plots of a server or of the instance. */
export const callPlot = {
  title: 'Calls per second',
  series: calls,
  format: perSecond,
  nothing: 'No calls in this time',
};
export const timePlot = {
  title: 'Response time',
  series: times,
  format: duration,
  formatAxis: durationAxis,
  increments: wholeSteps,
  leastMax: 10,
  nowLabel: 'last 2 min',
  nothing: 'No answers in this time',
};

/** The response times of the last two minutes, as the row of a server and the figures show them. */
export const currentTimes = ({ p50Ms, p95Ms, p99Ms }) => ({ p50Ms, p95Ms, p99Ms });

export const memoryPlot = {
  title: 'Memory',
  series: [{ key: 'memoryBytes', label: 'Memory', color: '--accent' }],
  format: bytes,
  formatAxis: bytesAxis,
  increments: byteSteps,
  nothing: 'No processes in this time',
};

const instancePlots = [
  callPlot,
  timePlot,
  {
    title: 'Sessions and streams',
    series: [
      { key: 'sessions', label: 'Sessions', color: '--accent' },
      { key: 'streams', label: 'Streams', color: '--second' },
    ],
    format: number,
    increments: wholeSteps,
    nothing: 'No sessions in this time',
  },
  {
    title: 'Memory',
    series: [
      { key: 'memoryBytes', label: 'Gateway', color: '--second' },
      { key: 'childBytes', label: 'Servers', color: '--accent' },
    ],
    format: bytes,
    formatAxis: bytesAxis,
    increments: byteSteps,
    nothing: 'Not measured yet',
  },
  {
    title: 'Events to clients per second',
    series: [{ key: 'events', label: 'Events', color: '--accent' }],
    format: perSecond,
    nothing: 'No events in this time',
  },
  {
    title: 'Resumed streams and takeovers',
    series: [
      { key: 'resumes', label: 'Resumed', color: '--good' },
      { key: 'takeovers', label: 'Taken over', color: '--warn' },
    ],
    format: number,
    increments: wholeSteps,
    nothing: 'No stream was resumed in this time',
  },
];

/** The place of each chart that the figures lead to. */
const chartPlaces = { calls: 0, times: 1, sessions: 2, memory: 3 };

/**
 * Creates the plots of the instance, with the choice of the range for all plots of the page.
 * @param {import('./history.js').History} history
 */
export function createCharts(history, live) {
  let current;
  live.on('state', ({ instance }) => {
    current = currentTimes(instance);
  });
  const range = h(
    'select',
    { id: 'range', onchange: () => history.show(range.value) },
    ...Object.entries(ranges).map(([name, { label }]) => h('option', { value: name }, label)),
  );
  const plots = instancePlots.map((options) => createPlot({ ...options, height: 120, hasLegend: true }));
  history.on((trackOf) => {
    for (const plot of plots) plot.update(trackOf(''), current);
  });
  const title = h('h2', { id: 'charts-title', tabindex: '-1' }, 'Charts');
  const element = h(
    'section',
    { 'aria-labelledby': 'charts-title' },
    h('div.heading', {}, title, h('div.range', {}, h('label', { for: 'range' }, 'Range'), range)),
    h('div.charts', {}, ...plots.map(({ element }) => h('div.card', {}, element))),
  );
  return {
    element,
    /** Brings a chart to a person who was led there. */
    goTo(name) {
      title.focus();
      plots[chartPlaces[name]]?.element.scrollIntoView({ block: 'center' });
    },
  };
}
