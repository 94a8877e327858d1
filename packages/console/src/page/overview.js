import { createActionButton, drainInstance } from './actions.js';
import { readAddress, writeAddress } from './address.js';
import { createCharts } from './charts.js';
import { h, setText, showList } from './dom.js';
import { describeDrain } from './drain-text.js';
import { createFigures, readinessTexts } from './figures.js';
import { count, counted } from './formats.js';
import { createHealthLine } from './health-line.js';
import { createRecentEvents } from './recent-events.js';
import { createServers } from './servers.js';

/** Creates the view of the instance, its servers and its recent events. */
export function createOverview(section, live, history) {
  const health = createHealthLine();
  const figures = createFigures();
  const servers = createServers(history);
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
  section.append(
    h(
      'div.heading',
      {},
      h('h1.unseen', { id: 'overview-title', tabindex: '-1' }, 'Overview'),
      health.element,
      createFind(live),
    ),
    first.element,
    servers.element,
    h(
      'section',
      { 'aria-labelledby': 'figures-title' },
      h('h2', { id: 'figures-title', tabindex: '-1' }, 'This instance in numbers'),
      figures.element,
    ),
    charts.element,
    h('div.columns', {}, recentEvents.element, cluster),
  );
  live.on('happened', (events) => recentEvents.add(events));
  live.on('state', (snapshot) => {
    health.update(snapshot);
    figures.update(snapshot);
    first.update(snapshot);
    servers.update(snapshot.servers);
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
    else if (part === 'servers') servers.goTo(name);
    else if (part !== undefined) goToTitle(`${part}-title`);
  };
  // The address stays the same if the link is used again.
  section.addEventListener('click', ({ target }) => {
    const { hash = '' } = target.closest('a') ?? {};
    if (hash === '' || hash !== location.hash) return;
    goTo(...readAddress(hash).parts);
  });
  return {
    /** Says that the numbers are old. The next state replaces it. */
    setLost(text, mood) {
      health.setLost(text, mood);
      figures.setLost(text, mood);
    },
    /** Shows what an address names: a filter and an order of the servers, and a part to which a person was led. */
    show({ parts, choices }) {
      servers.choose(choices);
      goTo(...parts);
    },
  };
}

/** Brings a part of the view to a person who was led there. */
function goToTitle(id) {
  const title = document.getElementById(id);
  title?.focus();
  title?.scrollIntoView({ block: 'start' });
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
  const text = h('input.find-session', {
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
    location.hash = writeAddress('sessions', [found]);
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
