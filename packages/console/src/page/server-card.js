import { createActionButton, restartServer } from './actions.js';
import { describeHelp, describeOutput, describeReason } from './causes.js';
import { callPlot, currentTimes, memoryPlot, timePlot } from './charts.js';
import { h, setParts, setText, showList } from './dom.js';
import { failedShare } from './figures.js';
import { bytes, count, counted, duration, milliseconds, time, wholeSeconds } from './formats.js';
import { createPlot } from './plot.js';

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
  const [calls, times, users, others, load] = Array.from({ length: 5 }, () => h('span'));
  const chips = h('p.chips');
  const help = h('p.muted');
  const plots = [callPlot, timePlot, memoryPlot].map((options) =>
    createPlot({ ...options, height: 120, hasLegend: true }),
  );
  const numbers = h('p.counts');
  const tools = createTools(first.name);
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
      h('span.whose', {}, users, others, load),
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
      tools.element,
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
      setText(calls, describeOutcome(recent));
      calls.className = server.isFailing ? 'bad' : '';
      times.className = condition.state === 'slow' ? 'warn' : '';
      setText(times, recent.p95Ms === null ? '' : `p95 ${duration(recent.p95Ms)}${describeOwnTime(recent)}`);
      setText(users, describeUsers(server));
      users.title = users.textContent;
      setText(others, describeElsewhere(server));
      others.title = others.textContent;
      setText(load, describeLoad(server));
      showList(chips, chipsOf(server), (text) => text, createChip);
      setText(help, describeHelp(server));
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
    /** @param {object | undefined} track undefined if the gateway keeps no history for the server */
    updatePlots(track) {
      if (track !== undefined) for (const plot of plots) plot.update(track, currentTimes(current.recent));
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
    return user ? `${user} (${client})` : `client ${client}`;
  });
  return [text, names.filter((name) => name !== '').join(', ')].filter(Boolean).join(' · ');
}

const describeLoad = ({ childCount, childBytes }) =>
  childCount === 0
    ? ''
    : `${childBytes === 0 ? '' : `${bytes(childBytes)} in `}${counted(childCount, 'process', 'processes')}`;

const describeOutcome = (recent) => {
  if (recent.calls === 0) return 'no calls in 2 min';
  return `${counted(recent.calls, 'call')} in 2 min, ${recent.failures === 0 ? 'none' : failedShare(recent)} failed`;
};

const describeOwnTime = ({ gatewayMs }) => (gatewayMs === null ? '' : `, gateway ${milliseconds(gatewayMs)}`);

const chipsOf = ({ transport, package: itsPackage, era, revisions = [] }) => [
  transport,
  eraWords[era] ?? era,
  ...revisions.slice(-1),
  ...(itsPackage === undefined ? [] : [itsPackage]),
];

const createChip = (text) => ({ element: h('span.chip', {}, text), update: () => undefined });

/** Creates the table of the tools that were called lately: which one fails, and which one is slow. */
function createTools(server) {
  const rows = h('tbody');
  const heads = ['Tool or prompt', 'Calls', 'Failed', 'p95', 'Last error'];
  const head = h('tr', {}, ...heads.map((text) => h('th', { scope: 'col' }, text)));
  const more = h('p.muted');
  const element = h(
    'div.tools',
    { hidden: true },
    h('h4', {}, 'Tools, in the last 5 to 10 minutes'),
    h(
      'div.table',
      { role: 'region', 'aria-label': `Tools of ${server}`, tabindex: '0' },
      h('table', {}, h('thead', {}, head), rows),
    ),
    more,
  );
  return {
    element,
    update({ shown, total }) {
      element.hidden = total === 0;
      showList(rows, shown, ({ name }) => name, createTool);
      more.hidden = total === shown.length;
      setText(more, `The tools that fail most or are slowest; ${count(total - shown.length)} more are not shown.`);
    },
  };
}

function createTool({ name }) {
  const [calls, failed, p95, error] = Array.from({ length: 4 }, () => h('td'));
  return {
    element: h('tr', {}, h('th', { scope: 'row', title: name }, h('bdi', {}, name)), calls, failed, p95, error),
    update({ calls: all, failures, p95Ms, lastError }) {
      setText(calls, count(all));
      setText(failed, count(failures));
      failed.className = failures > 0 ? 'bad' : '';
      setText(p95, p95Ms === null ? '–' : duration(p95Ms));
      setText(error, lastError === undefined ? '–' : `${time(lastError.at)} ${lastError.text}`);
    },
  };
}

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
