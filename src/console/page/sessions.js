import { endSession } from './actions.js';
import { h, setText, showList } from './dom.js';
import { count, counted, duration } from './formats.js';
import { createFlow } from './message-list.js';

const searchPauseMs = 200;

/** The view of sessions, and of the messages of one. */
export function createSessions(section, live, about) {
  const search = h('input', {
    id: 'search',
    type: 'search',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Filter by server, session, revision or hibernating',
  });
  const total = h('p.muted', { role: 'status' });
  const rows = h('tbody');
  const nothing = h('p.muted', { hidden: true }, 'No sessions. Connect a client, or use the playground.');
  const flow = createFlow(live, about);
  let timer;
  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => live.wish({ search: search.value.trim() }), searchPauseMs);
  });
  section.append(
    h('div.heading', {}, h('div', {}, h('h1', { id: 'sessions-title', tabindex: '-1' }, 'Sessions'), total)),
    flow.element,
    h('div.search', {}, h('label', { for: 'search' }, 'Search'), search),
    h(
      'div.table',
      { role: 'region', 'aria-label': 'Sessions', tabindex: '0' },
      h('table', {}, h('thead', {}, h('tr', {}, ...headings())), rows),
    ),
    nothing,
  );
  live.on('state', ({ sessions }) => {
    const { shown, found, total: all } = sessions;
    const hidden = found > shown.length ? `; showing the ${count(shown.length)} used last` : '';
    setText(
      total,
      found === all
        ? `${counted(all, 'session')} on this instance${hidden}`
        : `${count(found)} of ${counted(all, 'session')} found${hidden}`,
    );
    nothing.hidden = shown.length > 0;
    showList(rows, shown, ({ server, session }) => `${server} ${session}`, createRow);
  });
  return { show: (server, session) => flow.show(server, session) };
}

const headings = () =>
  [
    ['Session', ''],
    ['Server', ''],
    ['Revision', 'optional'],
    ['Kind', 'optional'],
    ['Calls', 'figure'],
    ['Streams', 'figure optional'],
    ['Messages', 'figure optional'],
    ['Idle', 'figure'],
    ['', 'figure'],
  ].map(([text, name]) => h('th', { scope: 'col', class: name || undefined }, text || h('span.unseen', {}, 'Actions')));

function createRow({ server, session }) {
  const cells = ['name', 'optional', 'optional', 'figure', 'figure optional', 'figure optional', 'figure'];
  const [name, revision, kind, calls, streams, messages, idle] = cells.map((of) => h('td', { class: of || undefined }));
  const link = h('a', { href: `#sessions/${encodeURIComponent(server)}/${encodeURIComponent(session)}` }, session);
  const sleep = h(
    'span.chip',
    { hidden: true, title: 'The session has no process. The next request starts one.' },
    'hibernating',
  );
  const end = h(
    'button.quiet',
    { type: 'button', 'aria-label': `End session ${session}`, onclick: () => endSession({ server, session }) },
    'End…',
  );
  setText(name, server);
  // For the mouse alone: the link is there for everything else.
  const show = (event) => {
    if (event.target.closest('a, button') === null && getSelection().isCollapsed) location.hash = link.hash;
  };
  return {
    element: h(
      'tr',
      { onclick: show },
      h('th', { scope: 'row' }, link, sleep),
      name,
      revision,
      kind,
      calls,
      streams,
      messages,
      idle,
      h('td.figure', {}, end),
    ),
    update(of) {
      sleep.hidden = !of.isHibernating;
      setText(revision, of.revision);
      setText(kind, of.kind);
      setText(calls, count(of.calls));
      setText(streams, count(of.streams));
      setText(messages, count(of.messages));
      setText(idle, duration(Math.floor(of.idleMs / 1_000) * 1_000));
    },
  };
}
