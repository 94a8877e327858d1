import { restartServer } from './actions.js';
import { h, setText, showList } from './dom.js';
import { bytes, count, counted, duration, number, time } from './formats.js';
import { createPlot } from './plot.js';

const eraWords = { legacy: 'legacy era', modern: 'modern era', unknown: 'era not detected yet' };

/** One server: how it is, what it does, and what to do with it. */
export function createServer(first) {
  let current = first;
  const dot = h('span.dot');
  const health = h('p.health');
  const chips = h('p.chips');
  const calls = createPlot(['calls']);
  const callsNow = h('b');
  const answers = createPlot(['p95', 'p50']);
  const answersNow = h('b');
  const numbers = h('p.counts');
  const children = createChildren();
  const stderr = createStderr();
  const title = `server-${first.name}`;
  const element = h(
    'article.card',
    { 'aria-labelledby': title },
    h(
      'div.heading',
      {},
      h('div', {}, h('h3', { id: title }, dot, first.name), health),
      h(
        'button',
        {
          type: 'button',
          onclick: () => restartServer(current),
          'aria-label': `Restart the processes of ${first.name}`,
        },
        'Restart…',
      ),
    ),
    chips,
    h(
      'div.plots',
      {},
      h('figure', {}, h('figcaption', {}, 'Calls per second ', callsNow), calls.element),
      h('figure', {}, h('figcaption', {}, 'Answered in ', answersNow), answers.element),
    ),
    numbers,
    children.element,
    stderr.element,
  );
  return {
    element,
    update(server) {
      current = server;
      const { health: state } = server;
      const plots = secondsThatAreOver(server.plots);
      dot.className = `dot ${{ up: 'good', down: 'bad' }[state.state] ?? ''}`;
      setText(health, saidOf(state));
      showList(chips, chipsOf(server), (text) => text, createChip);
      const rate = plots.calls.at(-1) ?? 0;
      setText(callsNow, number(rate));
      calls.update(
        [plots.calls],
        `Calls per second over the last two minutes: now ${number(rate)}, at most ${number(Math.max(0, ...plots.calls))}.`,
      );
      const newest = plots.p95.findLast((value) => value !== null) ?? null;
      setText(answersNow, newest === null ? '–' : duration(newest));
      answers.update(
        [plots.p95, plots.p50],
        newest === null
          ? 'No answer in the last two minutes.'
          : `Response time (p95) over the last two minutes: last at most ${duration(newest)}.`,
      );
      setText(
        numbers,
        [
          counted(server.sessions, 'session'),
          counted(server.streams, 'stream'),
          `${counted(server.calls, 'call')} in flight`,
        ].join(' · '),
      );
      children.update(server);
      stderr.update(server);
    },
  };
}

/** The newest second is not over: a plot with it would always end in a drop. */
const secondsThatAreOver = ({ calls, p50, p95 }) => ({
  calls: calls.slice(0, -1),
  p50: p50.slice(0, -1),
  p95: p95.slice(0, -1),
});

/** The health of a server in a sentence. */
const saidOf = ({ state, said, at }) =>
  `${{ up: 'Up', down: 'Down' }[state] ?? 'Not used yet'}${said ? `: ${said}` : ''}${at === undefined ? '' : ` (${time(at)})`}`;

const chipsOf = ({ transport, era, revisions = [] }) => [transport, eraWords[era] ?? era, ...revisions.slice(-1)];

const createChip = (text) => ({ element: h('span.chip', {}, text), update: () => undefined });

/** The processes of a server. */
function createChildren() {
  const summary = h('summary');
  const rows = h('ul.rows');
  const more = h('p.muted');
  const element = h('details', {}, summary, rows, more);
  return {
    element,
    update({ children, childCount, childBytes, restarts }) {
      element.hidden = childCount === 0;
      setText(
        summary,
        `${counted(childCount, 'process', 'processes')}, ${bytes(childBytes)}${restarts > 0 ? `, ${counted(restarts, 'restart')}` : ''}`,
      );
      showList(rows, children, ({ pid }) => pid, createChild);
      more.hidden = childCount === children.length;
      setText(more, `The processes with the most memory; ${count(childCount - children.length)} more are not shown.`);
    },
  };
}

function createChild({ pid }) {
  const said = h('span.muted');
  return {
    element: h('li', {}, h('strong', {}, `pid ${pid}`), said),
    update({ memoryBytes, restarts, session, upMs }) {
      const of = session === undefined ? 'shared by all clients' : `session ${session}`;
      setText(
        said,
        `${memoryBytes === undefined ? 'memory unknown' : bytes(memoryBytes)} · ${of} · up ${duration(upMs)} · ${counted(restarts, 'restart')}`,
      );
    },
  };
}

/** What the processes wrote to stderr last: it opens once for each failure, and stays as it is left. */
function createStderr() {
  let hasOpened = false;
  const lines = h('pre', { tabindex: '0', 'aria-label': 'Last lines of stderr' });
  const element = h('details', {}, h('summary', {}, 'Last lines of stderr'), lines);
  return {
    element,
    update({ stderr, health }) {
      element.hidden = stderr.length === 0;
      setText(lines, stderr.map(({ pid, line }) => `${pid ?? '–'}  ${line}`).join('\n'));
      const isToldOf = health.state === 'down' && stderr.length > 0;
      if (isToldOf && !hasOpened) {
        element.open = true;
        lines.scrollTop = lines.scrollHeight; // what it died of is said last
      }
      hasOpened = isToldOf;
    },
  };
}
