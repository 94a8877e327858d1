import { noteAddress, writeAddress } from './address.js';
import { textOfAnswer } from './answer-text.js';
import { docsLink, errorPage } from './docs-links.js';
import { h, sessionLink, setText, showList } from './dom.js';
import { counted, duration, time } from './formats.js';
import { describeReason } from './reasons.js';
import { createServerChoice } from './server-choice.js';
import { createSorting } from './sorting.js';

/** The gateway keeps so many failed calls, of which so many are alike. So does the page. */
const maxShown = 50;
const maxAlike = 10;

const columns = [
  { key: 'time', text: 'Time', valueIn: ({ at }) => at },
  { key: 'request', text: 'Request', isText: true, valueIn: ({ name, method }) => `${method} ${name ?? ''}` },
  { key: 'server', text: 'Server', name: 'optional', isText: true, valueIn: ({ server }) => server },
  { key: 'cause', text: 'Cause', isText: true, valueIn: ({ cause }) => cause },
  { key: 'took', text: 'Took', name: 'figure optional', valueIn: ({ durationMs }) => durationMs },
  { key: 'client', text: 'Client', name: 'optional', isText: true, valueIn: ({ client }) => client },
  { key: 'user', text: 'User', name: 'optional', isText: true, valueIn: ({ user }) => user },
  { text: 'Session', name: 'optional' },
];

const textOf = ({ server, session, client, user, method, name, cause, args, answer }) =>
  [server, session, client, user, method, name, cause, args, answer].join(' ').toLowerCase();

/** Creates the view of the last failed calls of all sessions, each with its request. */
export function createErrors(section, live, { inspects }) {
  const filter = h('input', {
    ...{ id: 'errors-filter', type: 'search', autocomplete: 'off', spellcheck: 'false' },
    placeholder: 'Tool, cause, session, user …',
  });
  const note = () => noteAddress('errors', [filter.value.trim()], { of: server.value, sort: sorting.order });
  const onChange = () => {
    note();
    draw();
  };
  const server = createServerChoice('errors-server', onChange);
  const sorting = createSorting(columns, { onChange });
  const rows = h('tbody');
  const total = h('p.muted', { role: 'status' });
  let calls = [];
  filter.addEventListener('input', onChange);
  const draw = () => {
    const words = filter.value.trim().toLowerCase().split(/\s+/);
    const shown = calls.filter(
      (call) =>
        (server.value === '' || call.server === server.value) && words.every((word) => textOf(call).includes(word)),
    );
    showList(rows, sorting.sort(shown), ({ number }) => number, createRow);
    setText(total, describeTotal(shown.length, calls.length));
  };
  const hint = inspects
    ? 'The session of a call shows its messages as they pass.'
    : 'Arguments and answers are not shown; start the gateway with --observe.showContents to see them.';
  section.append(
    h('div.heading', {}, h('div', {}, h('h1', { id: 'errors-title', tabindex: '-1' }, 'Errors'), total)),
    h(
      'div.filters',
      {},
      h('div.search', {}, h('label', { for: 'errors-filter' }, 'Filter'), filter),
      h('div.search', {}, h('label', { for: 'errors-server' }, 'Server'), server.element),
    ),
    h(
      'div.table',
      { role: 'region', 'aria-label': 'List of errors', tabindex: '0' },
      h('table.calm', {}, h('thead', {}, h('tr', {}, ...sorting.elements)), rows),
    ),
    h('p.muted', {}, hint),
  );
  live.on('state', ({ servers }) => server.offer(servers.map(({ name }) => name)));
  live.on('failed', (failed) => {
    // A gateway that was started again numbers its calls from 1.
    const isAgain = failed.at(-1).number < (calls[0]?.number ?? 0);
    const known = isAgain ? [] : calls;
    const added = failed.filter(({ number }) => number > (known[0]?.number ?? 0));
    calls = limit([...added.toReversed(), ...known]);
    draw();
  });
  draw();
  return {
    /** Shows the failed calls that an address names. */
    show({ parts: [text = ''], choices: { of, sort } }) {
      filter.value = text;
      server.set(of);
      sorting.set(sort);
      draw();
    },
  };
}

/** Keeps the newest calls, and a few of a kind: a tool that fails again and again must not hide the others. */
function limit(calls) {
  const counts = new Map();
  const isKept = ({ server, method, name, cause }) => {
    const kind = JSON.stringify([server, method, name, cause]);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return counts.get(kind) <= maxAlike;
  };
  return calls.filter(isKept).slice(0, maxShown);
}

function describeTotal(shown, all) {
  if (all === 0) return 'No call has failed here since the gateway started.';
  const last = all === maxShown ? `The last ${maxShown} failed calls` : counted(all, 'failed call');
  return `${last} of all sessions of this instance, at most ${maxAlike} alike, newest first${shown === all ? '' : `; ${shown} shown`}`;
}

/** Creates the row of a failed call. Its tool leads to the playground, its reason to the documentation. */
function createRow({ at, server, session, client, user, method, name, cause, reason, durationMs, args, answer }) {
  const tool =
    name && h('a', { href: writeAddress('playground', [server, name]), title: 'Try it in the playground' }, name);
  const what =
    reason === undefined
      ? [cause]
      : [
          `${describeReason(reason)}: `,
          docsLink(errorPage(reason), reason, { title: 'What it means, and what helps' }),
        ];
  const toServer = () => h('a', { href: writeAddress('overview', ['servers', server]) }, server);
  const said = textOfAnswer(answer);
  const who = [server, client, user].filter(Boolean).join(', ');
  const element = h(
    'tr',
    {},
    h('td', {}, h('time', { datetime: new Date(at).toISOString() }, time(at))),
    h(
      'th.name',
      { scope: 'row' },
      `${method ?? 'not read'} `,
      tool,
      h('span.compact', {}, who),
      createContent('Arguments', args),
    ),
    h('td.name.optional', {}, toServer()),
    h(
      'td.error',
      {},
      ...what,
      said === '' ? undefined : h('p.said', { dir: 'auto' }, said),
      createContent('Answer', answer),
    ),
    h('td.figure.optional', {}, duration(durationMs)),
    h('td.client.optional', {}, client || '–'),
    h('td.client.optional', {}, user ?? '–'),
    h('td.optional', {}, session === undefined ? '–' : sessionLink(server, session)),
  );
  return { element, update: () => undefined };
}

/** Creates a text of a client or server, which is shown in a few lines until it is opened. */
function createContent(title, text) {
  if (text === undefined) return undefined;
  return h('details', {}, h('summary', {}, title), h('pre', { tabindex: '0', 'aria-label': title, dir: 'auto' }, text));
}
