// Page: the status page in the browser, without a build step and without dependencies.

import { forgetDrain, setAllowedActions, timeOfDrain } from './actions.js';
import { readAddress } from './address.js';
import { request, takeStartToken, useToken } from './api.js';
import { createConnect } from './connect.js';
import { aboutPage, docsLink, setDocs, troubleshootingPage } from './docs-links.js';
import { h, setText } from './dom.js';
import { createErrors } from './errors.js';
import { History } from './history.js';
import { showKeys, startKeys } from './keys.js';
import { Live } from './live-state.js';
import { describeLoss } from './loss-text.js';
import { createOverview } from './overview.js';
import { createPlayground } from './playground.js';
import { createSessions } from './sessions.js';
import { startTheme } from './theme.js';

const views = ['overview', 'sessions', 'errors', 'playground', 'connect'];

/** The field by which a person filters what a view shows. */
const filterOf = (view) =>
  [...section(view).querySelectorAll('input[type="search"]:not(.find-session)')].find((input) =>
    input.checkVisibility(),
  ) ?? null;
const linkTexts = {
  live: 'Live',
  stale: 'No data for 5 s: the gateway does not respond',
  away: 'Not connected. Retrying …',
  hidden: 'Paused',
  refused: 'Not allowed',
};

/** In these states, what the page shows is old. */
const lostStates = new Set(['stale', 'away', 'refused']);

/** Loads the facts that stay the same while the gateway runs, or a refusal with `message`. */
async function readAbout() {
  const response = await request('status/about');
  return response.json();
}

/** Asks for the key or start token of the admin port until the gateway accepts it. */
function signIn({ message, asksFor }) {
  return new Promise((resolve) => {
    const input = h('input', { id: 'admin-token', type: 'password', autocomplete: 'off', required: true });
    const refused = h('p.muted', { role: 'alert' }, message);
    const form = h(
      'form.card.narrow',
      {},
      h('h1', {}, 'Sign in'),
      refused,
      h('p', {}, 'The browser keeps it only for this tab.'),
      h('label', { for: 'admin-token' }, asksFor === 'token' ? 'Code or URL' : 'API key'),
      input,
      h('div.buttons', {}, h('button.primary', { type: 'submit' }, 'Continue')),
    );
    const tryToken = async () => {
      const about = await readAbout();
      if (about.message !== undefined) return setText(refused, about.message);
      removeEventListener('hashchange', onPasted);
      form.remove();
      resolve(about);
    };
    // The URL with the start token was opened in this tab. The browser does not load the page again for a new fragment.
    const onPasted = () => takeStartToken() && tryToken();
    addEventListener('hashchange', onPasted);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      useToken(input.value);
      void tryToken();
    });
    document.getElementById('content').prepend(form);
    input.focus();
  });
}

let isSigningIn = false;

/** Signs in again after a restart of the gateway, which has a new token, or after the key has expired. */
async function signInAgain() {
  if (isSigningIn) return;
  isSigningIn = true;
  const refusal = await readAbout().catch(() => ({}));
  if (refusal.message !== undefined) await signIn(refusal);
  isSigningIn = false;
}

const section = (name) => document.getElementById(name);

async function start() {
  startTheme(document.getElementById('theme'));
  takeStartToken();
  const first = await readAbout();
  const about = first.message === undefined ? first : await signIn(first);
  setAllowedActions(about.allows);
  setDocs(about.docs);
  document
    .querySelector('footer')
    .append(docsLink(aboutPage(), 'About this page'), docsLink(troubleshootingPage(), 'Troubleshooting'));
  const link = document.getElementById('link');
  const lost = document.getElementById('lost');
  const showLoss = (state, heardAt) => {
    const isLost = lostStates.has(state);
    lost.hidden = !isLost;
    playground.setLost(isLost);
    document.documentElement.classList.toggle('is-lost', isLost);
    if (!isLost) return;
    const { title, text, mood } = describeLoss({ state, heardAt, drainedAt: timeOfDrain() });
    lost.className = `lost ${mood}`;
    setText(lost, text);
    overview.setLost(title, mood);
  };
  const live = new Live((state, heardAt) => {
    if (link.dataset.state === state) return;
    link.dataset.state = state;
    setText(link, linkTexts[state]);
    showLoss(state, heardAt);
    if (state === 'live' || state === 'refused') forgetDrain();
    if (state === 'refused') void signInAgain();
  });
  const history = new History();
  const overview = createOverview(section('overview'), live, history);
  const sessions = createSessions(section('sessions'), live, about);
  const errors = createErrors(section('errors'), live, about);
  const playground = createPlayground(section('playground'), live, about);
  const connect = createConnect(section('connect'), about);
  let shown;
  let downCount = 0;
  /** The title of the tab says how many servers are down, for a person who looks at another one. */
  const showTitle = () => {
    const name = `${shown[0].toUpperCase()}${shown.slice(1)} · mcp-gangway`;
    document.title = downCount === 0 ? name : `(${downCount} down) ${name}`;
  };
  /** Shows what the address names. The views note in it what a person chooses there. */
  const show = () => {
    const address = readAddress(location.hash);
    const view = views.includes(address.view) ? address.view : views[0];
    const isOther = view !== shown;
    const isFirst = shown === undefined;
    shown = view;
    for (const other of views) section(other).hidden = other !== view;
    for (const anchor of document.querySelectorAll('.bar nav a')) {
      if (anchor.hash === `#${view}`) anchor.setAttribute('aria-current', 'page');
      else anchor.removeAttribute('aria-current');
    }
    showTitle();
    if (isOther && !isFirst) {
      scrollTo(0, 0);
      document.getElementById(`${view}-title`).focus({ preventScroll: true });
    }
    sessions.setShown(view === 'sessions');
    ({ overview, sessions, errors, playground, connect })[view].show(address);
  };
  const content = document.getElementById('content');
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault(); // the fragment selects the view
    content.focus();
  });
  // A link, the browser's own buttons and a person change the address. What the views note in it is shown already.
  addEventListener('hashchange', () => {
    // The URL of a restarted gateway was opened in this tab.
    if (!takeStartToken()) show();
  });
  document.getElementById('keys').addEventListener('click', showKeys);
  startKeys({ views, filterOf: () => filterOf(shown) });
  show();
  live.on('state', ({ servers }) => {
    downCount = servers.filter(({ condition }) => condition.state === 'down').length;
    showTitle();
  });
  live.start();
  history.start();
}

void start();
