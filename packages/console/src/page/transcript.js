import { h, setText, showList } from './dom.js';
import { duration, time } from './formats.js';

/** The number of entries that the page keeps. */
const maxShown = 300;

/**
 * Creates the list of messages between the playground and the gateway, newest last, as in a conversation. A request and
 * its response are one row, which opens.
 */
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
      if (entry.kind === 'unanswered') {
        const sent = entries.findLast(({ from, message }) => from === 'client' && message.id === entry.id);
        if (sent !== undefined) sent.unanswered = { ...entry, at: Date.now() };
        draw();
        return;
      }
      const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
      const newest = { ...entry, at: Date.now(), number: numbered++ };
      const request = findRequest(entries, entry);
      if (request === undefined) entries = [...entries, newest].slice(-maxShown);
      else request.response = newest;
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

/** Finds the request that a message answers. */
function findRequest(entries, { kind, from, message }) {
  if (kind !== 'message' || message.method !== undefined) return undefined;
  return entries.findLast(
    (entry) =>
      entry.kind === 'message' &&
      entry.from !== from &&
      entry.message.method !== undefined &&
      entry.message.id === message.id &&
      entry.response === undefined,
  );
}

const createEntry = (entry) => (entry.kind === 'message' ? createMessage(entry) : createEvent(entry));

const createClock = (at) => h('time', { datetime: new Date(at).toISOString() }, time(at));

const createId = (eventId) => (eventId === undefined ? undefined : h('code', { title: 'Event id' }, eventId));

function createEvent({ at, kind, eventId, ...rest }) {
  const [text, mood] = eventTexts[kind](rest);
  const dot = h('span', { class: `way dot ${mood}`, 'aria-hidden': 'true' });
  const id = h('span.muted.figure', {}, createId(eventId));
  return {
    element: h('li', { class: mood || undefined }, createClock(at), dot, h('span', {}, text), id),
    update: () => undefined,
  };
}

function createMessage({ at, from, message, eventId }) {
  const isClient = from === 'client';
  const name = h('span', {}, nameOf(message));
  const outcome = h('span.figure.muted', {}, createId(eventId));
  const details = h(
    'details',
    {},
    h(
      'summary',
      {},
      createClock(at),
      h(
        'span',
        { class: isClient ? 'way' : 'way back' },
        isClient ? '→' : '←',
        h('span.unseen', {}, isClient ? 'sent' : 'received'),
      ),
      name,
      outcome,
    ),
    createContent(message),
  );
  let isAnswered = false;
  return {
    element: h('li', {}, details),
    update({ response, unanswered }) {
      const isLost = response === undefined && unanswered?.isCancelled === false;
      name.className = isLost || hasFailed(response?.message ?? message) ? 'bad' : '';
      if (response === undefined && unanswered !== undefined) {
        outcome.className = isLost ? 'figure bad' : 'figure muted';
        outcome.title = unanswered.text;
        setText(outcome, `${duration(unanswered.at - at)} · ${isLost ? 'no answer' : 'cancelled'}`);
      }
      if (response === undefined || isAnswered) return;
      isAnswered = true;
      const mood = hasFailed(response.message) ? 'failed' : 'ok';
      outcome.className = mood === 'failed' ? 'figure bad' : 'figure muted';
      const id = createId(response.eventId);
      outcome.replaceChildren(`${duration(response.at - at)} · ${mood} `, ...(id === undefined ? [] : [id]));
      details.append(createContent(response.message));
    },
  };
}

const createContent = (message) => h('pre', { tabindex: '0', dir: 'auto' }, JSON.stringify(message, undefined, 2));

const hasFailed = ({ error, result }) => error !== undefined || result?.isError === true;

function nameOf({ method, params, error, id }) {
  if (method === 'tools/call') return `${method} ${params?.name}`;
  if (method === 'notifications/progress') {
    const { progress, total, message } = params ?? {};
    return `${method} ${progress}${total === undefined ? '' : ` of ${total}`}${message === undefined ? '' : ` ${message}`}`;
  }
  return method ?? `${error === undefined ? 'result' : 'error'} of ${id}`;
}
