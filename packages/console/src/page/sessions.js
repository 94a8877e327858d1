import { createActionButton, endSession } from './actions.js';
import { noteAddress, writeAddress } from './address.js';
import { h, setParts, setText, showList } from './dom.js';
import { count, counted, time, wholeSeconds } from './formats.js';
import { createMessageList } from './message-list.js';
import { createServerChoice } from './server-choice.js';
import { createSorting } from './sorting.js';
import { createTasks } from './tasks.js';

const searchPauseMs = 200;

/** Creates the view of the sessions and of the messages of one session. */
export function createSessions(section, live, about) {
  const search = h('input', {
    id: 'search',
    type: 'search',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Id, server, client, user …',
  });
  const scope = h(
    'select',
    { id: 'session-scope' },
    h('option', { value: '1' }, 'All instances'),
    h('option', { value: '0' }, 'This instance'),
  );
  const scopeField = h('div.search', { hidden: true }, h('label', { for: 'session-scope' }, 'Sessions of'), scope);
  const sources = h('p.muted', { hidden: true });
  const onChosen = () => {
    page = 0;
    subscribe();
    noteList();
  };
  const server = createServerChoice('session-server', onChosen);
  const failedOnly = h('input', { type: 'checkbox', id: 'session-failed', onchange: () => onChosen() });
  const sorting = createSorting(columns, { onChange: () => onChosen() });
  const table = h('table.dense', {}, h('thead', {}, h('tr', {}, ...sorting.elements)));
  const total = h('p.muted', { role: 'status' });
  const rows = h('tbody');
  const emptyHint = h('p.muted', { hidden: true }, 'No sessions. Connect a client, or use the playground.');
  const listAddress = () => [
    'sessions',
    [search.value.trim()],
    { of: server.value, failed: failedOnly.checked && '1', sort: sorting.order },
  ];
  const listHash = () => writeAddress(...listAddress());
  const messageList = createMessageList(live, about, listHash);
  const pages = createPages((wanted) => {
    page = wanted;
    subscribe();
  });
  let timer;
  let isShown = false;
  let hasOthers = false;
  let isDetail = false;
  let page = 0;
  /** Asks for the sessions of the list, if it is in front. */
  const subscribe = () => {
    if (!isShown) return;
    live.subscribe({
      everywhere: hasOthers ? Number(scope.value) : 0,
      search: search.value.trim(),
      of: server.value,
      failed: failedOnly.checked ? 1 : 0,
      order: sorting.order,
      page,
    });
  };
  scope.addEventListener('change', () => {
    page = 0;
    subscribe();
  });
  table.append(rows);
  // The address has the choices, so that the link to the view shows all sessions again.
  const noteList = () => {
    if (!isDetail) noteAddress(...listAddress());
  };
  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(onChosen, searchPauseMs);
  });
  section.append(
    h('div.heading', {}, h('div', {}, h('h1', { id: 'sessions-title', tabindex: '-1' }, 'Sessions'), total)),
    messageList.element,
    h(
      'div.filters',
      {},
      h('div.search', {}, h('label', { for: 'search' }, 'Search'), search),
      h('div.search', {}, h('label', { for: 'session-server' }, 'Server'), server.element),
      scopeField,
      h('label.choice', { for: 'session-failed' }, failedOnly, 'With failed calls'),
    ),
    h('div.table', { role: 'region', 'aria-label': 'List of sessions', tabindex: '0' }, table),
    sources,
    emptyHint,
    pages.element,
    createTasks(live).element,
  );
  live.on('state', ({ instance, instances, servers, sessions }) => {
    const { shown, found, total: all, others } = sessions;
    hasOthers = instances.length > 1;
    server.offer(servers.map(({ name }) => name));
    scopeField.hidden = !hasOthers;
    subscribe();
    const isEverywhere = others.length > 0;
    table.classList.toggle('one-instance', !isEverywhere);
    sources.hidden = !isEverywhere;
    setText(sources, describeSources(others));
    setText(
      total,
      found === all
        ? `${counted(all, 'session')} on ${isEverywhere ? counted(others.length + 1, 'instance') : 'this instance'}${describeElsewhere(instances, isEverywhere)}${sorting.order === '' ? ', newest first' : ''}; calls and failures since a session began`
        : `${count(found)} of ${counted(all, 'session')} found`,
    );
    emptyHint.hidden = shown.length > 0;
    setText(
      emptyHint,
      all === 0
        ? 'No sessions. Connect a client, or use the playground.'
        : `No session matches. Change the search or the other choices.${failedOnly.checked ? ' Failed calls without a session are in Errors.' : ''}`,
    );
    pages.update(sessions);
    showList(
      rows,
      shown,
      ({ instance: owner, server, session }) => `${owner ?? ''} ${server} ${session}`,
      createRow(instance.name),
    );
  });
  return {
    /** Is told whether the view is in front. Other instances are asked only then. */
    setShown(isInFront) {
      isShown = isInFront;
      if (isShown) return;
      live.subscribe({ everywhere: 0, search: '', of: '', failed: 0, order: '', page: 0 });
      messageList.show();
    },
    /** Shows what an address names: the messages of a session, or the sessions that match its choices. */
    show({ parts: [first = '', session], choices }) {
      isDetail = session !== undefined;
      if (!isDetail) {
        search.value = first;
        server.set(choices.of);
        failedOnly.checked = choices.failed === '1';
        sorting.set(choices.sort);
        page = 0;
      }
      subscribe();
      messageList.show(isDetail ? first : undefined, session);
      if (isDetail) document.getElementById('flow-title').focus();
    },
  };
}

/** Names the sessions that are on other instances and not in the list. */
function describeElsewhere(instances, isEverywhere) {
  const others = instances.filter(({ isThis }) => !isThis);
  if (isEverywhere || others.length === 0) return '';
  return ` (${count(instances.reduce((all, { sessions }) => all + sessions, 0))} on ${counted(instances.length, 'instance')})`;
}

/** The gateway sorts the list, which has pages. */
const columns = [
  { text: 'Session' },
  { key: 'server', text: 'Server', isText: true },
  { text: 'Instance', name: 'instance optional' },
  { key: 'client', text: 'Client', name: 'optional', isText: true },
  { key: 'user', text: 'User', name: 'optional', isText: true },
  { key: 'calls', text: 'Calls', name: 'figure optional' },
  { key: 'failed', text: 'Failed', name: 'figure' },
  { key: 'error', text: 'Last error', name: 'optional' },
  { key: 'age', text: 'Age', name: 'figure optional' },
  { key: 'idle', text: 'Idle', name: 'figure optional' },
  { text: '', name: 'figure' },
];

/** Creates a row. A session of another instance has neither messages nor actions here. */
const createRow =
  (here) =>
  ({ instance, server, session }) => {
    const cells = [
      'name',
      'name instance optional',
      'client optional',
      'client optional',
      'figure optional',
      'figure',
      'error optional',
      'figure optional',
      'figure optional',
    ];
    const [name, owner, client, user, calls, failed, error, age, idle] = cells.map((className) =>
      h('td', { class: className }),
    );
    // What the columns say that have no room on a phone.
    const [compactOwner, compactError] = ['span.compact', 'span.compact.bad'].map((tag) => h(tag));
    const isHere = instance === undefined;
    const link = isHere
      ? h('a', { href: writeAddress('sessions', [server, session]) }, session)
      : h('span', { title: `The status page of ${instance} shows its messages.` }, session);
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
    name.append(server, compactOwner, compactError);
    setText(owner, instance ?? `${here} (this one)`);
    // A click anywhere in the row is for the mouse only; keyboards use the link.
    const show = (event) => {
      if (isHere && event.target.closest('a, button') === null && getSelection().isCollapsed) location.hash = link.hash;
    };
    return {
      element: h(
        'tr',
        { onclick: show },
        h('th', { scope: 'row' }, link, hibernatingChip),
        name,
        owner,
        client,
        user,
        calls,
        failed,
        error,
        age,
        idle,
        h('td.figure', {}, isHere ? end : undefined),
      ),
      update(current) {
        hibernatingChip.hidden = !current.isHibernating;
        setText(client, current.client || '–');
        client.title = `${current.client} ${current.revision}, ${current.kind}`.trim();
        setText(user, current.user ?? '–');
        setText(compactOwner, [current.user, current.client, instance && `on ${instance}`].filter(Boolean).join(', '));
        const { failures, kind } = current;
        const last = failures === undefined ? '' : `${time(failures.at)} ${failures.last}`;
        setText(calls, count(current.totalCalls));
        calls.title = `${counted(current.calls, 'call')} in flight, ${counted(current.messages, 'message')}`;
        const errors = { href: writeAddress('errors', [session]), text: count(failures?.count ?? 0), mood: 'bad' };
        // Calls without a session count at the server, and not in the session of the gateway's own that serves them.
        const isCounted = kind !== 'group';
        setParts(failed, [isCounted ? (failures === undefined || !isHere ? errors.text : errors) : '–']);
        failed.title = isCounted
          ? ''
          : 'Failed calls without a session are counted at their server, and listed in Errors.';
        failed.classList.toggle('bad', failures !== undefined);
        setText(error, last);
        error.title = last;
        setText(compactError, last);
        setText(age, wholeSeconds(current.upMs));
        setText(idle, wholeSeconds(current.idleMs));
      },
    };
  };

/** Says how old the reports of other instances are, and what they leave out. */
function describeSources(others) {
  const oldest = Math.max(0, ...others.map(({ ageMs }) => ageMs));
  const age = `Sessions of ${counted(others.length, 'other instance')} were reported at most ${wholeSeconds(oldest)} ago.`;
  const partial = others.filter(({ omitted }) => omitted > 0);
  const more = partial.map(({ name, omitted }) => `${counted(omitted, 'older session')} of ${name}`);
  return more.length === 0 ? age : `${age} Not listed: ${more.join(', ')}. Use the search to find them.`;
}

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
