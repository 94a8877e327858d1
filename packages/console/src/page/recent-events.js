import { docsLink, errorPage } from './docs-links.js';
import { h, sessionLink, showList } from './dom.js';
import { count, time } from './formats.js';
import { describeReason, isDocumented } from './reasons.js';

/** The number of events that the page keeps; the log has all of them. */
const maxShown = 200;

/** The text of each kind of event, and whether it is good, bad or neither. */
const texts = {
  session_started: ['Session started', ''],
  session_ended: ['Session ended', ''],
  session_reopened: ['Session opened again, because its clients called again', ''],
  session_adopted: ['Session taken over from an instance that was lost', 'good'],
  session_continued: ['Session continues here after its instance stopped', 'good'],
  session_worn_out: ['Session abandoned: its owners failed repeatedly', 'bad'],
  resumed: ['Stream resumed', 'good'],
  history_lost: ['Stream resumed, but some missed events are no longer stored', 'bad'],
  backend_ended: ['Server ended', 'bad'],
  backend_restored: ['Server restored', 'good'],
  hibernated: ['Session hibernated: it has no process until its next use', ''],
  woken: ['Session woken: it has a process again', 'good'],
  shared_ready: ['Shared server ready', 'good'],
  shared_ended: ['Shared server ended', 'bad'],
  start_failed: ['Server did not start', 'bad'],
  only_process: ['Only one process of the server can run', 'bad'],
  noise: ['Server writes lines to stdout that are not MCP messages', 'bad'],
  crash_loop: ['Server exited repeatedly; the gateway waits before the next start', 'bad'],
  redis_away: ['The store is unavailable', 'bad'],
  redis_back: ['The store is available', 'good'],
  refused: ['Requests refused', 'bad'],
  reloaded: ['Configuration reloaded', 'good'],
  draining: ['Instance drains: it accepts no new sessions and exits', 'bad'],
  reload_refused: ['Changed configuration refused; the previous one stays in use', 'bad'],
};

/** The choices of events, by the name in the address of the page. */
const choices = {
  restarts: [
    'Restarts',
    'backend_ended backend_restored shared_ready shared_ended start_failed only_process crash_loop session_worn_out',
  ],
  refused: ['Refused requests', 'refused'],
  resumed: ['Resumed streams', 'resumed history_lost'],
  store: ['Store', 'redis_away redis_back'],
  sessions: [
    'Sessions',
    'session_started session_ended session_reopened session_adopted session_continued hibernated woken',
  ],
};

/** Creates the list of recent events, newest first. */
export function createRecentEvents() {
  const list = h('ol.rows.happenings', { 'aria-labelledby': 'happenings-title', tabindex: '0' });
  const nothing = h('p.muted', {}, 'Nothing yet. Sessions, resumes and takeovers appear here.');
  const server = h(
    'select',
    { id: 'activity-server', onchange: () => draw() },
    h('option', { value: '' }, 'All servers'),
  );
  const choice = h(
    'select',
    { id: 'activity-kind', onchange: () => draw() },
    h('option', { value: '' }, 'All events'),
    ...Object.entries(choices).map(([value, [text]]) => h('option', { value }, text)),
  );
  const title = h('h2', { id: 'happenings-title', tabindex: '-1' }, 'Activity');
  const servers = new Set();
  let shown = [];
  /** Offers each server of an event once. */
  const offer = (events) => {
    for (const { server: name } of events) {
      if (name === undefined || servers.has(name)) continue;
      servers.add(name);
      server.append(h('option', { value: name }, name));
    }
  };
  const draw = () => {
    const kinds = choices[choice.value]?.[1].split(' ');
    const matching = shown.filter(
      (event) =>
        (server.value === '' || event.server === server.value) && (kinds === undefined || kinds.includes(event.kind)),
    );
    nothing.hidden = matching.length > 0;
    showList(list, matching, ({ number, at }) => `${number} ${at}`, createEvent);
  };
  return {
    element: h(
      'section',
      { 'aria-labelledby': 'happenings-title' },
      h(
        'div.heading',
        {},
        title,
        h(
          'div.range',
          {},
          h('label', { for: 'activity-kind' }, 'Show'),
          choice,
          h('label', { for: 'activity-server' }, 'Server'),
          server,
        ),
      ),
      nothing,
      list,
    ),
    /** Shows one choice of events, for a person who was led there. */
    goTo(name) {
      choice.value = name in choices ? name : '';
      server.value = '';
      draw();
      title.focus();
    },
    /** Adds events. A repeated event replaces its entry. An event that is sent again after a reconnect is not shown twice, because events are numbered. */
    add(events) {
      const newest = shown[0]?.number ?? -1;
      const restarted = events.length > 0 && events.at(-1).number < newest;
      const newEvents = restarted ? events : events.filter(({ number }) => number > newest);
      const replaced = new Set(newEvents.map(({ first }) => first));
      const kept = restarted ? [] : shown.filter(({ first }) => !replaced.has(first));
      shown = [...newEvents.toReversed(), ...kept].slice(0, maxShown);
      offer(newEvents);
      draw();
    },
  };
}

function createEvent({ at, firstAt, count: times, kind, server, session, reason, detail, output }) {
  const [text, mood] = texts[kind] ?? [kind, ''];
  const why = [reason && describeReason(reason), detail].filter(Boolean).join(': ');
  const help = reason && isDocumented(reason) && docsLink(errorPage(reason), reason, { title: 'What helps' });
  const element = h(
    'li',
    {},
    h('time', { datetime: new Date(at).toISOString() }, time(at)),
    h('span', { class: `dot ${mood}`, 'aria-hidden': 'true' }),
    h(
      'span',
      {},
      text,
      h(
        'span.muted',
        {},
        server === undefined ? undefined : ` ${server}`,
        ...(session === undefined ? [] : [' · ', sessionLink(server, session)]),
        times === undefined ? undefined : ` · ${count(times)} times since ${time(firstAt)}, the last:`,
      ),
      why === '' ? undefined : h('span.muted.detail', {}, why, ...(help ? [' · ', help] : [])),
      output === undefined ? undefined : h('code.output', {}, output.join('\n')),
    ),
  );
  return { element, update: () => undefined };
}
