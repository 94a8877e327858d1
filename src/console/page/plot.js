const svg = 'http://www.w3.org/2000/svg';
const width = 240;
const height = 44;

/**
 * Creates a small plot: one line for each series over the same time, with the newest value at the right. Screen readers
 * get one image with a description.
 * @param {readonly string[]} classes one for each series
 */
export function createPlot(classes) {
  const element = draw('svg', {
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: 'none',
    role: 'img',
    class: 'plot',
  });
  const area = draw('path', { class: 'area' });
  const lines = classes.map((name) => draw('path', { class: name }));
  element.append(area, ...lines);
  return {
    element,
    /** @param {readonly (readonly (number | null)[])[]} series null for a second without a value */
    update(series, label) {
      const highest = Math.max(0, ...series.flat().map((value) => value ?? 0));
      const points = series.map((values) => pointsOf(values, highest));
      for (const [index, line] of lines.entries()) line.setAttribute('d', pathOf(points[index]));
      area.setAttribute('d', classes.length === 1 ? areaOf(points[0]) : '');
      element.setAttribute('aria-label', label);
    },
  };
}

function draw(name, attributes) {
  const element = document.createElementNS(svg, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** Returns runs of points. A second without a value ends a run. */
function pointsOf(values, highest) {
  const runs = [[]];
  for (const [index, value] of values.entries()) {
    if (value === null) runs.push([]);
    else {
      const x = (index / Math.max(1, values.length - 1)) * width;
      const y = height - 2 - (highest === 0 ? 0 : (value / highest) * (height - 6));
      runs.at(-1).push([Math.round(x * 10) / 10, Math.round(y * 10) / 10]);
    }
  }
  return runs.filter((run) => run.length > 0);
}

/** A single point is drawn as a short dash. */
const pathOf = (runs) =>
  runs.map((run) => `M${run.map((point) => point.join(' ')).join('L')}${run.length === 1 ? 'h1' : ''}`).join('');

const areaOf = (runs) =>
  runs.map((run) => `M${run[0][0]} ${height}L${run.map((point) => point.join(' ')).join('L')}V${height}Z`).join('');
