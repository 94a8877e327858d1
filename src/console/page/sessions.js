import { endSession } from './actions.js';
import { h, setText, showList } from './dom.js';
import { count, counted, duration } from './formats.js';
import { createMessageList } from './message-list.js';

const searchPauseMs = 200;

/** Creates the view of the sessions and of the messages of one session. */
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
  const emptyHint = h('p.muted', { hidden: true }, 'No sessions. Connect a client, or use the playground.');
  const messageList = createMessageList(live, about);
  let timer;
  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => live.subscribe({ search: search.value.trim() }), searchPauseMs);
  });
  section.append(
    h('div.heading', {}, h('div', {}, h('h1', { id: 'sessions-title', tabindex: '-1' }, 'Sessions'), total)),
    messageList.element,
    h('div.search', {}, h('label', { for: 'search' }, 'Search'), search),
    h(
      'div.table',
      { role: 'region', 'aria-label': 'Sessions', tabindex: '0' },
      h('table', {}, h('thead', {}, h('tr', {}, ...headings())), rows),
    ),
    emptyHint,
  );
  live.on('state', ({ sessions }) => {
    const { shown, found, total: all } = sessions;
    const hidden = found > shown.length ? `; showing the ${count(shown.length)} most recently used` : '';
    setText(
      total,
      found === all
        ? `${counted(all, 'session')} on this instance${hidden}`
        : `${count(found)} of ${counted(all, 'session')} found${hidden}`,
    );
    emptyHint.hidden = shown.length > 0;
    showList(rows, shown, ({ server, session }) => `${server} ${session}`, createRow);
  });
  return { show: (server, session) => messageList.show(server, session) };
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
  const [name, revision, kind, calls, streams, messages, idle] = cells.map((className) =>
    h('td', { class: className || undefined }),
  );
  const link = h('a', { href: `#sessions/${encodeURIComponent(server)}/${encodeURIComponent(session)}` }, session);
  const hibernatingChip = h(
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
  // A click anywhere in the row is for the mouse only; keyboards use the link.
  const show = (event) => {
    if (event.target.closest('a, button') === null && getSelection().isCollapsed) location.hash = link.hash;
  };
  return {
    element: h(
      'tr',
      { onclick: show },
      h('th', { scope: 'row' }, link, hibernatingChip),
      name,
      revision,
      kind,
      calls,
      streams,
      messages,
      idle,
      h('td.figure', {}, end),
    ),
    update(current) {
      hibernatingChip.hidden = !current.isHibernating;
      setText(revision, current.revision);
      setText(kind, current.kind);
      setText(calls, count(current.calls));
      setText(streams, count(current.streams));
      setText(messages, count(current.messages));
      setText(idle, duration(Math.floor(current.idleMs / 1_000) * 1_000));
    },
  };
}
