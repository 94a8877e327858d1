import { createActionButton, restartServer } from './actions.js';
import { writeAddress } from './address.js';
import { describeHelp, describeOutput, describeReason } from './causes.js';
import { callPlot, currentTimes, memoryPlot, timePlot } from './charts.js';
import { createCheck } from './check-result.js';
import { docsLink, statesPage, troubleshootingPage } from './docs-links.js';
import { h, setParts, setText, showList } from './dom.js';
import { describeOutcome, failedShare } from './figures.js';
import { bytes, count, counted, duration, milliseconds, time, wholeSeconds } from './formats.js';
import { createPlot } from './plot.js';
import { createSpark } from './spark.js';
import { createToolTable } from './tool-table.js';

/** What the era of a server means for its clients. */
const eraWords = {
  legacy: 'MCP with sessions',
  modern: 'MCP without sessions',
  unknown: 'MCP version not known yet',
};

/** The word for each condition of a server, worst first. */
export const conditionTexts = { down: 'Down', degraded: 'Degraded', slow: 'Slow', up: 'Up', unused: 'Not used yet' };

const conditionMoods = { down: 'bad', degraded: 'warn', slow: 'warn', up: 'good', unused: '' };

/**
 * Creates the row of a server. It says whether the server works, since when and why not, what it said last, how many
 * calls it has, and whose sessions. Opened, it shows the plots, the tools, the processes and the last lines of output.
 * @param {(isOpen: boolean) => void} onToggled hears when a person opens or closes the row
 */
export function createServerCard(first, onToggled) {
  let current = first;
  const title = `server-${first.name}`;
  const pill = h('span.pill');
  const since = h('span.muted');
  const reason = h('span.reason');
  const said = h('code.said');
  const [users, others] = Array.from({ length: 2 }, () => h('span'));
  const spark = createSpark();
  const calls = createNumber('calls');
  const failed = createNumber('failed');
  const times = createNumber('p95', true);
  const load = createNumber('');
  const chips = h('p.chips');
  const help = h('p.muted');
  const advice = h('p.advice');
  const plots = [callPlot, timePlot, memoryPlot].map((options) =>
    createPlot({ ...options, height: 120, hasLegend: true }),
  );
  const numbers = h('p.counts');
  const tools = createToolTable(first.name);
  const check = createCheck(first.name);
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
      h('span.trend', {}, spark.element),
      calls.element,
      failed.element,
      times.element,
      h('span.whose', {}, users, others),
      load.element,
    ),
    h(
      'div.inside',
      {},
      h(
        'div.heading',
        {},
        h('div', {}, chips, help, advice, numbers),
        h(
          'div.buttons',
          {},
          check.button,
          createActionButton(
            'sessions',
            'button',
            {
              onclick: () => restartServer(current, check.run),
              'aria-label': `Restart the processes of ${first.name}`,
            },
            'Restart…',
          ),
        ),
      ),
      check.element,
      h('div.plots', {}, ...plots.map((plot) => plot.element)),
      tools.element,
      children.element,
      noise.element,
      stderr.element,
      h(
        'p.links',
        {},
        h('a', { href: writeAddress('sessions', [], { of: first.name }) }, 'Sessions'),
        h('a', { href: writeAddress('errors', [], { of: first.name }) }, 'Errors'),
        h('a', { href: writeAddress('playground', [first.name]) }, 'Playground'),
        h('a', { href: writeAddress('connect', [first.name]) }, 'Connect'),
      ),
    ),
  );
  let newestTrack;
  // Plots of a closed row would be drawn for nobody.
  details.addEventListener('toggle', () => {
    if (!details.open || newestTrack === undefined) return;
    for (const plot of plots) plot.update(newestTrack, currentTimes(current.recent));
  });
  details.firstElementChild.addEventListener('click', () => onToggled(!details.open));
  return {
    element: h('article', { 'aria-labelledby': title }, details),
    /** Opens the row. */
    open() {
      details.open = true;
    },
    /** Opens the row and brings it to a person who was led there. */
    goTo() {
      details.open = true;
      details.scrollIntoView({ block: 'center' });
      details.firstElementChild.focus();
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
      setText(said, describeOutput(server));
      said.title = said.textContent;
      calls.show(recent.calls === 0 ? '–' : count(recent.calls), { words: recent.calls === 1 ? 'call' : 'calls' });
      failed.show(recent.calls === 0 ? '–' : count(recent.failures), {
        mood: server.isFailing ? 'bad' : '',
        detail: [
          ...(recent.failures === 0 ? [] : [failedShare(recent)]),
          ...(recent.left === 0 ? [] : [`${count(recent.left)} given up`]),
        ].join(', '),
      });
      times.show(recent.p95Ms === null ? '–' : duration(recent.p95Ms), {
        mood: condition.state === 'slow' ? 'warn' : '',
        detail: describeOwnTime(recent),
      });
      setText(users, describeUsers(server));
      users.title = users.textContent;
      setText(others, describeElsewhere(server));
      others.title = others.textContent;
      load.show(server.childBytes === 0 ? '–' : bytes(server.childBytes), {
        detail: server.childCount === 0 ? '' : counted(server.childCount, 'process', 'processes'),
      });
      showList(chips, chipsOf(server), (text) => text, createChip);
      setText(help, describeHelp(server));
      showAdvice(advice, condition);
      setText(
        numbers,
        [
          counted(server.sessions, 'session'),
          counted(server.streams, 'stream'),
          `${counted(server.inFlight, 'call')} in flight`,
          describeOutcome(recent),
          ...(health.at === undefined || health.state === 'down' ? [] : [`last started at ${time(health.at)}`]),
        ].join(' · '),
      );
      tools.update(server.tools);
      children.update(server);
      noise.update(server.noise);
      stderr.update(server.stderr.map(({ at, pid, line }) => `${time(at)}  ${pid ?? '–'}  ${line}`));
    },
    /**
     * @param {object | undefined} track undefined if the gateway keeps no history for the server
     * @param {string} range such as `5 minutes`
     */
    updatePlots(track, range) {
      if (track === undefined) return;
      spark.update(track, range);
      if (details.open) for (const plot of plots) plot.update(track, currentTimes(current.recent));
      newestTrack = track;
    },
  };
}

/** Says whose sessions the server has here. */
function describeUsers({ sessions, users, elsewhere }) {
  const here = elsewhere.length > 0 ? ' here' : '';
  return sessions === 0 ? `no sessions${here}` : withNames(`${counted(sessions, 'session')}${here}`, users);
}

/** Says whose sessions the server has on other instances. */
const describeElsewhere = ({ elsewhere }) =>
  elsewhere.map(({ instance, sessions, users }) => withNames(`${count(sessions)} at ${instance}`, users)).join('; ');

/** Adds the names of users, and of their clients. */
function withNames(text, users) {
  const names = users.map(({ user, client }) => {
    if (!client) return user ?? '';
    // Clients without a session are several.
    if (!user && client.startsWith('clients ')) return client;
    return user ? `${user} (${client})` : `client ${client}`;
  });
  return [text, names.filter((name) => name !== '').join(', ')].filter(Boolean).join(' · ');
}

/** The gateway's own share of a response time. */
const describeOwnTime = ({ gatewayMs }) => (gatewayMs === null ? '' : `gateway ${milliseconds(gatewayMs)}`);

/** Creates a number of a row, with a smaller detail. Where the columns have no heads, it has its words. */
function createNumber(usualWords, areBefore = false) {
  const value = h('b');
  const detail = h('small.muted');
  const label = h('span.word');
  return {
    element: h('span.number', {}, ...(areBefore ? [label, value] : [value, label]), ' ', detail),
    show(text, { mood = '', detail: more = '', words = usualWords } = {}) {
      setText(value, text);
      setText(label, areBefore ? `${words} ` : ` ${words}`);
      value.className = text === '–' ? 'muted' : mood;
      setText(detail, more);
    },
  };
}

/** Shows where the documentation says what a state means, and what helps. */
function showAdvice(element, { state }) {
  element.hidden = state === 'up' || state === 'unused';
  if (element.dataset.state === state) return;
  element.dataset.state = state;
  const links = [
    docsLink(statesPage(), `What “${conditionTexts[state]}” means`),
    docsLink(troubleshootingPage(), 'Troubleshooting'),
  ];
  element.replaceChildren(links[0], ' · ', links[1]);
}

const chipsOf = ({ transport, package: itsPackage, era, revisions = [] }) => [
  transport,
  eraWords[era] ?? era,
  ...revisions.slice(-1),
  ...(itsPackage === undefined ? [] : [itsPackage]),
];

const createChip = (text) => ({ element: h('span.chip', {}, text), update: () => undefined });

/** Creates the list of the processes of a server. */
function createChildren() {
  const summary = h('h4');
  const rows = h('ul.rows');
  const more = h('p.muted');
  const element = h('div', {}, summary, rows, more);
  return {
    element,
    update({ name, children, childCount, childBytes, restarts }) {
      element.hidden = childCount === 0;
      setText(
        summary,
        `${counted(childCount, 'process', 'processes')}, ${bytes(childBytes)}${restarts > 0 ? `, ${counted(restarts, 'restart')}` : ''}`,
      );
      showList(
        rows,
        children.map((child) => ({ ...child, server: name })),
        ({ pid }) => pid,
        createChild,
      );
      more.hidden = childCount === children.length;
      setText(more, `The processes with the most memory; ${count(childCount - children.length)} more are not shown.`);
    },
  };
}

function createChild({ pid, server }) {
  const details = h('span.muted');
  return {
    element: h('li', {}, h('strong', {}, `pid ${pid}`), details),
    update({ memoryBytes, restarts, session, sharedBy, upMs }) {
      const sharers = sharedBy > 1 ? counted(sharedBy, 'session') : 'all clients';
      setParts(details, [
        `${memoryBytes === undefined ? 'memory unknown' : bytes(memoryBytes)} · `,
        ...(session === undefined ? [`shared by ${sharers}`] : ['session ', { server, session }]),
        ` · up ${wholeSeconds(upMs)} · ${counted(restarts, 'restart')}`,
      ]);
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
