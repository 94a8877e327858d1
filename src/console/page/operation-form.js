import { showResult } from './content-view.js';
import { copyText, h, setText } from './dom.js';
import { duration } from './formats.js';
import { curlFor, typescriptFor } from './request-snippets.js';
import { createSchemaForm } from './schema-form.js';

/**
 * Creates the form of an operation and the view of its results.
 * @param {import('./operations.js').Operation} operation
 * @param {{ client: import('./mcp-client.js').McpClient, url: string, needsToken: boolean }} target
 */
export function createOperationForm(operation, { client, url, needsToken }) {
  const { name, title, description, hints, verb, method, schema } = operation;
  const input = createInput(schema);
  const send = h('button.primary', { type: 'submit' }, verb);
  const cancel = h('button', { type: 'button', disabled: true }, 'Cancel the request');
  const cut = h('button', { type: 'button', disabled: true, onclick: () => client.cut() }, 'Cut the connection');
  const progress = h('progress', { hidden: true, 'aria-label': 'Progress' });
  const result = h('div', { role: 'status' });
  const copy = (label, textFor) => h('button.quiet', { type: 'button', onclick: () => copyOf(textFor) }, label);
  const copyOf = (textFor) => {
    try {
      void copyText(textFor({ url, needsToken, method, params: operation.read(input.read()) }));
    } catch (error) {
      result.replaceChildren(h('p.bad', {}, error.message));
    }
  };
  const form = h(
    'form',
    {},
    input.element,
    h(
      'div.buttons',
      {},
      send,
      cut,
      cancel,
      input.toggle,
      copy('Copy as curl', curlFor),
      copy('Copy as SDK code', typescriptFor),
    ),
    progress,
  );
  const showProgress = ({ progress: done, total, message }) => {
    progress.hidden = false;
    if (total > 0) {
      progress.max = total;
      progress.value = done;
    } else progress.removeAttribute('value');
    progress.title = message ?? '';
  };
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const startedAt = performance.now();
    const abort = new AbortController();
    cancel.onclick = () => abort.abort();
    try {
      const params = operation.read(input.read());
      send.disabled = true;
      cancel.disabled = false;
      result.replaceChildren(h('p.muted', {}, 'Running …'));
      const answer = await client.request(method, params, { signal: abort.signal, onProgress: showProgress });
      const took = duration(Math.round(performance.now() - startedAt));
      result.replaceChildren(
        h(answer.isError ? 'p.bad' : 'p.good', {}, `${answer.isError ? 'The tool failed' : 'Done'} after ${took}`),
        showResult(answer),
      );
    } catch (error) {
      result.replaceChildren(h('p.bad', {}, error.message));
    } finally {
      send.disabled = false;
      cancel.disabled = true;
      progress.hidden = true;
    }
  });
  return {
    elements: [
      h('h2', {}, title ?? name),
      h(
        'p.chips',
        {},
        title === undefined ? undefined : h('code', {}, name),
        ...hints.map((hint) => h('span.chip', {}, hint)),
      ),
      h('p.muted', { dir: 'auto' }, description),
      form,
      result,
    ],
    /** Enables what needs an open stream. */
    update() {
      cut.disabled = !client.hasStream;
    },
  };
}

/** Creates the input of an operation: a form of its schema, or the same values as JSON. */
function createInput(schema) {
  const fields = createSchemaForm(schema);
  const json = h('textarea', { rows: '8', spellcheck: 'false', 'aria-label': 'Arguments as JSON', hidden: true });
  const toggle = h('button.quiet', { type: 'button' }, 'Edit as JSON');
  const readJson = () => {
    try {
      return JSON.parse(json.value);
    } catch (error) {
      throw new Error(`The arguments are not valid JSON: ${error.message}`);
    }
  };
  toggle.addEventListener('click', () => {
    const isJson = json.hidden;
    if (isJson) json.value = JSON.stringify(fields.peek(), undefined, 2);
    json.hidden = !isJson;
    fields.element.hidden = isJson;
    // The browser must not require hidden fields.
    fields.element.disabled = isJson;
    setText(toggle, isJson ? 'Use the form' : 'Edit as JSON');
  });
  return {
    element: h('div', {}, fields.element, json),
    toggle,
    read: () => (json.hidden ? fields.read() : readJson()),
  };
}
