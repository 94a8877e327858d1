/**
 * Creates an element. Text is always text, never markup, because texts of servers and clients are shown.
 * @param {string} tag with its classes: `p.muted`
 * @param {Record<string, unknown>} props attributes and `on…` listeners; undefined and false are left out
 * @param {...(Node | string | undefined)} children
 */
export function h(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  if (classes.length > 0) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** Sets a text only if it has changed, because every change is announced and clears the selection. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A text with a mood, or a link within the page. */
const createPart = ({ href, text, mood }) =>
  h(href === undefined ? 'span' : 'a', { href, class: mood || undefined }, text);

/** A link to the messages of a session. Its name is in a font in which no two letters look alike. */
export const sessionLink = (server, session) =>
  h('a.id', { href: `#sessions/${encodeURIComponent(server)}/${encodeURIComponent(session)}` }, session);

/** What each element shows that `setParts` has filled. */
const shownParts = new WeakMap();

/**
 * Shows texts, links and sessions, if they have changed. A session is a link.
 * @param {readonly (string | { text: string, href?: string, mood?: string } | { server: string, session: string })[]} parts
 */
export function setParts(element, parts) {
  const key = JSON.stringify(parts);
  if (shownParts.get(element) === key) return;
  shownParts.set(element, key);
  element.replaceChildren(
    ...parts.map((part) => {
      if (typeof part === 'string') return part;
      return part.text === undefined ? sessionLink(part.server, part.session) : createPart(part);
    }),
  );
}

/** The views of the items in a parent, by key. */
const viewsOf = new WeakMap();

/**
 * Shows one child for each item in a parent. The element of an item stays as long as its key does, so that focus, open
 * details and selections survive an update.
 * @param {(item: any) => { element: Element, update(item: any): void }} create
 */
export function showList(parent, items, keyOf, create) {
  const old = viewsOf.get(parent) ?? new Map();
  const views = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const view = old.get(key) ?? create(item);
    view.update(item);
    views.set(key, view);
  }
  for (const [key, { element }] of old) if (!views.has(key)) element.remove();
  let at = parent.firstElementChild;
  for (const { element } of views.values()) {
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  viewsOf.set(parent, views);
}

/**
 * Copies a text, or says why it could not be copied.
 * @param {{ done?: string, source?: Element }} options `done` is the message for success; `source` shows the text, and
 *   is selected if the browser does not allow the page to copy
 */
export async function copyText(text, { done = 'Copied.', source } = {}) {
  try {
    await navigator.clipboard.writeText(text);
    showToast(done);
  } catch {
    if (source !== undefined) {
      getSelection().selectAllChildren(source);
      showToast('The text is selected: copy it with the keyboard.');
      return;
    }
    showToast('The browser does not allow this page to copy. Open the page on localhost or with HTTPS.', true);
  }
}

/** Shows a message for some seconds and announces it to screen readers. */
export function showToast(text, isBad = false) {
  const toast = h(isBad ? 'p.toast.bad' : 'p.toast', {}, text);
  document.getElementById('toasts').append(toast);
  setTimeout(() => toast.remove(), 8_000);
}
