import { h, showList } from './dom.js';
import { time } from './formats.js';

/** More are not kept: the log has them all. */
const maxShown = 50;

/** What is said of each kind of event, and whether it is good, bad or neither. */
const words = {
  session_started: ['Session started', ''],
  session_ended: ['Session ended', ''],
  session_adopted: ['Session taken over from another instance', 'good'],
  session_worn_out: ['Session abandoned: its owners were lost repeatedly', 'bad'],
  resumed: ['Stream resumed', 'good'],
  history_lost: ['Stream resumed, but some missed events are no longer stored', 'bad'],
  backend_ended: ['Server ended', 'bad'],
  backend_restored: ['Server restored', 'good'],
  hibernated: ['Session hibernated: its unused process was stopped', ''],
  woken: ['Session woken: its process was started again', 'good'],
  shared_ready: ['Shared server ready', 'good'],
  shared_ended: ['Shared server ended', 'bad'],
  start_failed: ['Server did not start', 'bad'],
  noise: ['Server writes lines to stdout that are not MCP messages', 'bad'],
  crash_loop: ['Server exited repeatedly; the gateway waits before the next start', 'bad'],
  redis_away: ['Redis is unavailable', 'bad'],
  redis_back: ['Redis answers', 'good'],
};

/** What happens, newest first. */
export function createHappenings() {
  const list = h('ol.rows.happenings', { 'aria-labelledby': 'happenings-title', tabindex: '0' });
  const nothing = h('p.muted', {}, 'Nothing yet. Sessions, resumes and takeovers appear here.');
  let shown = [];
  return {
    element: h(
      'section',
      { 'aria-labelledby': 'happenings-title' },
      h('h2', { id: 'happenings-title' }, 'Activity'),
      nothing,
      list,
    ),
    /** Each has a number; one that is told again, after a reconnect, is not shown twice. */
    add(some) {
      const newest = shown[0]?.number ?? -1;
      const restarted = some.length > 0 && some.at(-1).number < newest;
      const news = restarted ? some : some.filter(({ number }) => number > newest);
      shown = [...news.toReversed(), ...(restarted ? [] : shown)].slice(0, maxShown);
      nothing.hidden = shown.length > 0;
      showList(list, shown, ({ number, at }) => `${number} ${at}`, createHappening);
    },
  };
}

function createHappening({ at, kind, server, session, detail }) {
  const [text, mood] = words[kind] ?? [kind, ''];
  const whose = [server, session].filter((part) => part !== undefined).join(' · ');
  const element = h(
    'li',
    {},
    h('time', { datetime: new Date(at).toISOString() }, time(at)),
    h('span', { class: `dot ${mood}`, 'aria-hidden': 'true' }),
    h(
      'span',
      {},
      text,
      h('span.muted', {}, whose && ` ${whose}`),
      detail === undefined ? undefined : h('span.muted.detail', {}, detail),
    ),
  );
  return { element, update: () => undefined };
}
