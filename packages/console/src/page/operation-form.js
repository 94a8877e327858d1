import { confirm } from './actions.js';
import { showResult } from './content-view.js';
import { copyText, h, setText } from './dom.js';
import { duration } from './formats.js';
import { curlFor, typescriptFor } from './request-snippets.js';
import { createSchemaForm } from './schema-form.js';
import { createTimeline } from './timeline.js';

/**
 * Creates the form of an operation and the view of its results.
 * @param {import('./operations.js').Operation} operation
 * @param {{ client: import('./mcp-client.js').McpClient | import('./modern-client.js').ModernClient, url: string, needsToken: boolean,
 *   revision: Parameters<typeof import('./request-snippets.js').mirroredHeaders>[0],
 *   subscriptions: ReturnType<typeof import('./subscriptions.js').createSubscriptions> }} target
 */
export function createOperationForm(operation, { client, url, needsToken, revision, subscriptions }) {
  const { name, title, description, hints, verb, method, schema } = operation;
  const input = createInput(schema);
  const send = h('button.primary', { type: 'submit', title: 'Ctrl+Enter' }, verb);
  const cancel = h('button', { type: 'button', disabled: true }, 'Cancel the request');
  const cut = h(
    'button',
    { type: 'button', disabled: true, hidden: !client.resumes, onclick: () => client.cut() },
    'Cut the connection',
  );
  const timeline = createTimeline();
  const progress = h('progress', { hidden: true, 'aria-label': 'Progress' });
  const result = h('div', { role: 'status' });
  const copy = (label, textFor) => h('button.quiet', { type: 'button', onclick: () => copyOf(textFor) }, label);
  const copyOf = (textFor) => {
    try {
      void copyText(textFor({ url, needsToken, revision, method, params: operation.read(input.read()) }));
    } catch (error) {
      result.replaceChildren(h('p.bad', {}, error.message));
    }
  };
  const readUri = (uri) => client.request('resources/read', { uri });
  const showAnswer = (answer, startedAt) => {
    const took = duration(Math.round(performance.now() - startedAt));
    result.replaceChildren(
      h(answer.isError ? 'p.bad' : 'p.good', {}, `${answer.isError ? 'The tool failed' : 'Done'} after ${took}`),
      showResult(answer, readUri),
    );
  };
  const subscribe = async () => {
    try {
      await subscriptions.add(client, operation.read(input.read()).uri);
    } catch (error) {
      result.replaceChildren(h('p.bad', {}, error.message));
    }
  };
  const canSubscribe = method === 'resources/read' && client.canSubscribe;
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
      canSubscribe ? h('button', { type: 'button', onclick: subscribe }, 'Subscribe') : undefined,
    ),
    h('div.buttons.more', {}, input.toggle, copy('Copy as curl', curlFor), copy('Copy as SDK code', typescriptFor)),
    progress,
    timeline.element,
  );
  const showProgress = ({ progress: done, total, message }) => {
    progress.hidden = false;
    if (total > 0) {
      progress.max = total;
      progress.value = done;
    } else progress.removeAttribute('value');
    progress.title = message ?? '';
  };
  // In a field with several lines, Enter is a part of the text.
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || send.disabled) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const abort = new AbortController();
    cancel.onclick = () => abort.abort();
    try {
      const params = operation.read(input.read());
      if (operation.isDestructive && !(await confirm(destructiveQuestion(title ?? name)))) return;
      const startedAt = performance.now();
      send.disabled = true;
      cancel.disabled = false;
      result.replaceChildren(h('p.muted', {}, 'Running …'));
      timeline.begin();
      showAnswer(await client.request(method, params, { signal: abort.signal, onProgress: showProgress }), startedAt);
    } catch (error) {
      result.replaceChildren(h('p.bad', {}, error.message));
    } finally {
      send.disabled = false;
      cancel.disabled = true;
      progress.hidden = true;
      timeline.end();
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
    /** Takes an entry of the client, and enables what needs an open stream. */
    update(entry) {
      cut.disabled = !client.hasStream;
      timeline.add(entry);
    },
  };
}

const destructiveQuestion = (tool) => ({
  title: `Call ${tool}?`,
  text: 'The server marks this tool as destructive: a call may delete or overwrite something.',
  yes: 'Call',
});

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
