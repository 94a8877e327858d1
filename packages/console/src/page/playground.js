import { noteAddress, pushAddress } from './address.js';
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
  const status = h('p', { role: 'status' });
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
    status,
  );
  let client;
  /** What the client has connected with. Undefined while it is not connected. */
  let connected;
  /** The number of the newest attempt to connect: an earlier one that ends later changes nothing. */
  let attempt = 0;
  /** False after a person has disconnected: then the playground waits for the button. */
  let connectsItself = true;
  /** True while the view is in front, or was, and no server is connected yet. */
  let isAwaited = false;
  /** The operation that the address names. */
  let wanted;
  const choices = () => [server.value, revision.value, token.value].join('\n');
  const isConnected = () => connected === choices();
  const showChoices = () => {
    const { takesTokens = false } = servers.find(({ name }) => name === server.value) ?? {};
    tokenField.hidden = !needsToken && !takesTokens;
    setText(connect, isConnected() ? 'Disconnect' : 'Connect');
    connect.classList.toggle('primary', !isConnected());
  };
  for (const input of [server, revision, token]) input.addEventListener('input', showChoices);
  const noteConnected = (what) => {
    connected = what;
    showChoices();
  };
  /** To what the client is connected, in words; and whether the page does not hear the gateway. */
  let connectedText = '';
  let isLost = false;
  const showConnection = () => {
    if (connected !== undefined) setText(status, isLost ? 'Lost the connection to the gateway.' : connectedText);
  };
  let operationForm;
  let states = [];
  /** What the client was told when it could not connect. The page knows more when it has the state of the server. */
  let refusal;
  /** True after the gateway has answered a request with an error, which may be about the server. */
  let hasFailed = false;
  const showCause = () => {
    const state = states.find(({ name }) => name === server.value);
    const isAsked = refusal !== undefined || hasFailed || state?.condition.state === 'down';
    const isKnown = cause.update(isAsked ? state : undefined);
    if (refusal !== undefined) setText(status, isKnown ? 'Not connected.' : `Not connected: ${refusal}`);
  };
  live.on('state', (snapshot) => {
    states = snapshot.servers;
    showCause();
    if (isAwaited) connectFirst();
  });
  const stateOf = (name) => states.find((state) => state.name === name)?.condition.state;
  /** Connects to the server of the address, or to the first one that is up. Nothing is asked of one that is down. */
  const connectFirst = () => {
    if (states.length === 0) return;
    isAwaited = false;
    const usual =
      servers.find(({ name }) => stateOf(name) === 'up') ?? servers.find(({ name }) => stateOf(name) !== 'down');
    if (!isChosen && usual !== undefined) server.value = usual.name;
    showChoices();
    showCause();
    if (stateOf(server.value) === 'down') setText(status, `${server.value} is down. Connect tries it again.`);
    else if (tokenField.hidden || needsToken) void open();
    else setText(status, 'Enter the token of the server if it needs one, and press Connect.');
  };
  let isChosen = false;
  server.addEventListener('change', () => {
    isChosen = true;
    wanted = undefined;
    noteAddress('playground', [server.value]);
    if (connectsItself) connectFirst();
    else showCause();
  });
  let chosen;
  const choose = (operation, isByPerson) => {
    chosen = operation.name;
    (isByPerson ? pushAddress : noteAddress)('playground', [server.value, chosen]);
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
    h(
      'section.messages',
      { 'aria-labelledby': 'messages-title' },
      h('h2', { id: 'messages-title' }, 'Messages'),
      transcript.element,
    ),
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
    cause.element,
    workshop,
  );

  /** Ends the connection, and forgets what it has shown. */
  const close = async () => {
    attempt += 1;
    const last = client;
    client = undefined;
    noteConnected(undefined);
    transcript.clear();
    serverRequests.replaceChildren();
    subscriptions.clear();
    workshop.hidden = true;
    refusal = undefined;
    hasFailed = false;
    await last?.close();
  };
  /** Connects with what is chosen. */
  const open = async () => {
    const closed = close();
    const mine = attempt;
    const asked = choices();
    const isNewest = () => mine === attempt;
    connect.disabled = true;
    setText(status, 'Connecting …');
    await closed;
    if (!isNewest()) return;
    const Client = revision.value === 'modern' ? ModernClient : McpClient;
    const own = new Client({
      path: `status/play/${encodeURIComponent(server.value)}`,
      revision: revisions[revision.value],
      token: (tokenField.hidden ? '' : token.value.trim()) || (needsToken ? ownToken() : ''),
      capabilities: clientCapabilities,
      onEntry(entry) {
        if (!isNewest()) return;
        operationForm?.update(entry);
        if (entry.kind === 'over') {
          setText(status, entry.text);
          noteConnected(undefined);
          connectsItself = false; // a person should see that it is over
        }
        transcript.add(entry);
        if (!isGatewayError(entry)) return;
        hasFailed = true;
        showCause();
      },
      onRequest: (request) => answerByHand(serverRequests, request),
    });
    client = own;
    workshop.hidden = false;
    bench.replaceChildren(h('p.muted', {}, 'Connecting …'));
    chooser.clear();
    operationForm = undefined;
    try {
      const { serverInfo, protocolVersion, capabilities } = await own.open();
      const kinds = operationKinds.filter(({ capability }) => capabilities[capability] !== undefined);
      const offered = await Promise.all(kinds.map(({ list }) => list(own)));
      if (!isNewest()) return;
      connectedText = `Connected to ${serverInfo.title ?? serverInfo.name} ${serverInfo.version}, revision ${protocolVersion}.`;
      noteConnected(asked);
      showConnection();
      bench.replaceChildren(h('p.muted', {}, 'This server has no tools, prompts or resources.'));
      chooser.show(
        kinds.map(({ title }, index) => ({ title, operations: offered[index] })),
        wanted,
      );
    } catch (error) {
      if (!isNewest()) return;
      refusal = error.message;
      bench.replaceChildren(h('p.muted', {}, 'Not connected.'));
      showCause();
    } finally {
      if (isNewest()) connect.disabled = false;
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    isAwaited = false;
    connectsItself = !isConnected();
    isChosen = true;
    if (connectsItself) return void open();
    void close();
    setText(status, 'Disconnected.');
  });
  return {
    /** Is told whether the page hears the gateway. */
    setLost(isTrue) {
      isLost = isTrue;
      showConnection();
    },
    /** Shows the server and the operation that an address names, and connects to the server if it is another one. */
    show({ parts: [name = '', operation] }) {
      const isKnown = servers.some((one) => one.name === name);
      const isOther = isKnown && name !== server.value;
      if (isKnown) {
        server.value = name;
        isChosen = true;
      }
      wanted = operation;
      showChoices();
      showCause();
      if (connected !== undefined && !isOther) {
        if (operation !== undefined && operation !== chosen) chooser.choose(operation);
        else if (chosen !== undefined) noteAddress('playground', [server.value, chosen]);
        return;
      }
      if (!connectsItself || (connect.disabled && !isOther)) return;
      isAwaited = true;
      connectFirst();
    },
  };
}

/** True for an error that the gateway itself answers with: it has a reason. */
const isGatewayError = ({ message, from }) => from === 'server' && message?.error?.data?.reason !== undefined;

/** Creates the searchable list of the operations of a server. */
function createChooser(onChoose) {
  const search = h('input', { type: 'search', 'aria-label': 'Find', placeholder: 'Find', autocomplete: 'off' });
  const groups = h('div.choices');
  let kinds = [];
  let chosen;
  const all = () => kinds.flatMap(({ operations }) => operations);
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
      createGroup(
        (operation) => choose(operation, true),
        () => chosen,
      ),
    );
  };
  const choose = (operation, isByPerson = false) => {
    chosen = operation;
    draw();
    onChoose(operation, isByPerson);
  };
  search.addEventListener('input', draw);
  return {
    element: h('div', {}, search, groups),
    clear() {
      kinds = [];
      groups.replaceChildren();
      draw();
    },
    /** Shows the operations of a server, and chooses the one with this name, or the first one. */
    show(found, name) {
      kinds = found;
      search.value = '';
      groups.replaceChildren();
      const operation = all().find((each) => each.name === name) ?? all()[0];
      if (operation === undefined) draw();
      else choose(operation);
    },
    /** Chooses the operation with this name, if there is one. */
    choose(name) {
      const operation = all().find((each) => each.name === name);
      if (operation !== undefined) choose(operation);
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
