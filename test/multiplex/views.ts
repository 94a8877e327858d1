import { FilterRules } from '../../src/core/backend/filter-rules.ts';
import { openView } from '../../src/features/views/view-backend.ts';
import { createFakeServer, readMessage } from '../support/fake-backend.ts';
import { createInbox } from '../support/wait-for.ts';
import { graceMs, type Received, type Subject, type Wire } from './subject.ts';

/** The ids of a view's clients differ: their session gives them numbers. */
const idsOfClient = 1_000;
const idOf = (client: number, id: number): number => (client + 1) * idsOfClient + id;
const clientOf = (id: number): number => Math.floor(id / idsOfClient) - 1;

/** Modern clients at one server of a view, in one session. */
export async function openViewMember(_: readonly string[], canAsk: boolean): Promise<Subject> {
  const answers = ({ id, method }: Wire, backend: Wire): void => {
    const result = {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    };
    if (method === 'initialize') queueMicrotask(() => backend.says({ jsonrpc: '2.0', id, result }));
  };
  const server = createFakeServer(answers);
  const servers: Readonly<Record<string, typeof server>> = { a: server, b: createFakeServer(answers) };
  const open = openView({
    identity: { name: 'view', version: '1' },
    members: ['a', 'b'].map((name) => ({ name, prefix: `${name}__` })),
    serverOf: (name) => servers[name] && { open: servers[name].open, isRemote: false },
    timeoutMs: 2_000,
    startTimeoutMs: 2_000,
    cancelGraceMs: graceMs,
    toolRules: new FilterRules([], []),
    onNameTroubles: () => undefined,
    onUnavailable: () => undefined,
    onReady: () => undefined,
    onDown: () => undefined,
    onCrashLoop: () => undefined,
  });
  let received: Received[] = [];
  const opened = createInbox<Wire>();
  /** The ids of the server's questions for the clients, by the test's names. */
  const questions = new Map<string, Wire>();
  const calls = new Set<number>();
  const left = new Set<number>();
  const take = (message: Wire, related: readonly Wire[] | undefined): void => {
    const { id, method, params } = message;
    if (id === 'open') return void opened.push(message);
    if (method === undefined && id === undefined) return;
    if (method !== undefined && id !== undefined) {
      questions.set(`question ${params.n}`, id);
      // The session refuses what is nobody's, or a client's that has gone.
      if (related?.length !== 1 || left.has(clientOf(related[0])))
        return void view.send(readMessage({ jsonrpc: '2.0', id, error: { code: 1, message: '' } }));
    }
    const about =
      method === undefined ? id : (params?.progressToken ?? (related?.length === 1 ? related[0] : undefined));
    if (about === undefined) return;
    // The session gives nothing to a client that has gone.
    if (left.has(clientOf(about))) return;
    const beside = about % idsOfClient;
    const own = params?.progressToken === undefined ? params : { ...params, progressToken: beside };
    received.push({ client: clientOf(about), beside, message: { ...message, id: beside, params: own } });
  };
  const view = open(
    {
      onMessages: (messages, related) => {
        for (const { text } of messages) take(JSON.parse(text.toString()), related);
      },
      onNoise: () => undefined,
      onUnanswered: (ids) => {
        for (const id of ids as number[])
          received.push({ client: clientOf(id), beside: id % idsOfClient, isEnd: true });
      },
      onEnd: () => undefined,
    },
    { isGroup: true },
  );
  const send = (message: object): unknown => view.send(readMessage(message));
  const capabilities = canAsk ? { elicitation: {} } : {};
  const clientInfo = { name: 'c', version: '1' };
  send({
    jsonrpc: '2.0',
    id: 'open',
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities, clientInfo },
  });
  await opened.next();
  send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const cancel = (id: number): void => {
    calls.delete(id);
    send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
  };
  return {
    rules: {
      canAsk,
      refusesQuestions: false,
      hasAnswers: true,
      isSilentByDefault: false,
      isOfOneUser: false,
      notesUsersLate: false,
      restarts: true,
      hasWishes: false,
      plainMethod: 'completion/complete',
    },
    server,
    request(client, { id, method, params }) {
      const { mark, _meta } = params;
      const meta = _meta === undefined ? {} : { _meta: { progressToken: idOf(client, id) } };
      const target = { name: 'a__t', ref: { type: 'ref/prompt', name: 'a__p' } };
      calls.add(idOf(client, id));
      send({ jsonrpc: '2.0', id: idOf(client, id), method, params: { mark, ...target, ...meta } });
    },
    cancel: (client, id) => cancel(idOf(client, id)),
    send(_client, { id, result }) {
      // The session knows whose a question and a call are.
      if (result?.client !== undefined) send({ jsonrpc: '2.0', id: questions.get(id), result });
    },
    subscribe: () => undefined,
    unsubscribe: () => undefined,
    setLevel: () => undefined,
    pause: () => undefined,
    resume: () => undefined,
    leave(client) {
      left.add(client);
      for (const id of [...calls]) if (clientOf(id) === client) cancel(id);
    },
    take() {
      const taken = received;
      received = [];
      return taken;
    },
    close: () => view.close(),
  };
}
