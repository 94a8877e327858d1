// Lines over two logarithmic axes as an SVG that reads well on light and on dark pages.

const size = { width: 720, height: 400 };
const area = { left: 64, right: 560, top: 62, bottom: 346 };
/** Told apart by those who see colours otherwise, too; markers differ as well. The second of each is for dark pages. */
const colours = [
  ['#0072b2', '#56b4e9'],
  ['#6b6b6b', '#a8a8a8'],
  ['#d55e00', '#ff9a57'],
  ['#007a5a', '#3ecf9f'],
  ['#a3467f', '#e08cc0'],
];
const markers = [
  (x, y) => `<circle cx="${x}" cy="${y}" r="3.5"/>`,
  (x, y) => `<rect x="${x - 3.2}" y="${y - 3.2}" width="6.4" height="6.4"/>`,
  (x, y) => `<path d="M${x} ${y - 4.4}l4.2 7.4h-8.4z"/>`,
  (x, y) => `<path d="M${x} ${y - 4.6}l4.6 4.6-4.6 4.6-4.6-4.6z"/>`,
  (x, y) => `<path d="M${x} ${y + 4.4}l4.2-7.4h-8.4z"/>`,
];
const round = (value) => Math.round(value * 10) / 10;
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/**
 * @param title what is seen, in a line; `note` says more of it
 * @param x `{ label, ticks }`: the axis, and the values that it names
 * @param series `{ name, points: [[x, y], …] }`, five at most
 */
export function plot({ title, note, x, series }) {
  const points = series.flatMap((line) => line.points);
  const ys = points.map(([, value]) => value);
  const decades = axisOf(Math.min(...ys), Math.max(...ys));
  const xTicks = x.ticks.filter((tick) => points.some(([value]) => value === tick));
  const scaleX = scale([xTicks[0], xTicks.at(-1)], [area.left + 14, area.right - 14]);
  const scaleY = scale([decades[0], decades.at(-1)], [area.bottom, area.top]);
  const rows = decades.map((value) => {
    const at = scaleY(value);
    return `<path class="grid" d="M${area.left} ${at}H${area.right}"/><text x="${area.left - 8}" y="${at + 4}" text-anchor="end">${short(value)}</text>`;
  });
  const columns = xTicks.map((value) => {
    const at = scaleX(value);
    return `<path class="grid" d="M${at} ${area.top}V${area.bottom}"/><text x="${at}" y="${area.bottom + 18}" text-anchor="middle">${short(value)}</text>`;
  });
  const labels = apart(series.map((line) => scaleY(line.points.at(-1)[1])));
  const lines = series.map((line, i) => {
    const places = line.points.map(([px, py]) => [scaleX(px), scaleY(py)]);
    const path = places.map(([px, py]) => `${px} ${py}`).join('L');
    const marks = places.map(([px, py]) => markers[i](px, py)).join('');
    const name = `<text class="name" x="${area.right + 6}" y="${labels[i] + 4}">${escaped(line.name)}</text>`;
    return `<g class="s${i}"><path class="line" d="M${path}"/>${marks}${name}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style(series.length)}</style>`,
    `<rect class="page" width="${size.width}" height="${size.height}" rx="6"/>`,
    `<text class="title" x="16" y="26">${escaped(title)}</text>`,
    `<text x="16" y="44">${escaped(note)}</text>`,
    ...rows,
    ...columns,
    `<text x="${(area.left + area.right) / 2}" y="${area.bottom + 40}" text-anchor="middle">${escaped(x.label)}</text>`,
    ...lines,
    '</svg>\n',
  ].join('\n');
}

/** A logarithmic scale from values to places. */
function scale([from, to], [start, end]) {
  const span = Math.log(to / from) || 1;
  return (value) => round(start + (Math.log(value / from) / span) * (end - start));
}

/** The steps 1, 2, 5, 10 that hold all values; only the powers of ten where there would be too many. */
function axisOf(least, most) {
  const steps = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power += 1) {
    for (const digit of [1, 2, 5]) steps.push(digit * 10 ** power);
  }
  const first = steps.findLastIndex((step) => step <= least * 1.001);
  const last = steps.findIndex((step) => step >= most * 0.999);
  const within = steps.slice(first, Math.max(last, first + 1) + 1);
  if (within.length <= 8) return within;
  const tens = (value) => Math.abs(Math.log10(value) % 1) < 1e-9;
  return within.filter((value, i) => tens(value) || i === 0 || i === within.length - 1);
}

/** `1500000` as `1.5M`; sizes that are powers of two as `64Ki`. */
export function short(value) {
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

/** Moves the places of labels as far from each other as a line of text is high. */
function apart(places) {
  const height = 15;
  const sorted = places.map((at, i) => ({ at, i })).sort((a, b) => a.at - b.at);
  for (let i = 1; i < sorted.length; i += 1) sorted[i].at = Math.max(sorted[i].at, sorted[i - 1].at + height);
  const over = Math.max(0, (sorted.at(-1)?.at ?? 0) - area.bottom);
  const moved = [];
  for (const { at, i } of sorted) moved[i] = round(at - over);
  return moved;
}

function style(count) {
  const rulesOf = (which) =>
    colours
      .slice(0, count)
      .map((pair, i) => `.s${i}{fill:${pair[which]};stroke:${pair[which]}}`)
      .join('');
  return [
    'text{font:12px system-ui,sans-serif;fill:#57606a;stroke:none}.title{font-weight:600;font-size:14px;fill:#1f2328}',
    '.name{font-weight:600;fill:inherit}.page{fill:#fff}.grid{stroke:#d8dee4;fill:none}.line{fill:none;stroke-width:2}',
    rulesOf(0),
    '@media(prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#f0f6fc}.page{fill:#0d1117}.grid{stroke:#30363d}',
    `.name{fill:inherit}${rulesOf(1)}}`,
  ].join('');
}
