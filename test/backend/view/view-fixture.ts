import type { RequestIds } from '../../../src/backend/backend.ts';
import { openView } from '../../../src/backend/view/view-backend.ts';
import type { Reason } from '../../../src/protocol/faults.ts';
import type { Message } from '../../../src/protocol/message/message.ts';
import { createFakeServer, type FakeBackend, type FakeServer, readMessage } from '../../support/fake-backend.ts';
import { createInbox, type Inbox } from '../../support/wait-for.ts';

/** A view of the servers a and b, whose client has initialized it. */
export interface StartedView {
  readonly a: FakeBackend;
  readonly b: FakeBackend;
  /** What the client gets. */
  readonly received: Inbox<Message>;
  /** The requests that the client gets an error of the gateway for. */
  readonly unanswered: Inbox<readonly [ids: RequestIds, reason: Reason]>;
  /** Sends a message of the client. */
  send(message: object): 'sent' | 'full' | 'ended';
}

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { sampling: {} },
    clientInfo: { name: 'client', version: '1' },
  },
};

/** A server that answers nothing but `initialize`. */
const silentServer = (isFullAfterRestart: boolean): FakeServer => {
  const server = createFakeServer(({ method, id }, backend) => {
    if (isFullAfterRestart && server.opened.length > 1) backend.answerToSend = 'full';
    const capabilities = { tools: {}, tasks: { list: {} } };
    const result = { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'server', version: '1' } };
    if (method === 'initialize') queueMicrotask(() => backend.says({ jsonrpc: '2.0', id, result }));
  });
  return server;
};

/** How a view starts. */
export interface ViewSetting {
  /** True if its calls belong to several clients. */
  readonly isGroup?: boolean;
  /** True if servers that were lost take no requests after they have started again. */
  readonly isFullAfterRestart?: boolean;
}

/** Starts a view. */
export async function startView({
  isGroup = false,
  isFullAfterRestart = false,
}: ViewSetting = {}): Promise<StartedView> {
  const [serverA, serverB] = [silentServer(isFullAfterRestart), silentServer(isFullAfterRestart)];
  const servers: Readonly<Record<string, FakeServer>> = { a: serverA, b: serverB };
  const received = createInbox<Message>();
  const unanswered = createInbox<readonly [RequestIds, Reason]>();
  const open = openView({
    identity: { name: 'view', version: '1' },
    members: ['a', 'b'].map((name) => ({ name, prefix: `${name}__` })),
    openerOf: (name) => servers[name]?.open,
    timeoutMs: 2_000,
    startTimeoutMs: 2_000,
    onUnavailable: () => undefined,
    onReady: () => undefined,
    onDown: () => undefined,
  });
  const events = {
    onMessages: (messages: readonly Message[]) => messages.forEach(received.push),
    onNoise: () => undefined,
    onUnanswered: (ids: RequestIds, reason: Reason) => unanswered.push([ids, reason]),
    onEnd: () => undefined,
  };
  const view = open(events, { isGroup });
  const send = (message: object) => view.send(readMessage(message));
  send(initialize);
  await received.next(({ id }) => id === 0);
  send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return { a: serverA.backend, b: serverB.backend, received, unanswered, send };
}

/** A call of a tool under its name in the view. */
export const callOf = (id: number, name: string, more: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, ...more },
});
