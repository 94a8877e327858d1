import { drainInstance } from './actions.js';
import { h, setText, showList } from './dom.js';
import { bytes, count, counted, duration, number } from './formats.js';
import { createHappenings } from './recent-events.js';
import { createServer } from './server-card.js';

/** Numbers of the instance, in the order in which they are asked for: does it work, for how many, how fast. */
const figures = [
  [
    'Sessions',
    ({ instance }) => count(instance.sessions),
    ({ instance }) => `of at most ${count(instance.maxSessions)}`,
  ],
  [
    'Open streams',
    ({ instance }) => count(instance.streams),
    ({ instance }) => `${counted(instance.calls, 'call')} in flight`,
  ],
  [
    'Calls per second',
    ({ instance }) => number(instance.callsPerSecond),
    ({ instance }) => `${number(instance.errorsPerSecond)} failed per second`,
  ],
  [
    'Response time',
    ({ instance }) => (instance.p95Ms === null ? '–' : duration(instance.p95Ms)),
    ({ instance }) => (instance.p95Ms === null ? 'no answer in the last 2 min' : 'p95, last 2 min'),
  ],
  ['Memory', ({ instance }) => bytes(instance.memoryBytes), ({ instance }) => `up ${duration(instance.upMs)}`],
];

/** The view of what this gateway does. */
export function createOverview(section, live) {
  const pill = h('span.pill');
  const state = h('p.muted.lead');
  const numbers = h('dl.figures');
  const servers = h('div.servers');
  const instances = h('ul.rows', { 'aria-labelledby': 'instances-title' });
  const cluster = h(
    'section',
    { 'aria-labelledby': 'instances-title' },
    h('h2', { id: 'instances-title' }, 'Instances'),
    instances,
  );
  const happenings = createHappenings();
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
        h('button', { type: 'button', onclick: () => instance && drainInstance(instance) }, 'Drain…'),
      ),
    ),
    numbers,
    h('section', { 'aria-labelledby': 'servers-title' }, h('h2', { id: 'servers-title' }, 'Servers'), servers),
    h('div.columns', {}, happenings.element, cluster),
  );
  live.on('happened', (some) => happenings.add(some));
  live.on('state', (snapshot) => {
    instance = snapshot.instance;
    setText(state, `${instance.name}, version ${instance.version}`);
    pill.className = instance.readiness === 'ready' ? 'pill good' : 'pill bad';
    setText(pill, wordOf[instance.readiness] ?? instance.readiness);
    const shown = figures.map(([name, value, detail]) => ({ name, value: value(snapshot), detail: detail(snapshot) }));
    showList(numbers, shown, ({ name }) => name, createFigure);
    showList(servers, snapshot.servers, ({ name }) => name, createServer);
    cluster.hidden = snapshot.instances.length < 2;
    showList(instances, snapshot.instances, ({ name }) => name, createInstance);
  });
}

const wordOf = {
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
    update(of) {
      setText(value, of.value);
      setText(detail, of.detail);
    },
  };
}

function createInstance() {
  const name = h('strong');
  const said = h('span.muted');
  return {
    element: h('li', {}, name, said),
    update(of) {
      setText(name, of.isThis ? `${of.name} (this one)` : of.name);
      setText(
        said,
        `${wordOf[of.readiness] ?? of.readiness} · ${counted(of.sessions, 'session')} · ${counted(of.streams, 'stream')} · ${of.version}`,
      );
    },
  };
}
