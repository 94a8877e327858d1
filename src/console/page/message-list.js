import { endSession } from './actions.js';
import { h, setText, showList } from './dom.js';
import { bytes, duration, time } from './formats.js';

/** The number of messages that the page keeps. */
const maxShown = 200;

const passing = 'New messages appear here';
const inspected = 'with their contents (--inspect).';
const notInspected = 'without their contents; start the gateway with --inspect to see them.';

/** Creates the list of the messages of one session as they pass, newest first. */
export function createMessageList(live, { inspects }) {
  const title = h('h2', { id: 'flow-title', tabindex: '-1' });
  const about = h('p.muted');
  const rows = h('ol.rows.flow', { 'aria-labelledby': 'flow-title', tabindex: '0' });
  const hint = h('p.muted');
  const end = h('button', { type: 'button', onclick: () => endSession(current) }, 'End session…');
  const element = h(
    'section.card',
    { 'aria-labelledby': 'flow-title', hidden: true },
    h(
      'div.heading',
      {},
      h('div', {}, title, about),
      h('div.buttons', {}, end, h('a.button', { href: '#sessions' }, 'Close')),
    ),
    hint,
    rows,
  );
  let current = { server: '', session: '' };
  let isHere = true;
  let shown = [];
  let numbered = 0;
  const draw = () => {
    hint.hidden = shown.length > 0;
    setText(
      hint,
      isHere
        ? `${passing}, ${inspects ? inspected : notInspected}`
        : 'The messages of this session do not pass through this instance.',
    );
    end.hidden = !isHere;
    showList(rows, shown, ({ number }) => number, createMessage);
  };
  live.on('flow', ({ server, session, messages, skipped }) => {
    if (server !== current.server || session !== current.session) return;
    const newMessages = messages.map((message) => ({ ...message, number: numbered++ }));
    if (skipped > 0) newMessages.push({ number: numbered++, skipped });
    shown = [...newMessages.toReversed(), ...shown].slice(0, maxShown);
    draw();
  });
  live.on('watched', ({ server, session, found }) => {
    if (server !== current.server || session !== current.session) return;
    isHere = found !== undefined;
    setText(about, describeSession(server, found));
    draw();
  });
  return {
    element,
    /** Shows the messages of this session; of none if undefined. */
    show(server = '', session = '') {
      if (server === current.server && session === current.session) return;
      current = { server, session };
      isHere = true;
      shown = [];
      draw();
      element.hidden = session === '';
      setText(title, session === '' ? '' : `Session ${session}`);
      setText(about, server);
      live.subscribe(current);
    },
  };
}

/** Describes a session; `found` is undefined if it is not on this instance. */
function describeSession(server, found) {
  if (found === undefined) return `${server} · has ended or moved to another instance`;
  const { revision, client, user, upMs, pid, isHibernating, failures } = found;
  const process = isHibernating ? ' · hibernating, without a process' : pid === undefined ? '' : ` · pid ${pid}`;
  const owner = [client, user].filter(Boolean).map((name) => ` · ${name}`);
  const failed = failures === undefined ? '' : ` · last error at ${time(failures.at)}: ${failures.last}`;
  return `${server}${owner.join('')} · ${revision} · started ${duration(upMs)} ago${process}${failed}`;
}

function createMessage(message) {
  if (message.skipped !== undefined) {
    const text = `${message.skipped} more messages from this moment are not shown.`;
    return { element: h('li.muted', {}, text), update: () => undefined };
  }
  const { at, from, kind, method, size, ms, isError, text } = message;
  const isClient = from === 'client';
  const label =
    kind === 'response' ? `${isError ? 'error' : 'result'}${method ? ` of ${method}` : ''}` : (method ?? kind);
  const element = h(
    'li',
    {},
    h('time', { datetime: new Date(at).toISOString() }, time(at)),
    h(
      'span',
      { class: isClient ? 'way' : 'way back' },
      isClient ? '→' : '←',
      h('span.unseen', {}, isClient ? 'to the server' : 'to the client'),
    ),
    h('span', { class: isError ? 'bad' : undefined }, label),
    h('span.muted.figure', {}, ms === undefined ? bytes(size) : `${bytes(size)} · ${duration(ms)}`),
    text === undefined ? undefined : h('details', {}, h('summary', {}, 'Content'), h('pre', { tabindex: '0' }, text)),
  );
  return { element, update: () => undefined };
}
