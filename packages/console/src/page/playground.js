import { ownToken } from './api.js';
import { createCause } from './causes.js';
import { h, setText, showList } from './dom.js';
import { McpClient } from './mcp-client.js';
import { ModernClient } from './modern-client.js';
import { createOperationForm } from './operation-form.js';
import { operationKinds } from './operations.js';
import { answerByHand, clientCapabilities } from './server-request-forms.js';
import { createSubscriptions } from './subscriptions.js';
import { createTranscript } from './transcript.js';

/** Creates the view in which a person tries a server. */
export function createPlayground(section, live, { servers, needsToken, revisions }) {
  const server = h('select', { id: 'play-server' }, ...servers.map(({ name }) => h('option', { value: name }, name)));
  const token = h('input', {
    id: 'play-token',
    type: 'password',
    autocomplete: 'off',
    placeholder: needsToken ? 'Empty: the key of this page' : 'Only for the server',
  });
  const tokenField = h('div.field', {}, h('label', { for: 'play-token' }, 'Token or API key'), token);
  const revision = h(
    'select',
    { id: 'play-revision' },
    h('option', { value: 'legacy' }, `${revisions.legacy.name} (session)`),
    h('option', { value: 'modern' }, `${revisions.modern.name} (no session)`),
  );
  const connect = h('button.primary', { type: 'submit' }, 'Connect');
  const status = h('p', { role: 'status' }, 'Press Connect: the playground becomes a client of the server.');
  const cause = createCause();
  const bench = h('div.card');
  const serverRequests = h('div', { 'aria-live': 'polite' });
  const subscriptions = createSubscriptions();
  const transcript = createTranscript();
  const form = h(
    'form.card.inline',
    {},
    h('div.field', {}, h('label', { for: 'play-server' }, 'Server'), server),
    h('div.field', {}, h('label', { for: 'play-revision' }, 'Revision'), revision),
    tokenField,
    h('div.buttons', {}, connect),
  );
  let client;
  /** What the client has connected with. Undefined while it is not connected. */
  let connected;
  const choices = () => [server.value, revision.value, token.value].join('\n');
  const isConnected = () => connected === choices();
  const showChoices = () => {
    const { takesTokens = false } = servers.find(({ name }) => name === server.value) ?? {};
    tokenField.hidden = !needsToken && !takesTokens;
    setText(connect, isConnected() ? 'Disconnect' : 'Connect');
  };
  for (const input of [server, revision, token]) input.addEventListener('input', showChoices);
  const noteConnected = (isNow) => {
    connected = isNow ? choices() : undefined;
    showChoices();
  };
  let operationForm;
  let states = [];
  /** What the client was told when it could not connect. The page knows more when it has the state of the server. */
  let refusal;
  const showCause = () => {
    const state = states.find(({ name }) => name === server.value);
    const isKnown = cause.update(refusal !== undefined || state?.condition.state === 'down' ? state : undefined);
    if (refusal !== undefined) setText(status, isKnown ? 'Not connected.' : `Not connected: ${refusal}`);
  };
  live.on('state', (snapshot) => {
    states = snapshot.servers;
    showCause();
  });
  server.addEventListener('change', showCause);
  const choose = (operation) => {
    const { url } = servers.find(({ name }) => name === server.value);
    operationForm = createOperationForm(operation, {
      client,
      url,
      needsToken,
      revision: revisions.modern,
      subscriptions,
    });
    bench.replaceChildren(...operationForm.elements);
  };
  const chooser = createChooser(choose);
  const workshop = h(
    'div.workshop',
    { hidden: true },
    chooser.element,
    h('div', {}, bench, serverRequests, subscriptions.element),
  );
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
    cause.element,
    workshop,
    h('h2', {}, 'Messages'),
    transcript.element,
  );

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    connect.disabled = true;
    const isEnd = isConnected();
    noteConnected(false);
    await client?.close();
    transcript.clear();
    serverRequests.replaceChildren();
    subscriptions.clear();
    workshop.hidden = true;
    refusal = undefined;
    client = undefined;
    if (isEnd) {
      setText(status, 'Disconnected.');
      connect.disabled = false;
      return;
    }
    setText(status, 'Connecting …');
    const Client = revision.value === 'modern' ? ModernClient : McpClient;
    client = new Client({
      path: `status/play/${encodeURIComponent(server.value)}`,
      revision: revisions[revision.value],
      token: (tokenField.hidden ? '' : token.value.trim()) || (needsToken ? ownToken() : ''),
      capabilities: clientCapabilities,
      onEntry(entry) {
        operationForm?.update(entry);
        if (entry.kind === 'over') {
          setText(status, entry.text);
          noteConnected(false);
        }
        transcript.add(entry);
      },
      onRequest: (request) => answerByHand(serverRequests, request),
    });
    try {
      const { serverInfo, protocolVersion, capabilities } = await client.open();
      const kinds = operationKinds.filter(({ capability }) => capabilities[capability] !== undefined);
      const offered = await Promise.all(kinds.map(({ list }) => list(client)));
      setText(
        status,
        `Connected to ${serverInfo.title ?? serverInfo.name} ${serverInfo.version}, revision ${protocolVersion}.`,
      );
      noteConnected(true);
      workshop.hidden = false;
      operationForm = undefined;
      bench.replaceChildren(h('p.muted', {}, 'This server has no tools, prompts or resources.'));
      chooser.show(kinds.map(({ title }, index) => ({ title, operations: offered[index] })));
    } catch (error) {
      refusal = error.message;
      showCause();
    } finally {
      connect.disabled = false;
    }
  });
  return {
    /** Chooses a server by its name. */
    choose(name) {
      if (servers.some((one) => one.name === name)) server.value = name;
      showChoices();
      showCause();
    },
  };
}

/** Creates the searchable list of the operations of a server. */
function createChooser(onChoose) {
  const search = h('input', { type: 'search', 'aria-label': 'Find', placeholder: 'Find', autocomplete: 'off' });
  const groups = h('div.choices');
  let kinds = [];
  let chosen;
  const draw = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    const isMatch = ({ name, title = '', description }) =>
      words.every((word) => `${name} ${title} ${description}`.toLowerCase().includes(word));
    const shown = kinds
      .map(({ title, operations }) => ({ title, operations: operations.filter(isMatch), all: operations.length }))
      .filter(({ operations }) => operations.length > 0);
    showList(
      groups,
      shown,
      ({ title }) => title,
      createGroup(choose, () => chosen),
    );
  };
  const choose = (operation) => {
    chosen = operation;
    draw();
    onChoose(operation);
  };
  search.addEventListener('input', draw);
  return {
    element: h('div', {}, search, groups),
    /** Shows the operations of a server, and chooses the first one. */
    show(found) {
      kinds = found;
      search.value = '';
      groups.replaceChildren();
      const [first] = kinds.flatMap(({ operations }) => operations);
      if (first === undefined) draw();
      else choose(first);
    },
  };
}

const createGroup =
  (choose, chosen) =>
  ({ title }) => {
    const heading = h('h2', {});
    const list = h('ul', { 'aria-label': title });
    return {
      element: h('div', {}, heading, list),
      update({ operations, all }) {
        setText(heading, operations.length === all ? `${title} (${all})` : `${title} (${operations.length} of ${all})`);
        showList(list, operations, ({ name }) => name, createChoice(choose, chosen));
      },
    };
  };

const createChoice = (choose, chosen) => (first) => {
  let operation = first;
  const button = h(
    'button',
    { type: 'button', onclick: () => choose(operation) },
    first.title ?? first.name,
    first.title === undefined ? undefined : h('span.muted', {}, ` ${first.name}`),
  );
  return {
    element: h('li', {}, button),
    update(newest) {
      operation = newest;
      button.setAttribute('aria-pressed', String(chosen() === newest));
    },
  };
};
