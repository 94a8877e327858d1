import { h, showList } from './dom.js';
import { duration, time } from './formats.js';

/** The number of entries that the page keeps. */
const maxShown = 300;

/** Creates the list of messages between the playground and the gateway, newest last, as in a conversation. */
export function createTranscript() {
  const list = h('ol.rows.flow.transcript', { 'aria-label': 'Messages', tabindex: '0' });
  let entries = [];
  let numbered = 0;
  const draw = () => showList(list, entries, ({ number }) => number, createEntry);
  return {
    element: list,
    clear() {
      entries = [];
      draw();
    },
    add(entry) {
      if (entry.kind === 'stream') return;
      const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
      entries = [...entries, { ...entry, at: Date.now(), number: numbered++ }].slice(-maxShown);
      draw();
      if (isAtEnd) list.scrollTop = list.scrollHeight;
    },
  };
}

const eventTexts = {
  cut: () => ['You cut the connection', 'bad'],
  waiting: ({ ms }) => [`The stream broke; resuming in ${duration(ms)}`, ''],
  resuming: ({ lastEventId }) => [`Resuming with Last-Event-ID: ${lastEventId}`, 'good'],
  primed: () => ['Stream opened; resumable from here on', ''],
  over: ({ text }) => [text, 'bad'],
  failed: ({ text }) => [`The answer could not be sent: ${text}`, 'bad'],
};

function createEntry({ at, kind, from, message, eventId, ...rest }) {
  const clock = h('time', { datetime: new Date(at).toISOString() }, time(at));
  const id = eventId === undefined ? undefined : h('code.muted.figure', { title: 'Event id' }, eventId);
  if (kind !== 'message') {
    const [text, mood] = eventTexts[kind](rest);
    const dot = h('span', { class: `way dot ${mood}`, 'aria-hidden': 'true' });
    return {
      element: h('li', { class: mood || undefined }, clock, dot, h('span', {}, text), id),
      update: () => undefined,
    };
  }
  const isClient = from === 'client';
  const element = h(
    'li',
    {},
    clock,
    h(
      'span',
      { class: isClient ? 'way' : 'way back' },
      isClient ? '→' : '←',
      h('span.unseen', {}, isClient ? 'sent' : 'received'),
    ),
    h('span', { class: message.error === undefined ? undefined : 'bad' }, nameOf(message)),
    id,
    h('details', {}, h('summary', {}, 'Content'), h('pre', { tabindex: '0' }, JSON.stringify(message, undefined, 2))),
  );
  return { element, update: () => undefined };
}

function nameOf({ method, params, error, id }) {
  if (method === 'tools/call') return `${method} ${params?.name}`;
  if (method === 'notifications/progress') {
    const { progress, total, message } = params ?? {};
    return `${method} ${progress}${total === undefined ? '' : ` of ${total}`}${message === undefined ? '' : ` ${message}`}`;
  }
  return method ?? `${error === undefined ? 'result' : 'error'} of ${id}`;
}
