import { noteAddress } from './address.js';
import { describeReason } from './causes.js';
import { h, setText, showList } from './dom.js';
import { count } from './formats.js';
import { ranges } from './history.js';
import { conditionTexts, createServerCard } from './server-card.js';
import { createSorting } from './sorting.js';

/** A gateway with at most this many servers shows them opened: there is room for the plots. */
const maxOpened = 2;

/** Rows that are sorted by a number move at most so often: nobody can click a row that moves each second. */
const steadyMs = 10_000;

const conditionNames = Object.keys(conditionTexts);

const columns = [
  { key: 'name', text: 'Server', isText: true, valueIn: ({ name }) => name },
  { key: 'state', text: 'State', valueIn: ({ condition }) => -conditionNames.indexOf(condition.state) },
  { key: 'calls', text: 'Calls', valueIn: ({ recent }) => recent.calls },
  { key: 'failed', text: 'Failed', valueIn: ({ recent }) => recent.failures },
  { key: 'p95', text: 'p95', valueIn: ({ recent }) => recent.p95Ms },
  { key: 'sessions', text: 'Sessions', valueIn: ({ sessions }) => sessions },
  { key: 'memory', text: 'Memory', valueIn: ({ childBytes }) => childBytes },
];

/** Counts the servers by condition: `1 down, 2 up`. The line on top names those in trouble. */
const countConditions = (servers) =>
  conditionNames
    .map((state) => [state, servers.filter(({ condition }) => condition.state === state).length])
    .filter(([, found]) => found > 0)
    .map(([state, found]) => `${count(found)} ${conditionTexts[state].toLowerCase()}`)
    .join(', ');

/** The texts of a server that the filter looks through. */
const textOf = (server) =>
  [
    ...[server.name, conditionTexts[server.condition.state], server.transport, server.package, describeReason(server)],
    ...server.users.flatMap(({ user, client }) => [user, client]),
  ]
    .join(' ')
    .toLowerCase();

/** Creates the table of the servers: a row each, sorted and filtered. The order without a choice is the gateway's. */
export function createServers(history) {
  const filter = h('input', {
    ...{ type: 'search', 'aria-label': 'Filter servers', autocomplete: 'off', spellcheck: 'false' },
    placeholder: 'Filter servers',
  });
  const trend = h('span.trend');
  const onSorted = () => {
    note();
    draw(true);
  };
  const sorting = createSorting(columns, { tag: 'span', onChange: onSorted });
  const [name, state, ...numbers] = sorting.elements;
  const heads = h(
    'div.server-heads',
    { role: 'group', 'aria-label': 'Sort servers' },
    h('span', {}, name, state),
    h('span', {}, 'Cause, last output'),
    trend,
    ...numbers,
  );
  const rows = h('div.server-rows');
  const nothing = h('p.muted', { hidden: true }, 'No server matches the filter.');
  const conditions = h('span.muted');
  const cards = new Map();
  let servers = [];
  let placed = { at: Number.NEGATIVE_INFINITY, names: [] };
  let opened = '';
  const note = () => {
    const choices = { servers: filter.value.trim(), sort: sorting.order };
    noteAddress('overview', opened === '' ? [] : ['servers', opened], choices);
  };
  const createCard = (server) => {
    const card = createServerCard(server, (isOpen) => {
      opened = isOpen ? server.name : '';
      note();
    });
    cards.set(server.name, card);
    if (servers.length <= maxOpened) card.open();
    return card;
  };
  /** Sorts the servers. They stay where they are for a while, unless the choice has changed. */
  const place = (isChosen) => {
    const now = performance.now();
    if (isChosen || sorting.order === '' || now - placed.at >= steadyMs)
      placed = { at: now, names: sorting.sort(servers).map((server) => server.name) };
    const placeOf = (server) => (placed.names.indexOf(server.name) + 1 || Number.POSITIVE_INFINITY) - 1;
    return [...servers].sort((a, b) => placeOf(a) - placeOf(b) || 0);
  };
  const draw = (isChosen = false) => {
    const words = filter.value.trim().toLowerCase().split(/\s+/);
    const shown = place(isChosen).filter((server) => words.every((word) => textOf(server).includes(word)));
    nothing.hidden = shown.length > 0 || servers.length === 0;
    showList(rows, shown, (server) => server.name, createCard);
  };
  filter.addEventListener('input', () => {
    note();
    draw();
  });
  history.on((trackOf) => {
    const { label } = ranges[history.range];
    setText(trend, `Calls, ${label}`);
    for (const [server, card] of cards) card.updatePlots(trackOf(server), label);
  });
  return {
    element: h(
      'section',
      { 'aria-labelledby': 'servers-title' },
      h(
        'div.heading',
        {},
        h('h2', { id: 'servers-title', tabindex: '-1' }, 'Servers ', conditions),
        h('div.find.servers-find', {}, filter),
      ),
      h('div.servers', {}, heads, rows),
      nothing,
    ),
    update(all) {
      servers = all;
      setText(conditions, countConditions(all));
      draw();
    },
    /** Shows the filter and the order of an address. */
    choose({ servers: text = '', sort }) {
      filter.value = text;
      sorting.set(sort);
      draw(true);
    },
    /** Opens the row of a server and brings it to a person who was led there. */
    goTo(server) {
      if (!cards.has(server)) filter.value = '';
      draw();
      opened = server;
      cards.get(server)?.goTo();
    },
  };
}
