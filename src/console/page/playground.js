import { h, setText, showList } from './dom.js';
import { McpClient } from './mcp-client.js';
import { createSchemaForm } from './schema-form.js';
import { createTranscript } from './transcript.js';

/** Creates the view in which a person tries a server. */
export function createPlayground(section, { servers }) {
  const server = h('select', { id: 'play-server' }, ...servers.map(({ name }) => h('option', { value: name }, name)));
  const token = h('input', {
    id: 'play-token',
    type: 'password',
    autocomplete: 'off',
    placeholder: 'Only if clients need one',
  });
  const connect = h('button.primary', { type: 'submit' }, 'Connect');
  const status = h('p', { role: 'status' }, 'Press Connect: the playground opens its own session.');
  const tools = h('ul.choices', { 'aria-label': 'Tools' });
  const cut = h('button', { type: 'button', disabled: true }, 'Cut the connection');
  const workshop = h('div.workshop', { hidden: true });
  const bench = h('div.card');
  const inputForms = h('div', { 'aria-live': 'polite' });
  const transcript = createTranscript();
  const form = h(
    'form.card.inline',
    {},
    h('div.field', {}, h('label', { for: 'play-server' }, 'Server'), server),
    h('div.field', {}, h('label', { for: 'play-token' }, 'Token or API key'), token),
    h('div.buttons', {}, connect),
  );
  workshop.append(h('div', {}, h('h2', {}, 'Tools'), tools), h('div', {}, bench, inputForms));
  section.append(
    h(
      'div.heading',
      {},
      h(
        'div',
        {},
        h('h1', { id: 'playground-title', tabindex: '-1' }, 'Playground'),
        h(
          'p.muted.lead',
          {},
          'Use this page as a client of the gateway: call a tool, cut the connection, and see that nothing is lost.',
        ),
      ),
    ),
    form,
    status,
    workshop,
    h('div.heading', {}, h('h2', {}, 'Messages'), h('div.buttons', {}, cut)),
    transcript.element,
  );

  let client;
  cut.addEventListener('click', () => client?.cut());

  const choose = (tool) => {
    for (const button of tools.querySelectorAll('button'))
      button.setAttribute('aria-pressed', String(button.dataset.tool === tool.name));
    bench.replaceChildren(...createBench(tool, () => client));
  };

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    connect.disabled = true;
    await client?.close();
    transcript.clear();
    inputForms.replaceChildren();
    workshop.hidden = true;
    setText(status, 'Connecting …');
    client = new McpClient({
      path: `status/play/${encodeURIComponent(server.value)}`,
      token: token.value.trim(),
      onEntry(entry) {
        cut.disabled = client?.hasStream !== true;
        if (entry.kind === 'over') setText(status, entry.text);
        transcript.add(entry);
      },
      onRequest: (request) => requestInput(inputForms, request),
    });
    try {
      const { serverInfo, protocolVersion } = await client.open();
      const offered = await client.list('tools/list', 'tools');
      setText(
        status,
        `Connected to ${serverInfo.title ?? serverInfo.name} ${serverInfo.version}, revision ${protocolVersion}.`,
      );
      showList(tools, offered, ({ name }) => `${server.value} ${name}`, createTool(choose));
      workshop.hidden = false;
      if (offered.length > 0) choose(offered[0]);
      else bench.replaceChildren(h('p.muted', {}, 'This server has no tools.'));
    } catch (error) {
      setText(status, `Not connected: ${error.message}`);
    } finally {
      connect.disabled = false;
    }
  });
  return {
    /** Chooses a server by its name. */
    choose(name) {
      if (servers.some((one) => one.name === name)) server.value = name;
    },
  };
}

const createTool = (choose) => (first) => {
  let tool = first;
  const button = h(
    'button',
    { type: 'button', 'data-tool': first.name, 'aria-pressed': 'false', onclick: () => choose(tool) },
    first.title ?? first.name,
  );
  return {
    element: h('li', {}, button),
    update(newest) {
      tool = newest;
    },
  };
};

/** Creates the form of a tool and the result of its calls. */
function createBench({ name, title, description, inputSchema }, clientOf) {
  const fields = createSchemaForm(inputSchema);
  const call = h('button.primary', { type: 'submit' }, 'Call');
  const result = h('div', { role: 'status' });
  const form = h('form', {}, fields.element, h('div.buttons', {}, call));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const startedAt = performance.now();
    try {
      const values = fields.read();
      call.disabled = true;
      result.replaceChildren(h('p.muted', {}, 'Running …'));
      // The progress token asks for progress, which shows that the answer is a stream.
      const params = { name, arguments: values, _meta: { progressToken: `play-${Math.round(startedAt)}` } };
      const answer = await clientOf().request('tools/call', params);
      const ms = Math.round(performance.now() - startedAt);
      result.replaceChildren(
        h(answer.isError ? 'p.bad' : 'p.good', {}, `${answer.isError ? 'The tool failed' : 'Done'} after ${ms} ms`),
        h('pre', { tabindex: '0', 'aria-label': 'Result' }, formatResult(answer)),
      );
    } catch (error) {
      result.replaceChildren(h('p.bad', {}, error.message));
    } finally {
      call.disabled = false;
    }
  });
  return [h('h2', {}, title ?? name), h('p.muted', {}, description ?? ''), form, result];
}

/** Returns the texts of a result if it has nothing else, or JSON. */
function formatResult({ content = [], structuredContent }) {
  const isText = structuredContent === undefined && content.length > 0 && content.every(({ type }) => type === 'text');
  return isText
    ? content.map(({ text }) => text).join('\n')
    : JSON.stringify(structuredContent ?? content, undefined, 2);
}

/**
 * Asks the person for the input that a server requests (2025-11-25, client/elicitation), and resolves with the result.
 */
function requestInput(container, { method, params }) {
  if (method === 'ping') return Promise.resolve({});
  if (method !== 'elicitation/create' || (params.mode ?? 'form') !== 'form')
    return Promise.reject(new Error('Method not found'));
  return new Promise((resolve) => {
    const fields = createSchemaForm(params.requestedSchema);
    const wrong = h('p.bad', { role: 'alert' });
    const settle = (result) => {
      form.remove();
      resolve(result);
    };
    const form = h(
      'form.card.asked',
      { 'aria-labelledby': 'asked-title' },
      h('h2', { id: 'asked-title', tabindex: '-1' }, 'The server requests input'),
      h('p', {}, params.message),
      fields.element,
      wrong,
      h(
        'div.buttons',
        {},
        h('button', { type: 'button', onclick: () => settle({ action: 'cancel' }) }, 'Cancel'),
        h('button', { type: 'button', onclick: () => settle({ action: 'decline' }) }, 'Decline'),
        h('button.primary', { type: 'submit' }, 'Answer'),
      ),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      try {
        settle({ action: 'accept', content: fields.read() });
      } catch (error) {
        setText(wrong, error.message);
      }
    });
    container.append(form);
    form.querySelector('h2').focus();
  });
}
