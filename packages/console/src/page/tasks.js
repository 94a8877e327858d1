import { cancelTask, createActionButton } from './actions.js';
import { h, setText, showList } from './dom.js';
import { count, counted, wholeSeconds } from './formats.js';

/** What the states of a task mean, as in the protocol. */
const states = { working: 'working', input_required: 'waits for input' };

/** Creates the list of the running tasks. It is hidden while there are none. */
export function createTasks(live) {
  const total = h('p.muted');
  const rows = h('tbody');
  const table = h('table.dense', {}, h('thead', {}, h('tr', {}, ...headings())), rows);
  const element = h(
    'div',
    { hidden: true },
    h('h2', {}, 'Tasks'),
    total,
    h('div.table', { role: 'region', 'aria-label': 'List of tasks', tabindex: '0' }, table),
  );
  live.on('state', ({ instance, instances, tasks }) => {
    element.hidden = tasks.total === 0;
    table.classList.toggle('one-instance', instances.length === 1);
    const more = tasks.total - tasks.shown.length;
    setText(
      total,
      `${counted(tasks.total, 'call')} that became a task and ${tasks.total === 1 ? 'runs' : 'run'}, newest first${more > 0 ? `; not listed: ${count(more)}` : ''}`,
    );
    showList(rows, tasks.shown, ({ task }) => task, createRow(instance.name));
  });
  return { element };
}

const headings = () =>
  [
    ['Task', ''],
    ['Server', ''],
    ['Instance', 'instance optional'],
    ['Tool', 'optional'],
    ['User', 'optional'],
    ['State', ''],
    ['Age', 'figure'],
    ['', 'figure'],
  ].map(([text, name]) => h('th', { scope: 'col', class: name || undefined }, text || h('span.unseen', {}, 'Actions')));

const createRow =
  (here) =>
  ({ task, server, tool, user }) => {
    const owner = h('td.name.instance.optional');
    const state = h('td');
    const age = h('td.figure');
    const cancel = createActionButton(
      'sessions',
      'button.quiet',
      { 'aria-label': `Cancel task ${task}`, onclick: () => cancelTask({ task, server, tool }) },
      'Cancel…',
    );
    const element = h(
      'tr',
      {},
      h('th', { scope: 'row' }, task),
      h('td.name', {}, server),
      owner,
      h('td.name.optional', {}, tool ?? '–'),
      h('td.client.optional', {}, user ?? '–'),
      state,
      age,
      h('td.figure', {}, cancel),
    );
    return {
      element,
      update(current) {
        setText(owner, current.instance ?? `${here} (this one)`);
        setText(state, states[current.status] ?? current.status);
        setText(age, wholeSeconds(current.ageMs));
      },
    };
  };
