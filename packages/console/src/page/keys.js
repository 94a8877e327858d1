import { h } from './dom.js';

/** The keys of the page, as the dialog lists them. */
const keys = [
  ['/', 'Go to the filter of this view'],
  ['?', 'Show these keys'],
  ['1 … 5', 'Show a view'],
  ['Ctrl+Enter', 'Send the request in the playground'],
  ['Esc', 'Clear a filter, or close this'],
];

/** In these, a key is a part of a text. */
const isTyping = (element) =>
  element.isContentEditable || ['TEXTAREA', 'SELECT'].includes(element.tagName) || isTextInput(element);
const isTextInput = ({ tagName, type }) => tagName === 'INPUT' && !['checkbox', 'radio'].includes(type);

/**
 * Listens to the keys of the page.
 * @param {{ views: readonly string[], filterOf(): HTMLElement | null }} options `filterOf` finds the filter of the view
 *   that is shown
 */
export function startKeys({ views, filterOf }) {
  document.addEventListener('keydown', (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey || isTyping(target) || document.querySelector('dialog[open]') !== null) return;
    if (key === '/') {
      const filter = filterOf();
      if (filter === null) return;
      event.preventDefault();
      filter.focus();
      filter.select();
    } else if (key === '?') showKeys();
    else if (views[Number(key) - 1] !== undefined) location.hash = `#${views[Number(key) - 1]}`;
  });
}

/** Shows the keys in a dialog. */
export function showKeys() {
  const close = h('button', { type: 'button', onclick: () => dialog.close() }, 'Close');
  const dialog = h(
    'dialog',
    { 'aria-labelledby': 'keys-title', onclose: () => dialog.remove() },
    h('h2', { id: 'keys-title' }, 'Keys'),
    h('dl.keys', {}, ...keys.flatMap(([key, text]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, text)])),
    h('div.buttons', {}, close),
  );
  document.body.append(dialog);
  dialog.showModal();
}
