import { createActionButton, drainInstance } from './actions.js';
import { createCharts } from './charts.js';
import { h, setText, showList } from './dom.js';
import { bytes, count, counted, duration, number } from './formats.js';
import { createRecentEvents } from './recent-events.js';
import { conditionTexts, createServerCard, failedShare } from './server-card.js';

/** Numbers of the instance, in the order of the questions: does it work, for how many, how fast. */
const figures = [
  [
    'Sessions',
    ({ instance }) => count(instance.sessions),
    ({ instance }) => `of at most ${count(instance.maxSessions)}`,
  ],
  [
    'Open streams',
    ({ instance }) => count(instance.streams),
    ({ instance }) => `${counted(instance.inFlight, 'call')} in flight`,
  ],
  ['Calls per second', ({ instance }) => number(instance.callsPerSecond), () => 'average over 5 s'],
  [
    'Failed calls',
    ({ instance }) => failedShare(instance),
    ({ instance }) => `${count(instance.failures)} of ${counted(instance.calls, 'call')} in the last 2 min`,
    ({ instance }) => (instance.isFailing ? 'bad' : ''),
  ],
  [
    'Response time (p95)',
    ({ instance }) => (instance.p95Ms === null ? '–' : duration(instance.p95Ms)),
    ({ instance: { p50Ms, p99Ms } }) =>
      p50Ms === null ? 'no answer in the last 2 min' : `median ${duration(p50Ms)}, p99 ${duration(p99Ms)}, last 2 min`,
  ],
  [
    'Memory of servers',
    ({ instance }) => bytes(instance.childBytes),
    ({ instance, servers }) =>
      `${counted(sum(servers, 'childCount'), 'process', 'processes')}; gateway ${bytes(instance.memoryBytes)}`,
  ],
];

const sum = (items, member) => items.reduce((total, item) => total + item[member], 0);

/** Counts the servers by condition: `1 down, 2 up`. */
const countConditions = (servers) =>
  Object.keys(conditionTexts)
    .map((state) => [state, servers.filter(({ condition }) => condition.state === state).length])
    .filter(([, found]) => found > 0)
    .map(([state, found]) => `${count(found)} ${conditionTexts[state].toLowerCase()}`)
    .join(', ');

/** Creates the view of the instance, its servers and its recent events. */
export function createOverview(section, live, history) {
  const pill = h('span.pill');
  const state = h('p.muted.lead');
  const numbers = h('dl.figures');
  const servers = h('div.servers');
  const conditions = h('span.muted');
  const instances = h('ul.rows', { 'aria-labelledby': 'instances-title' });
  const cluster = h(
    'section',
    { 'aria-labelledby': 'instances-title' },
    h('h2', { id: 'instances-title' }, 'Instances'),
    instances,
  );
  const recentEvents = createRecentEvents();
  const first = createFirstSteps();
  const cards = new Map();
  const createCard = (server) => {
    const card = createServerCard(server);
    cards.set(server.name, card);
    return card;
  };
  history.on((trackOf) => {
    for (const [name, card] of cards) card.updatePlots(trackOf(name));
  });
  let instance;
  section.append(
    h(
      'div.heading',
      {},
      h('div', {}, h('h1', { id: 'overview-title', tabindex: '-1' }, 'Overview'), state),
      h(
        'div.buttons',
        {},
        pill,
        createActionButton('drain', 'button', { onclick: () => instance && drainInstance(instance) }, 'Drain…'),
      ),
    ),
    numbers,
    first.element,
    h(
      'section',
      { 'aria-labelledby': 'servers-title' },
      h('h2', { id: 'servers-title' }, 'Servers ', conditions),
      servers,
    ),
    createCharts(history),
    h('div.columns', {}, recentEvents.element, cluster),
  );
  live.on('happened', (events) => recentEvents.add(events));
  live.on('state', (snapshot) => {
    instance = snapshot.instance;
    setText(state, `${instance.name}, version ${instance.version}, up ${duration(instance.upMs)}`);
    pill.className = instance.readiness === 'ready' ? 'pill good' : 'pill bad';
    setText(pill, readinessTexts[instance.readiness] ?? instance.readiness);
    const shown = figures.map(([name, value, detail, mood = () => '']) => ({
      name,
      value: value(snapshot),
      detail: detail(snapshot),
      mood: mood(snapshot),
    }));
    setText(conditions, countConditions(snapshot.servers));
    first.update(snapshot);
    showList(numbers, shown, ({ name }) => name, createFigure);
    showList(servers, snapshot.servers, ({ name }) => name, createCard);
    cluster.hidden = snapshot.instances.length < 2;
    showList(instances, snapshot.instances, ({ name }) => name, createInstance);
  });
}

/** Creates the first steps, which are shown until a client has called a server. */
function createFirstSteps() {
  const step = (view, text, link) => h('li', {}, h('span', {}, text), h('a.button', { href: `#${view}` }, link));
  const element = h(
    'section.card',
    { 'aria-labelledby': 'first-title', hidden: true },
    h('h2', { id: 'first-title' }, 'First steps'),
    h(
      'ol.rows.steps',
      {},
      step('playground', 'Try a tool here in the browser.', 'Open the playground'),
      step('connect', 'Connect your client: copy its settings, or add the server with one click.', 'Connect a client'),
      step('sessions', 'Watch its session, its calls and its messages.', 'Show the sessions'),
    ),
  );
  let isOver = false;
  return {
    element,
    update({ instance, servers }) {
      isOver ||= instance.sessions > 0 || servers.some(({ recent, inFlight }) => recent.calls + inFlight > 0);
      element.hidden = isOver;
    },
  };
}

const readinessTexts = {
  ready: 'Ready',
  degraded: 'Degraded: Redis is unavailable',
  unavailable: 'Not ready',
  draining: 'Draining',
};

function createFigure({ name }) {
  const value = h('strong');
  const detail = h('span.muted');
  return {
    element: h('div', {}, h('dt', {}, name), h('dd', {}, value, detail)),
    update(figure) {
      setText(value, figure.value);
      value.className = figure.mood;
      setText(detail, figure.detail);
    },
  };
}

function createInstance() {
  const name = h('strong');
  const details = h('span.muted');
  return {
    element: h('li', {}, name, details),
    update(instance) {
      setText(name, instance.isThis ? `${instance.name} (this one)` : instance.name);
      setText(
        details,
        `${readinessTexts[instance.readiness] ?? instance.readiness} · ${counted(instance.sessions, 'session')} · ${counted(instance.streams, 'stream')} · ${instance.version}`,
      );
    },
  };
}
