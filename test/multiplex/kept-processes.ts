import type { Backend } from '../../src/core/backend/backend.ts';
import { KeptProcesses } from '../../src/features/sharing/kept-processes.ts';
import { FakeHolder, initialize, initialized, notification } from '../features/sharing/reuse-fixture.ts';
import { createFakeServer, readMessage } from '../support/fake-backend.ts';
import { createInbox } from '../support/wait-for.ts';
import { graceMs, type Received, type Subject, type Wire } from './subject.ts';

const serverCapabilities = { logging: {}, resources: { subscribe: true } };

/** Sessions of legacy clients that use one process at the same time. */
export async function openKeptProcesses(users: readonly string[], canAsk: boolean): Promise<Subject> {
  const server = createFakeServer(({ id, method }, backend) => {
    const answer = { protocolVersion: '2025-11-25', capabilities: serverCapabilities };
    if (method === 'initialize') backend.says({ jsonrpc: '2.0', id, result: answer });
  });
  const kept = new KeptProcesses({
    open: server.open,
    reuse: () => (new Set(users).size > 1 ? 'all' : 'user'),
    sharedBy: 'all',
    cancelGraceMs: graceMs,
    lingerMs: 60_000,
    maxKept: 10,
  });
  let received: Received[] = [];
  const sessions: Backend[] = [];
  for (const [client, subject] of users.entries()) {
    const opened = createInbox<Wire>();
    const session = kept.open(
      {
        onMessages: (messages) => {
          for (const { text } of messages) {
            const message = JSON.parse(text.toString());
            if (message.id === 'open') opened.push(message);
            else received.push({ client, message });
          }
        },
        onNoise: () => undefined,
        onUnanswered: () => undefined,
        onEnd: () => received.push({ client, isEnd: true }),
      },
      { principal: { issuer: 'keys', subject, client: '' }, holder: new FakeHolder() },
    );
    const send = (message: object): unknown => session.send(readMessage(message));
    send(initialize('open', 'c', canAsk ? { elicitation: {} } : {}));
    await opened.next();
    send(initialized);
    sessions.push(session);
  }
  const sessionOf = (client: number): Backend => sessions[client] as Backend;
  const send = (client: number, message: object): void => void sessionOf(client).send(readMessage(message));
  const ask = (client: number, id: number, method: string, params: object): void =>
    send(client, { jsonrpc: '2.0', id, method, params });
  return {
    rules: {
      canAsk,
      refusesQuestions: false,
      hasAnswers: false,
      isSilentByDefault: false,
      isOfOneUser: false,
      notesUsersLate: false,
      hasWishes: true,
      plainMethod: 'tools/list',
      restarts: false,
    },
    server,
    request: send,
    send,
    cancel: (client, requestId) => send(client, notification('notifications/cancelled', { requestId })),
    subscribe: (client, uri, id) => ask(client, id, 'resources/subscribe', { uri }),
    unsubscribe: (client, uri, id) => ask(client, id, 'resources/unsubscribe', { uri }),
    setLevel: (client, level, id) => ask(client, id, 'logging/setLevel', { level }),
    pause: (client) => sessionOf(client).pause(),
    resume: (client) => sessionOf(client).resume(),
    leave: (client) => void sessionOf(client).close({ mayBeKept: true }),
    take() {
      const taken = received;
      received = [];
      return taken;
    },
    async close() {
      await Promise.all(sessions.map((session) => session.close()));
      await kept.close();
    },
  };
}
