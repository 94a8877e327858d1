import { createActionButton, endSession } from './actions.js';
import { h, setText, showList } from './dom.js';
import { count, counted, duration, time } from './formats.js';
import { createMessageList } from './message-list.js';

const searchPauseMs = 200;

/** Creates the view of the sessions and of the messages of one session. */
export function createSessions(section, live, about) {
  const search = h('input', {
    id: 'search',
    type: 'search',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Server, session, client, user or hibernating',
  });
  const total = h('p.muted', { role: 'status' });
  const rows = h('tbody');
  const emptyHint = h('p.muted', { hidden: true }, 'No sessions. Connect a client, or use the playground.');
  const messageList = createMessageList(live, about);
  const pages = createPages((page) => live.subscribe({ page }));
  let timer;
  const find = (text) => live.subscribe({ search: text.trim(), page: 0 });
  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => find(search.value), searchPauseMs);
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
    pages.element,
  );
  live.on('state', ({ sessions }) => {
    const { shown, found, total: all } = sessions;
    setText(
      total,
      found === all
        ? `${counted(all, 'session')} on this instance, newest first`
        : `${count(found)} of ${counted(all, 'session')} found`,
    );
    emptyHint.hidden = shown.length > 0;
    setText(
      emptyHint,
      all === 0
        ? 'No sessions. Connect a client, or use the playground.'
        : 'No session matches. Change the search text.',
    );
    pages.update(sessions);
    showList(rows, shown, ({ server, session }) => `${server} ${session}`, createRow);
  });
  return {
    /** Shows the messages of a session; or all sessions of a server, if only the server is given. */
    show(server, session) {
      if (server !== undefined && session === undefined) {
        search.value = server;
        find(server);
      }
      messageList.show(session === undefined ? undefined : server, session);
    },
  };
}

const headings = () =>
  [
    ['Session', ''],
    ['Server', ''],
    ['Client', 'optional'],
    ['User', 'optional'],
    ['Calls', 'figure optional'],
    ['Failed', 'figure'],
    ['Messages', 'figure optional'],
    ['Age', 'figure optional'],
    ['Idle', 'figure'],
    ['', 'figure'],
  ].map(([text, name]) => h('th', { scope: 'col', class: name || undefined }, text || h('span.unseen', {}, 'Actions')));

function createRow({ server, session }) {
  const cells = [
    'name',
    'client optional',
    'client optional',
    'figure optional',
    'figure',
    'figure optional',
    'figure optional',
    'figure',
  ];
  const [name, client, user, calls, failed, messages, age, idle] = cells.map((className) =>
    h('td', { class: className || undefined }),
  );
  const link = h('a', { href: `#sessions/${encodeURIComponent(server)}/${encodeURIComponent(session)}` }, session);
  const hibernatingChip = h(
    'span.chip',
    { hidden: true, title: 'The session has no process. The next request starts one.' },
    'hibernating',
  );
  const end = createActionButton(
    'sessions',
    'button.quiet',
    { 'aria-label': `End session ${session}`, onclick: () => endSession({ server, session }) },
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
      client,
      user,
      calls,
      failed,
      messages,
      age,
      idle,
      h('td.figure', {}, end),
    ),
    update(current) {
      hibernatingChip.hidden = !current.isHibernating;
      setText(client, current.client || '–');
      client.title = `${current.client} ${current.revision}, ${current.kind}`.trim();
      setText(user, current.user ?? '–');
      setText(calls, count(current.calls));
      setText(failed, count(current.failures?.count ?? 0));
      failed.classList.toggle('bad', current.failures !== undefined);
      failed.title = current.failures === undefined ? '' : `${time(current.failures.at)} ${current.failures.last}`;
      setText(messages, count(current.messages));
      setText(age, wholeSeconds(current.upMs));
      setText(idle, wholeSeconds(current.idleMs));
    },
  };
}

const wholeSeconds = (ms) => (ms < 1_000 ? '0 s' : duration(Math.floor(ms / 1_000) * 1_000));

/** Creates the buttons that turn the pages of the list. */
function createPages(onPage) {
  let at = 0;
  const position = h('span.muted');
  const previous = h('button', { type: 'button', onclick: () => onPage(at - 1) }, 'Newer');
  const next = h('button', { type: 'button', onclick: () => onPage(at + 1) }, 'Older');
  const element = h('div.buttons', { hidden: true }, previous, position, next);
  return {
    element,
    update({ page, pages }) {
      at = page;
      element.hidden = pages < 2;
      setText(position, `Page ${count(page + 1)} of ${count(pages)}`);
      previous.disabled = page === 0;
      next.disabled = page === pages - 1;
    },
  };
}
