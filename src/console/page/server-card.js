import { createActionButton, restartServer } from './actions.js';
import { callPlot, timePlot } from './charts.js';
import { h, setText, showList } from './dom.js';
import { bytes, count, counted, duration, number, time } from './formats.js';
import { createPlot } from './plot.js';

const eraWords = { legacy: 'legacy era', modern: 'modern era', unknown: 'era not detected yet' };

/** The word for each condition of a server, worst first. */
export const conditionTexts = { down: 'Down', degraded: 'Degraded', up: 'Up', unused: 'Not used yet' };

const conditionMoods = { down: 'bad', degraded: 'warn', up: 'good', unused: '' };

/** Formats the share of failed calls. */
export const failedShare = ({ calls, failures }) => (calls === 0 ? '–' : `${number((failures / calls) * 100)} %`);

/** Creates the card of a server: its condition, numbers, plots, processes and last lines of output. */
export function createServerCard(first) {
  let current = first;
  const pill = h('span.pill');
  const health = h('p.health');
  const reasons = h('ul.reasons');
  const chips = h('p.chips');
  const plots = [callPlot, timePlot].map((options) => createPlot({ ...options, height: 120, hasLegend: false }));
  const numbers = h('p.counts');
  const children = createChildren();
  const noise = createNoise();
  const stderr = createStderr();
  const title = `server-${first.name}`;
  const element = h(
    'article.card',
    { 'aria-labelledby': title },
    h(
      'div.heading',
      {},
      h('div', {}, h('h3', { id: title }, h('bdi', {}, first.name), pill), health, reasons),
      createActionButton(
        'sessions',
        'button',
        { onclick: () => restartServer(current), 'aria-label': `Restart the processes of ${first.name}` },
        'Restart…',
      ),
    ),
    chips,
    h('div.plots', {}, ...plots.map((plot) => plot.element)),
    numbers,
    children.element,
    noise.element,
    stderr.element,
    h(
      'p.links',
      {},
      ...['Sessions', 'Playground', 'Connect'].map((view) =>
        h('a', { href: `#${view.toLowerCase()}/${encodeURIComponent(first.name)}` }, view),
      ),
    ),
  );
  return {
    element,
    update(server) {
      current = server;
      const { health: state } = server;
      const { condition, recent } = server;
      pill.className = `pill ${conditionMoods[condition.state]}`;
      setText(pill, conditionTexts[condition.state]);
      setText(health, describeHealth(state));
      health.hidden = health.textContent === '';
      showList(reasons, condition.reasons, (text) => text.replace(/\d+/g, '#'), createReason);
      showList(chips, chipsOf(server), (text) => text, createChip);
      setText(
        numbers,
        [
          counted(server.sessions, 'session'),
          counted(server.streams, 'stream'),
          `${counted(server.inFlight, 'call')} in flight`,
          describeCalls(recent),
        ].join(' · '),
      );
      numbers.classList.toggle('bad', server.isFailing);
      children.update(server);
      noise.update(server);
      stderr.update(server);
    },
    /** @param {object | undefined} track undefined if the gateway keeps no history for the server */
    updatePlots(track) {
      if (track !== undefined) for (const plot of plots) plot.update(track);
    },
  };
}

const describeCalls = (recent) =>
  recent.calls === 0
    ? 'no calls in the last 2 min'
    : `${failedShare(recent)} of ${counted(recent.calls, 'call')} failed in the last 2 min`;

/** Describes the last start or probe of a server. */
function describeHealth({ state, summary, at }) {
  if (at === undefined) return '';
  return state === 'down' ? `${summary ?? 'The last probe failed.'} (${time(at)})` : `Last started at ${time(at)}`;
}

function createReason() {
  const element = h('li');
  return { element, update: (text) => setText(element, text) };
}

const chipsOf = ({ transport, era, revisions = [] }) => [transport, eraWords[era] ?? era, ...revisions.slice(-1)];

const createChip = (text) => ({ element: h('span.chip', {}, text), update: () => undefined });

/** Creates the list of the processes of a server. */
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
  const details = h('span.muted');
  return {
    element: h('li', {}, h('strong', {}, `pid ${pid}`), details),
    update({ memoryBytes, restarts, session, upMs }) {
      const owner = session === undefined ? 'shared by all clients' : `session ${session}`;
      setText(
        details,
        `${memoryBytes === undefined ? 'memory unknown' : bytes(memoryBytes)} · ${owner} · up ${duration(upMs)} · ${counted(restarts, 'restart')}`,
      );
    },
  };
}

/** Creates the list of the last lines on stdout that are not messages. */
function createNoise() {
  const lines = h('pre', { tabindex: '0', 'aria-label': 'Lines on stdout that are not MCP messages' });
  const element = h('details', {}, h('summary', {}, 'Lines on stdout that are not MCP messages'), lines);
  return {
    element,
    update({ noise }) {
      element.hidden = noise.length === 0;
      setText(lines, noise.join('\n'));
    },
  };
}

/**
 * Creates the list of the last stderr lines. It opens once for each failure, and otherwise stays as the person left it.
 */
function createStderr() {
  let hasOpened = false;
  const lines = h('pre', { tabindex: '0', 'aria-label': 'Last lines of stderr' });
  const element = h('details', {}, h('summary', {}, 'Last lines of stderr'), lines);
  return {
    element,
    update({ stderr, health }) {
      element.hidden = stderr.length === 0;
      setText(lines, stderr.map(({ pid, line }) => `${pid ?? '–'}  ${line}`).join('\n'));
      const isCause = health.state === 'down' && stderr.length > 0;
      if (isCause && !hasOpened) {
        element.open = true;
        lines.scrollTop = lines.scrollHeight; // the cause is in the last lines
      }
      hasOpened = isCause;
    },
  };
}
