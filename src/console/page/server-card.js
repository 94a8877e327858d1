import { createActionButton, restartServer } from './actions.js';
import { callPlot, currentTimes, memoryPlot, timePlot } from './charts.js';
import { h, setText, showList } from './dom.js';
import { failedShare } from './figures.js';
import { bytes, count, counted, duration, milliseconds, time, wholeSeconds } from './formats.js';
import { createPlot } from './plot.js';

const eraWords = { legacy: 'legacy era', modern: 'modern era', unknown: 'era not detected yet' };

/** The word for each condition of a server, worst first. */
export const conditionTexts = { down: 'Down', degraded: 'Degraded', up: 'Up', unused: 'Not used yet' };

const conditionMoods = { down: 'bad', degraded: 'warn', up: 'good', unused: '' };

/**
 * Creates the row of a server. It says whether the server works, since when and why not, what it said last, and whose
 * sessions it has. Opened, it shows the plots, the processes and the last lines of output.
 */
export function createServerCard(first) {
  let current = first;
  const title = `server-${first.name}`;
  const pill = h('span.pill');
  const since = h('span.muted');
  const reason = h('span.reason');
  const said = h('code.said');
  const [calls, times, users, load] = Array.from({ length: 4 }, () => h('span'));
  const chips = h('p.chips');
  const help = h('p.muted');
  const plots = [callPlot, timePlot, memoryPlot].map((options) =>
    createPlot({ ...options, height: 120, hasLegend: true }),
  );
  const numbers = h('p.counts');
  const children = createChildren();
  const noise = createLines('Last lines on stdout that are not MCP messages');
  const stderr = createLines('Last lines of stderr');
  const details = h(
    'details.server',
    {},
    h(
      'summary',
      {},
      h('span.who', {}, h('h3', { id: title }, h('bdi', {}, first.name)), pill, since),
      h('span.why', {}, reason, said),
      h('span.what', {}, calls, times),
      h('span.whose', {}, users, load),
    ),
    h(
      'div.inside',
      {},
      h(
        'div.heading',
        {},
        h('div', {}, chips, help, numbers),
        createActionButton(
          'sessions',
          'button',
          { onclick: () => restartServer(current), 'aria-label': `Restart the processes of ${first.name}` },
          'Restart…',
        ),
      ),
      h('div.plots', {}, ...plots.map((plot) => plot.element)),
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
    ),
  );
  return {
    element: h('article', { 'aria-labelledby': title }, details),
    /** Opens the row. */
    open() {
      details.open = true;
    },
    update(server) {
      current = server;
      const { condition, recent, health } = server;
      pill.className = `pill ${conditionMoods[condition.state]}`;
      setText(pill, conditionTexts[condition.state]);
      setText(since, condition.since === undefined ? '' : `since ${time(condition.since)}`);
      setText(reason, describeReason(server));
      reason.title = reason.textContent;
      reason.className = `reason ${conditionMoods[condition.state] === 'good' ? '' : conditionMoods[condition.state]}`;
      setText(said, server.stderr.at(-1)?.line ?? server.noise.at(-1) ?? '');
      said.title = said.textContent;
      setText(calls, describeOutcome(recent));
      calls.className = server.isFailing ? 'bad' : '';
      setText(times, recent.p95Ms === null ? '' : `p95 ${duration(recent.p95Ms)}${describeOwnTime(recent)}`);
      setText(users, describeUsers(server));
      users.title = users.textContent;
      setText(load, describeLoad(server));
      showList(chips, chipsOf(server), (text) => text, createChip);
      setText(help, health.state === 'down' ? (health.help ?? '') : '');
      setText(
        numbers,
        [
          counted(server.sessions, 'session'),
          counted(server.streams, 'stream'),
          `${counted(server.inFlight, 'call')} in flight`,
          describeCalls(recent),
          ...(health.at === undefined || health.state === 'down' ? [] : [`last started at ${time(health.at)}`]),
        ].join(' · '),
      );
      children.update(server);
      noise.update(server.noise);
      stderr.update(server.stderr.map(({ pid, line }) => `${pid ?? '–'}  ${line}`));
    },
    /** @param {object | undefined} track undefined if the gateway keeps no history for the server */
    updatePlots(track) {
      if (track !== undefined) for (const plot of plots) plot.update(track, currentTimes(current.recent));
    },
  };
}

/** Says why the server is in trouble; nothing if it works. */
function describeReason({ condition, health }) {
  if (condition.state === 'down') return health.why ?? 'The last probe failed.';
  return condition.reasons.join(' ');
}

/** Says whose sessions the server has. */
function describeUsers({ sessions, users }) {
  if (sessions === 0) return 'no sessions';
  const names = users.map(({ user, client }) =>
    [user, client && user ? `(${client})` : client].filter(Boolean).join(' '),
  );
  return [counted(sessions, 'session'), names.filter((name) => name !== '').join(', ')].filter(Boolean).join(': ');
}

const describeLoad = ({ childCount, childBytes, exits }) =>
  [
    ...(childCount === 0
      ? []
      : [`${childBytes === 0 ? '' : `${bytes(childBytes)} in `}${counted(childCount, 'process', 'processes')}`]),
    ...(exits === 0 ? [] : [`${count(exits)} lost`]),
  ].join(' · ');

const describeOutcome = (recent) => {
  if (recent.calls === 0) return 'no calls';
  return `${counted(recent.calls, 'call')}, ${recent.failures === 0 ? 'none' : failedShare(recent)} failed`;
};

const describeOwnTime = ({ gatewayMs }) => (gatewayMs === null ? '' : `, gateway ${milliseconds(gatewayMs)}`);

const describeCalls = (recent) =>
  recent.calls === 0 ? 'no calls in the last 2 min' : `${describeOutcome(recent)} in the last 2 min`;

const chipsOf = ({ transport, era, revisions = [] }) => [transport, eraWords[era] ?? era, ...revisions.slice(-1)];

const createChip = (text) => ({ element: h('span.chip', {}, text), update: () => undefined });

/** Creates the list of the processes of a server. */
function createChildren() {
  const summary = h('h4');
  const rows = h('ul.rows');
  const more = h('p.muted');
  const element = h('div', {}, summary, rows, more);
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
        `${memoryBytes === undefined ? 'memory unknown' : bytes(memoryBytes)} · ${owner} · up ${wholeSeconds(upMs)} · ${counted(restarts, 'restart')}`,
      );
    },
  };
}

/** Creates a block with lines of output, which is hidden while there are none. */
function createLines(title) {
  const lines = h('pre', { tabindex: '0', 'aria-label': title });
  const element = h('div', { hidden: true }, h('h4', {}, title), lines);
  return {
    element,
    update(texts) {
      element.hidden = texts.length === 0;
      setText(lines, texts.join('\n'));
    },
  };
}
