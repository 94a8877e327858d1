import { createActionButton, endSession } from './actions.js';
import { copyText, h, setText, showList } from './dom.js';
import { Exchanges, isFailed } from './exchanges.js';
import { bytes, counted, duration, time, wholeSeconds } from './formats.js';

/** The number of exchanges that the page keeps. */
const maxShown = 200;

/** The other instances have answered after this time. */
const askMs = 5_000;

const passing = 'New messages appear here';
const inspected = 'with their contents (--observe.showContents).';
const notInspected = 'without their contents; start the gateway with --observe.showContents to see them.';

/**
 * Creates the list of the messages of one session as they pass, newest first.
 * @param {() => string} listHash the address of the list of sessions, with its search
 */
export function createMessageList(live, { inspects }, listHash) {
  const title = h('h2', { id: 'flow-title', tabindex: '-1' });
  const about = h('p.muted');
  const rows = h('ol.rows.flow', { 'aria-labelledby': 'flow-title', tabindex: '0' });
  const hint = h('p.muted');
  const end = createActionButton('sessions', 'button', { onclick: () => endSession(current) }, 'End session…');
  const mayEnd = !end.hidden;
  const close = h('a.button', { href: '#sessions', onclick: () => close.setAttribute('href', listHash()) }, 'Close');
  const pause = h('button', { type: 'button', onclick: () => togglePause() }, 'Pause');
  const filter = h('input', { type: 'search', 'aria-label': 'Filter messages', placeholder: 'Method or tool' });
  const failedOnly = h('input', { type: 'checkbox', id: 'failed-only' });
  const shownLines = () => shown().map((entry) => JSON.stringify(entry));
  const copy = h('button.quiet', { type: 'button', onclick: () => copyText(shownLines().join('\n')) }, 'Copy');
  const save = h('button.quiet', { type: 'button', onclick: () => download(shownLines()) }, 'Save as JSON Lines');
  const element = h(
    'section.card',
    { 'aria-labelledby': 'flow-title', hidden: true },
    h('div.heading', {}, h('div', {}, title, about), h('div.buttons', {}, end, close)),
    h(
      'div.buttons',
      {},
      h('div.search', {}, filter),
      h('label.choice', { for: 'failed-only' }, failedOnly, 'Failed only'),
      pause,
      copy,
      save,
    ),
    hint,
    rows,
  );
  let current = { server: '', session: '' };
  let isHere = true;
  let hasOthers = false;
  let askedUntil = 0;
  live.on('state', ({ instances }) => {
    hasOthers = instances.length > 1;
  });
  let isPaused = false;
  const exchanges = new Exchanges(maxShown);
  const shown = () => {
    const word = filter.value.trim().toLowerCase();
    return exchanges.entries.filter(
      (entry) =>
        `${entry.method ?? ''} ${entry.name ?? ''}`.toLowerCase().includes(word) &&
        (!failedOnly.checked || isFailed(entry)),
    );
  };
  const draw = () => {
    if (isPaused) return;
    const entries = shown();
    hint.hidden = entries.length > 0;
    setText(hint, describeEmpty(isHere, exchanges.entries.length > 0, inspects));
    end.hidden = !isHere || !mayEnd;
    showList(rows, entries, ({ number }) => number, createExchange);
  };
  const togglePause = () => {
    isPaused = !isPaused;
    setText(pause, isPaused ? 'Continue' : 'Pause');
    draw();
  };
  filter.addEventListener('input', draw);
  failedOnly.addEventListener('change', draw);
  live.on('flow', ({ server, session, messages, skipped }) => {
    if (server !== current.server || session !== current.session) return;
    for (const message of messages) exchanges.add(message);
    if (skipped > 0) exchanges.addSkipped(skipped);
    draw();
  });
  live.on('watched', ({ server, session, found, instance }) => {
    if (server !== current.server || session !== current.session) return;
    isHere = found !== undefined;
    setText(about, describeSession(server, found, { instance, isAsking: hasOthers && performance.now() < askedUntil }));
    draw();
  });
  return {
    element,
    /** Shows the messages of this session; of none if undefined. */
    show(server = '', session = '') {
      if (server === current.server && session === current.session) return;
      current = { server, session };
      isHere = true;
      askedUntil = performance.now() + askMs;
      exchanges.clear();
      if (isPaused) togglePause();
      draw();
      element.hidden = session === '';
      title.replaceChildren(...(session === '' ? [] : ['Session ', h('code.id', {}, session)]));
      setText(about, server);
      live.subscribe(current);
    },
  };
}

function describeEmpty(isHere, hasMessages, inspects) {
  if (!isHere) return 'The messages of this session do not pass through this instance.';
  if (hasMessages) return 'No message matches the filter.';
  return `${passing}, ${inspects ? inspected : notInspected}`;
}

/** Saves lines as a file of the browser. */
function download(lines) {
  const href = URL.createObjectURL(new Blob([`${lines.join('\n')}\n`], { type: 'application/jsonl' }));
  h('a', { href, download: 'messages.jsonl' }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/**
 * Describes a session; `found` is undefined if it is not on this instance, and `instance` names the one that has it.
 * `isAsking` is true while the other instances may still answer.
 */
function describeSession(server, found, { instance, isAsking }) {
  if (found === undefined && instance !== undefined)
    return `${server} · on instance ${instance}, whose status page shows its messages`;
  if (found === undefined && isAsking) return `${server} · not on this instance; asking the other instances …`;
  if (found === undefined) return `${server} · has ended: no instance has it`;
  const { revision, client, user, upMs, pid, isHibernating, totalCalls, failures } = found;
  const owner = [client, user].filter(Boolean).map((name) => ` · ${name}`);
  const process = isHibernating ? ' · hibernating, without a process' : pid === undefined ? '' : ` · pid ${pid}`;
  const failed =
    failures === undefined ? '' : `, ${failures.count} failed · last error at ${time(failures.at)}: ${failures.last}`;
  return `${server}${owner.join('')} · protocol ${revision} · started ${wholeSeconds(upMs)} ago${process} · ${counted(totalCalls, 'call')}${failed}`;
}

function createExchange({ skipped, at, from, kind, method, name }) {
  if (skipped !== undefined) {
    const text = `${skipped} more messages from this moment are not shown.`;
    return { element: h('li.muted', {}, text), update: () => undefined };
  }
  const isClient = from === 'client';
  const label = h('span', {}, describeKind(kind, method));
  const count = h('span.muted');
  const size = h('span.figure');
  const details = h('details', { hidden: true }, h('summary', {}, 'Content'));
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
    h('span', {}, label, name === undefined ? undefined : h('b', {}, ` ${name}`), count),
    size,
    details,
  );
  return {
    element,
    update(entry) {
      label.className = isFailed(entry) ? 'bad' : '';
      size.className = isFailed(entry) ? 'figure bad' : 'figure muted';
      setText(count, entry.count > 1 ? ` × ${entry.count}` : '');
      setText(size, describeSize(entry));
      const texts = [entry.text, entry.response?.text].filter((text) => text !== undefined);
      details.hidden = texts.length === 0;
      const shown = details.childElementCount - 1;
      if (shown < texts.length) details.append(...texts.slice(shown).map(createContent));
    },
  };
}

function describeKind(kind, method) {
  if (kind === 'fault') return `failed ${method ?? 'request'}`;
  if (kind !== 'response') return method ?? kind;
  return method === undefined ? 'response: its request was sent before this view was opened' : `response of ${method}`;
}

const createContent = (text) => h('pre', { tabindex: '0', dir: 'auto' }, text);

/** Describes the sizes and the outcome: `120 B → 2 KiB · 12 ms · ok`, or `120 B · 2 s · outcome_unknown`. */
function describeSize({ kind, size, ms, response, sent, ...entry }) {
  const again = sent === undefined ? '' : ` · sent ${sent} times, because the server was lost`;
  if (kind === 'request' && response === undefined) return `${bytes(size)} · no answer yet${again}`;
  const { fault } = response ?? entry;
  const outcome = fault ?? (isFailed({ kind, response, ...entry }) ? 'failed' : 'ok');
  if (kind === 'fault') return outcome;
  if (response === undefined) return ms === undefined ? bytes(size) : `${bytes(size)} · ${duration(ms)} · ${outcome}`;
  const answer = fault === undefined ? ` → ${bytes(response.size)}` : '';
  return `${bytes(size)}${answer} · ${duration(response.ms)} · ${outcome}${again}`;
}
