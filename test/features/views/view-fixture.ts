import type { RequestIds } from '../../../src/core/backend/backend.ts';
import { FilterRules } from '../../../src/core/backend/filter-rules.ts';
import type { Reason } from '../../../src/core/protocol/faults.ts';
import type { Message } from '../../../src/core/protocol/message/message.ts';
import type { NameTroubles } from '../../../src/features/views/name-reports.ts';
import { openView } from '../../../src/features/views/view-backend.ts';
import { createFakeServer, type FakeBackend, type FakeServer, readMessage } from '../../support/fake-backend.ts';
import { createInbox, type Inbox } from '../../support/wait-for.ts';

/** A view of the servers a and b, whose client has initialized it. */
export interface StartedView {
  /** The servers, by name. */
  readonly servers: Readonly<Record<string, FakeServer>>;
  readonly a: FakeBackend;
  readonly b: FakeBackend;
  /** What the client gets. */
  readonly received: Inbox<Message>;
  /** The messages that are no responses, and the requests that they relate to. */
  readonly related: Inbox<readonly [method: string | undefined, requests: RequestIds | undefined]>;
  /** The requests that the client gets an error of the gateway for. */
  readonly unanswered: Inbox<readonly [ids: RequestIds, reason: Reason]>;
  /** The names that the view has reported. */
  readonly nameTroubles: Inbox<NameTroubles>;
  /** The crash loops that the view has reported. */
  readonly crashLoops: Inbox<readonly [server: string, pauseMs: number]>;
  /** Sends a request of the client, and resolves with the answer. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers of every shape
  request(method: string, params?: object): Promise<any>;
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

/** What a server does with a request: the member of its response; undefined for no answer. */
export type Answering = (method: unknown, params: Record<string, unknown>) => object | undefined;

/** A server that answers nothing but `initialize`, and what a test says. */
const carefulServer = (
  isFullAfterRestart: boolean,
  answering: Answering = () => undefined,
  capabilities: unknown = { tools: {}, tasks: { list: {} } },
): FakeServer => {
  const server = createFakeServer(({ method, id, params = {} }, backend) => {
    if (isFullAfterRestart && server.opened.length > 1) backend.answerToSend = 'full';
    const result = { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'server', version: '1' } };
    if (id === undefined) return;
    const answer = method === 'initialize' ? { result } : answering(method, params as Record<string, unknown>);
    if (answer !== undefined) queueMicrotask(() => backend.says({ jsonrpc: '2.0', id, ...answer }));
  });
  return server;
};

/** How a view starts. */
export interface ViewSetting {
  /** True if its calls belong to several clients. */
  readonly isGroup?: boolean;
  /** True if servers that were lost take no requests after they have started again. */
  readonly isFullAfterRestart?: boolean;
  /** What the servers answer, and what they declare. */
  readonly answers?: Readonly<Partial<Record<'a' | 'b', Answering>>>;
  readonly capabilities?: Readonly<Partial<Record<'a' | 'b', unknown>>>;
  /** The server whose names have no prefix. */
  readonly unprefixed?: 'a' | 'b';
  readonly timeoutMs?: number;
  readonly cancelGraceMs?: number;
}

/** Starts a view. */
export async function startView({
  isGroup = false,
  isFullAfterRestart = false,
  answers = {},
  capabilities = {},
  unprefixed,
  timeoutMs = 2_000,
  cancelGraceMs = 5_000,
}: ViewSetting = {}): Promise<StartedView> {
  const serverA = carefulServer(isFullAfterRestart, answers.a, capabilities.a);
  const serverB = carefulServer(isFullAfterRestart, answers.b, capabilities.b);
  const servers: Readonly<Record<string, FakeServer>> = { a: serverA, b: serverB };
  const received = createInbox<Message>();
  const unanswered = createInbox<readonly [RequestIds, Reason]>();
  const nameTroubles = createInbox<NameTroubles>();
  const crashLoops = createInbox<readonly [server: string, pauseMs: number]>();
  const related = createInbox<readonly [string | undefined, RequestIds | undefined]>();
  const open = openView({
    identity: { name: 'view', version: '1' },
    members: ['a', 'b'].map((name) => ({ name, prefix: name === unprefixed ? '' : `${name}__` })),
    serverOf: (name) => servers[name] && { open: servers[name].open, isRemote: false },
    timeoutMs,
    startTimeoutMs: 2_000,
    cancelGraceMs,
    toolRules: new FilterRules([], []),
    onNameTroubles: nameTroubles.push,
    onUnavailable: () => undefined,
    onReady: () => undefined,
    onDown: () => undefined,
    onCrashLoop: (server, pauseMs) => crashLoops.push([server, pauseMs]),
  });
  const events = {
    onMessages: (messages: readonly Message[], requests?: RequestIds) => {
      for (const { kind, method } of messages) if (kind !== 'response') related.push([method, requests]);
      messages.forEach(received.push);
    },
    onNoise: () => undefined,
    onUnanswered: (ids: RequestIds, reason: Reason) => unanswered.push([ids, reason]),
    onEnd: () => undefined,
  };
  const view = open(events, { isGroup });
  const send = (message: object) => view.send(readMessage(message));
  send(initialize);
  await received.next(({ id }) => id === 0);
  send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  let lastId = 1_000;
  const request = async (method: string, params: object = {}) => {
    const id = ++lastId;
    send(requestOf(id, method, params));
    return JSON.parse((await received.next((message) => message.id === id)).text.toString());
  };
  return {
    a: serverA.backend,
    b: serverB.backend,
    servers,
    received,
    related,
    unanswered,
    nameTroubles,
    crashLoops,
    request,
    send,
  };
}

/** A request of the client. */
export const requestOf = (id: number, method: string, params: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

/** A call of a tool under its name in the view. */
export const callOf = (id: number, name: string, more: object = {}): object =>
  requestOf(id, 'tools/call', { name, ...more });
