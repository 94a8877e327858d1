import { h, setText, showList } from './dom.js';
import { count, duration, percent, time } from './formats.js';
import { createSorting } from './sorting.js';

const columns = [
  { key: 'tool', text: 'Tool or prompt', isText: true, valueIn: ({ name }) => name },
  { key: 'calls', text: 'Calls', name: 'figure', valueIn: ({ calls }) => calls },
  { key: 'failed', text: 'Failed', name: 'figure', valueIn: ({ failures }) => failures },
  { key: 'p95', text: 'p95', name: 'figure', valueIn: ({ p95Ms }) => p95Ms },
  { key: 'error', text: 'Last error', valueIn: ({ lastError }) => lastError?.at },
];

/** Creates the table of the tools that were called lately: which one fails, and which one is slow. */
export function createToolTable(server) {
  const rows = h('tbody');
  let newest = { shown: [], total: 0 };
  const sorting = createSorting(columns, { onChange: () => draw() });
  const more = h('p.muted');
  const element = h(
    'div.tools',
    { hidden: true },
    h('h4', {}, 'Tools, in the last 5 to 10 minutes'),
    h(
      'div.table',
      { role: 'region', 'aria-label': `Tools of ${server}`, tabindex: '0' },
      h('table', {}, h('thead', {}, h('tr', {}, ...sorting.elements)), rows),
    ),
    more,
  );
  const draw = () => {
    const { shown, total } = newest;
    element.hidden = total === 0;
    showList(rows, sorting.sort(shown), ({ name }) => name, createTool(server));
    more.hidden = total === shown.length;
    setText(more, `The tools that fail most or are slowest; ${count(total - shown.length)} more are not shown.`);
  };
  return {
    element,
    update(tools) {
      newest = tools;
      draw();
    },
  };
}

/** Creates the row of a tool, whose name leads to the playground. */
const createTool =
  (server) =>
  ({ name }) => {
    const [calls, failed, p95] = Array.from({ length: 3 }, () => h('td.figure'));
    const error = h('td.error');
    const href = `#playground/${encodeURIComponent(server)}/${encodeURIComponent(name)}`;
    // Names that the server has not listed count together.
    const label =
      name === 'other' ? h('bdi', {}, 'unlisted tools') : h('a', { href, title: 'Try it in the playground' }, name);
    return {
      element: h('tr', {}, h('th', { scope: 'row', title: label.textContent }, label), calls, failed, p95, error),
      update({ calls: all, failures, p95Ms, lastError }) {
        setText(calls, count(all));
        setText(failed, failures === 0 ? '0' : `${count(failures)} (${percent(failures, all)})`);
        failed.className = failures > 0 ? 'figure bad' : 'figure';
        setText(p95, p95Ms === null ? '–' : duration(p95Ms));
        setText(error, lastError === undefined ? '–' : `${time(lastError.at)} ${lastError.text}`);
      },
    };
  };
