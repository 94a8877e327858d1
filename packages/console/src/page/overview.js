import { createActionButton, drainInstance } from './actions.js';
import { createCharts } from './charts.js';
import { h, setText, showList } from './dom.js';
import { describeDrain } from './drain-text.js';
import { createFigures, readinessTexts } from './figures.js';
import { count, counted } from './formats.js';
import { createRecentEvents } from './recent-events.js';
import { conditionTexts, createServerCard } from './server-card.js';

/** A gateway with at most this many servers shows them opened: there is room for the plots. */
const maxOpened = 2;

/** So many servers in trouble are named beside their number. */
const maxNamed = 3;

const nameTroubled = (state, names) =>
  state === 'down' || state === 'degraded' || state === 'slow'
    ? ` (${[...names.slice(0, maxNamed), ...(names.length > maxNamed ? ['…'] : [])].join(', ')})`
    : '';

/** Counts the servers by condition: `1 down (mail), 2 up`. */
const countConditions = (servers) =>
  Object.keys(conditionTexts)
    .map((state) => [state, servers.filter(({ condition }) => condition.state === state).map(({ name }) => name)])
    .filter(([, names]) => names.length > 0)
    .map(
      ([state, names]) => `${count(names.length)} ${conditionTexts[state].toLowerCase()}${nameTroubled(state, names)}`,
    )
    .join(', ');

/** Creates the view of the instance, its servers and its recent events. */
export function createOverview(section, live, history) {
  const figures = createFigures();
  // The texts of a row explain themselves, so the heads are for the eye only.
  const heads = h(
    'div.server-heads',
    { 'aria-hidden': 'true' },
    ...['Server', 'Cause, last output', 'Calls', 'Sessions and processes'].map((text) => h('span', {}, text)),
  );
  const servers = h('div.server-rows');
  const conditions = h('span.muted');
  const instances = h('ul.rows', { 'aria-labelledby': 'instances-title' });
  const cluster = h(
    'section',
    { 'aria-labelledby': 'instances-title' },
    h('h2', { id: 'instances-title', tabindex: '-1' }, 'Instances'),
    instances,
  );
  const recentEvents = createRecentEvents();
  const charts = createCharts(history, live);
  const first = createFirstSteps();
  const cards = new Map();
  let isRoomy = false;
  const createCard = (server) => {
    const card = createServerCard(server);
    cards.set(server.name, card);
    if (isRoomy) card.open();
    return card;
  };
  history.on((trackOf) => {
    for (const [name, card] of cards) card.updatePlots(trackOf(name));
  });
  section.append(
    h('div.heading', {}, h('h1', { id: 'overview-title', tabindex: '-1' }, 'Overview'), createFind(live)),
    figures.element,
    first.element,
    h(
      'section',
      { 'aria-labelledby': 'servers-title' },
      h('h2', { id: 'servers-title' }, 'Servers ', conditions),
      h('div.servers', {}, heads, servers),
    ),
    charts.element,
    h('div.columns', {}, recentEvents.element, cluster),
  );
  live.on('happened', (events) => recentEvents.add(events));
  live.on('state', (snapshot) => {
    figures.update(snapshot);
    setText(conditions, countConditions(snapshot.servers));
    first.update(snapshot);
    isRoomy = snapshot.servers.length <= maxOpened;
    showList(servers, snapshot.servers, ({ name }) => name, createCard);
    showList(
      instances,
      snapshot.instances.map((instance) => ({ ...instance, drainText: describeDrain(snapshot) })),
      ({ name }) => name,
      createInstance,
    );
  });
  const goTo = (part, name = '') => {
    if (part === 'charts') charts.goTo(name);
    else if (part === 'activity') recentEvents.goTo(name);
    else if (part === 'servers') cards.get(name)?.goTo();
    else if (part === 'instances') document.getElementById('instances-title').focus();
  };
  // The address stays the same if the link is used again.
  figures.element.addEventListener('click', ({ target }) => {
    const { hash = '' } = target.closest('a') ?? {};
    if (hash !== '' && hash === location.hash) goTo(...hash.split('/').slice(1).map(decodeURIComponent));
  });
  return {
    /** Says that the numbers are old. The next state replaces it. */
    setLost: (text) => figures.setLost(text),
    /** Brings a part of the view to a person who was led there: a chart, the activity, a server or the instances. */
    goTo,
  };
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

const findPauseMs = 200;

/** Creates the field that leads to the sessions which match a text. While a person types, it says how many match here. */
function createFind(live) {
  let timer;
  const text = h('input', {
    ...{ type: 'search', 'aria-label': 'Find a session', autocomplete: 'off', spellcheck: 'false' },
    placeholder: 'Find a session: id, user, client',
  });
  const hint = h('span.hint', { role: 'status' });
  const search = () => text.value.trim();
  const subscribe = () => live.subscribe({ search: search(), page: 0 });
  text.addEventListener('input', () => {
    clearTimeout(timer);
    setText(hint, search() === '' ? '' : 'Press Enter to list them');
    timer = setTimeout(subscribe, findPauseMs);
  });
  live.on('state', ({ sessions: { found }, instances }) => {
    if (search() === '') return;
    setText(hint, `${count(found)} ${instances.length > 1 ? 'here' : 'found'}: press Enter to list them`);
  });
  const find = (event) => {
    event.preventDefault();
    clearTimeout(timer);
    const found = search();
    text.value = '';
    setText(hint, '');
    location.hash = found === '' ? '#sessions' : `#sessions/${encodeURIComponent(found)}`;
  };
  return h('form.find', { role: 'search', onsubmit: find }, text, hint);
}

/** Creates the row of an instance. Only this instance can be drained from its page. */
function createInstance({ isThis }) {
  const name = h('strong');
  const details = h('span.muted');
  let newest;
  const drain = createActionButton('drain', 'button', { onclick: () => drainInstance(newest.drainText) }, 'Drain…');
  return {
    element: h('li', {}, name, details, isThis ? drain : undefined),
    update(instance) {
      newest = instance;
      setText(name, instance.isThis ? `${instance.name} (this one)` : instance.name);
      setText(
        details,
        [
          readinessTexts[instance.readiness] ?? instance.readiness,
          counted(instance.sessions, 'session'),
          counted(instance.streams, 'stream'),
          instance.version,
          ...(instance.isThis ? [] : [`reported ${Math.floor(instance.ageMs / 1_000)} s ago`]),
        ].join(' · '),
      );
    },
  };
}
