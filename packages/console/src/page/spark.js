import { number } from './formats.js';

/** The bars of a spark line: a person reads a trend, not a value. */
const bars = 48;
const height = 16;

const create = (tag, attributes) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

/** Sums up a series in a few bars: each has the highest of its steps. */
export function summarize(values, count) {
  const width = values.length / count;
  return Array.from({ length: count }, (_, bar) =>
    values
      .slice(Math.floor(bar * width), Math.max(Math.floor(bar * width) + 1, Math.floor((bar + 1) * width)))
      .reduce((highest, value) => Math.max(highest, value ?? 0), 0),
  );
}

/** Puts a series at the end of its range: the gateway may not have run for so long. */
export const fillRange = (values = [], steps = values.length) => [
  ...new Array(Math.max(0, steps - values.length)).fill(null),
  ...values,
];

/** The path of all bars that have a value: one element, because there is a line for each server. */
const pathOf = (values, highest) =>
  values
    .map((value, bar) => [bar, Math.max(1, (value / highest) * height), value])
    .filter(([, , value]) => value > 0)
    .map(([bar, size]) => `M${bar} ${height}v${-size.toFixed(1)}h.7v${size.toFixed(1)}z`)
    .join('');

/** Creates the spark line of a server: its calls over the range of the charts, and the failed ones in red. */
export function createSpark() {
  const calls = create('path', { class: 'calls' });
  const failures = create('path', { class: 'failures' });
  const attributes = { viewBox: `0 0 ${bars} ${height}`, preserveAspectRatio: 'none', class: 'spark', role: 'img' };
  const element = create('svg', attributes);
  element.append(calls, failures);
  element.setAttribute('aria-label', 'No calls');
  return {
    element,
    /** @param {string} label the range, such as `5 minutes` */
    update({ values, steps }, label) {
      const all = summarize(fillRange(values.calls, steps), bars);
      const failed = summarize(fillRange(values.failures, steps), bars);
      const highest = Math.max(...all);
      const text =
        highest === 0
          ? `No calls in ${label}`
          : `Calls in ${label}: at most ${number(highest)}/s${Math.max(...failed) > 0 ? `, failed at most ${number(Math.max(...failed))}/s` : ''}`;
      if (element.getAttribute('aria-label') !== text) element.setAttribute('aria-label', text);
      calls.setAttribute('d', pathOf(all, highest));
      failures.setAttribute('d', pathOf(failed, highest));
    },
  };
}
