import { ask, takeWord, useToken } from './api.js';
import { createConnect } from './connect.js';
import { h, setText } from './dom.js';
import { Live } from './live-state.js';
import { createOverview } from './overview.js';
import { createPlayground } from './playground.js';
import { createSessions } from './sessions.js';
import { startTheme } from './theme.js';

const views = ['overview', 'sessions', 'playground', 'connect'];
const linkWords = { live: 'Live', away: 'Not connected. Retrying …', hidden: 'Paused', refused: 'Not allowed' };

/** What stays the same while the gateway runs; `said` in its place is why it is not told. */
async function readAbout() {
  const response = await ask('status/about');
  return response.json();
}

/** Asks for the key or word of the admin port until it is the right one. */
function askForToken({ said, asksFor }) {
  return new Promise((resolve) => {
    const input = h('input', { id: 'admin-token', type: 'password', autocomplete: 'off', required: true });
    const refused = h('p.muted', { role: 'alert' }, said);
    const form = h(
      'form.card.narrow',
      {},
      h('h1', {}, 'Sign in'),
      refused,
      h('p', {}, 'The browser keeps it only for this tab.'),
      h('label', { for: 'admin-token' }, asksFor === 'word' ? 'Code or URL' : 'API key'),
      input,
      h('div.buttons', {}, h('button.primary', { type: 'submit' }, 'Continue')),
    );
    const look = async () => {
      const about = await readAbout();
      if (about.said !== undefined) return setText(refused, about.said);
      removeEventListener('hashchange', onPasted);
      form.remove();
      resolve(about);
    };
    // The URL with the word was opened in this tab: the browser does not load the page again for that.
    const onPasted = () => takeWord() && look();
    addEventListener('hashchange', onPasted);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      useToken(input.value);
      void look();
    });
    document.getElementById('content').prepend(form);
    input.focus();
  });
}

let isAsking = false;

/** The gateway was started again, with another word, or the key has ended. */
async function askAgain() {
  if (isAsking) return;
  isAsking = true;
  const refusal = await readAbout().catch(() => ({}));
  if (refusal.said !== undefined) await askForToken(refusal);
  isAsking = false;
}

const section = (name) => document.getElementById(name);

async function start() {
  startTheme(document.getElementById('theme'));
  takeWord();
  const first = await readAbout();
  const about = first.said === undefined ? first : await askForToken(first);
  const link = document.getElementById('link');
  const live = new Live((state) => {
    link.dataset.state = state;
    setText(link, linkWords[state]);
    if (state === 'refused') void askAgain();
  });
  createOverview(section('overview'), live);
  const sessions = createSessions(section('sessions'), live, about);
  createPlayground(section('playground'), about);
  createConnect(section('connect'), about);
  const show = () => {
    const [name, ...rest] = location.hash.slice(1).split('/').map(decodeURIComponent);
    const view = views.includes(name) ? name : views[0];
    for (const other of views) section(other).hidden = other !== view;
    for (const anchor of document.querySelectorAll('nav a')) {
      if (anchor.hash === `#${view}`) anchor.setAttribute('aria-current', 'page');
      else anchor.removeAttribute('aria-current');
    }
    sessions.show(...(view === 'sessions' ? rest : []));
    document.title = `${view[0].toUpperCase()}${view.slice(1)} · mcp-gangway`;
    return view;
  };
  show();
  const content = document.getElementById('content');
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault(); // what stands behind # is the view
    content.focus();
  });
  addEventListener('hashchange', () => {
    if (takeWord()) return; // the URL of a new start was opened in the tab of an open page
    const view = show();
    const isDetail = location.hash.split('/').length > 1;
    document.getElementById(isDetail ? 'flow-title' : `${view}-title`).focus();
  });
  live.start();
}

void start();
