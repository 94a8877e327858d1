import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { metaKeys, modernRevision } from './modern-client.ts';
import { deliverOneByOne } from './one-by-one.ts';
import {
  type CommonSpeech,
  newestSpeech,
  pinRevision,
  type SdkHeaders,
  type SdkTransport,
  type Speech,
  transportsV1,
  transportsV2,
} from './sdk-transports.ts';
import { createInbox, type Inbox } from './wait-for.ts';

/** A notification of the server, or one of its requests that the client answered. */
export interface Received {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

export interface CallOptions {
  onProgress?(progress: Progress): void;
  readonly signal?: AbortSignal;
}

/**
 * A connected client of the official SDK with what both of its majors can do, so that one table of features tests both.
 */
export interface SdkClient extends AsyncDisposable {
  /** The negotiated revision. */
  readonly protocolVersion: string | undefined;
  readonly sessionId: string | undefined;
  /** Every notification for which the SDK has no handler of its own (it has one for progress). */
  readonly notifications: Inbox<Received>;
  /** Every request of the server; all are answered, see `answers`. */
  readonly questions: Inbox<Received>;
  /** The text of a tool's first content. */
  callTool(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<string>;
  listTools(): Promise<string[]>;
  listPrompts(): Promise<string[]>;
  listResources(): Promise<string[]>;
  /** The text of the prompt's first message. */
  getPrompt(name: string, args: Record<string, string>): Promise<string>;
  /** The text of the resource's first contents. */
  readResource(uri: string): Promise<string>;
  subscribeResource(uri: string): Promise<unknown>;
  unsubscribeResource(uri: string): Promise<unknown>;
  completePrompt(name: string, argument: { name: string; value: string }): Promise<string[]>;
  setLoggingLevel(level: 'debug' | 'warning'): Promise<unknown>;
  ping(): Promise<unknown>;
  /** Ends the session by DELETE, which only Streamable HTTP has. */
  terminateSession(): Promise<void>;
  close(): Promise<void>;
}

/** The answers of these clients to requests of a server. */
export const answers = {
  sample: 'an answer of the model',
  elicited: { username: 'ada', email: 'ada@example.com' },
  roots: [{ uri: 'file:///home/someone/project', name: 'project' }],
} as const;

/** The revision that brought elicitation. Revisions are dates, and compare as such. */
export const elicitationSince = '2025-06-18';

const clientInfo = { name: 'sdk-test-client', version: '1.0.0' };
const capabilitiesAt = (revision: string) => ({
  sampling: {},
  roots: { listChanged: true },
  ...(hasElicitation(revision) && { elicitation: {} }),
});
const hasElicitation = (revision: string): boolean => revision >= elicitationSince;
const answerSample = () => ({
  role: 'assistant' as const,
  content: { type: 'text' as const, text: answers.sample },
  model: 'test-model',
});
const answerElicitation = () => ({ action: 'accept' as const, content: { ...answers.elicited } });
const answerRoots = () => ({ roots: [...answers.roots] });

/** Connects a client of `@modelcontextprotocol/sdk` (v1) to the gateway whose Streamable HTTP endpoint is at `url`. */
export async function connectV1(
  url: string,
  { over, revision }: Speech = newestSpeech,
  headers: SdkHeaders = {},
): Promise<SdkClient> {
  const client = new ClientV1(clientInfo, { capabilities: capabilitiesAt(revision) });
  const transport = transportsV1[over](url, headers);
  if (over !== 'http') deliverOneByOne(transport);
  const inboxes = receive(client);
  client.setRequestHandler(CreateMessageRequestSchema, inboxes.answering(answerSample));
  if (hasElicitation(revision)) client.setRequestHandler(ElicitRequestSchema, inboxes.answering(answerElicitation));
  client.setRequestHandler(ListRootsRequestSchema, inboxes.answering(answerRoots));
  const agreed = pinRevision(transport, revision);
  // The SDK's types are not made for exactOptionalPropertyTypes: `sessionId?: string` is not `string | undefined`.
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return adapt(client, transport, agreed(), inboxes, (params, options) => client.callTool(params, undefined, options));
}

/** The same of `@modelcontextprotocol/client` (v2), which by default speaks the revisions with `initialize`. */
export async function connectV2(
  url: string,
  { over, revision }: CommonSpeech = newestSpeech,
  headers: SdkHeaders = {},
): Promise<SdkClient> {
  const client = new ClientV2(clientInfo, { capabilities: capabilitiesAt(revision) });
  const transport = transportsV2[over](url, headers);
  if (over !== 'http') deliverOneByOne(transport);
  const inboxes = receive(client);
  client.setRequestHandler('sampling/createMessage', inboxes.answering(answerSample));
  if (hasElicitation(revision)) client.setRequestHandler('elicitation/create', inboxes.answering(answerElicitation));
  client.setRequestHandler('roots/list', inboxes.answering(answerRoots));
  const agreed = pinRevision(transport, revision);
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return adapt(client, transport, agreed(), inboxes, (params, options) => client.callTool(params, options));
}

/**
 * A client of the SDK v2 whose requests stand for themselves (2026-07-28), with what a session would have made of what
 * they say: each asks for log messages of the level that was set last, and for changes there are subscriptions.
 */
export async function connectModern(url: string, headers: SdkHeaders = {}): Promise<SdkClient> {
  const client = new ClientV2(clientInfo, {
    capabilities: capabilitiesAt(modernRevision),
    versionNegotiation: { mode: { pin: modernRevision } },
  });
  const transport = transportsV2.http(url, headers);
  const inboxes = receive(client);
  client.setRequestHandler('sampling/createMessage', inboxes.answering(answerSample));
  client.setRequestHandler('elicitation/create', inboxes.answering(answerElicitation));
  client.setRequestHandler('roots/list', inboxes.answering(answerRoots));
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  await client.listen({ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true });
  const subscriptions = new Map<string, { close(): Promise<void> }>();
  let _meta = { [metaKeys.logLevel]: 'debug' };
  return {
    ...adapt(client, transport, client.getNegotiatedProtocolVersion(), inboxes, (params, options) =>
      client.callTool({ ...params, _meta }, options),
    ),
    setLoggingLevel: async (level) => {
      _meta = { [metaKeys.logLevel]: level };
    },
    subscribeResource: async (uri) => {
      subscriptions.set(uri, await client.listen({ resourceSubscriptions: [uri] }));
    },
    unsubscribeResource: async (uri) => {
      await subscriptions.get(uri)?.close();
      subscriptions.delete(uri);
    },
  };
}

function receive(client: ClientV1 | ClientV2) {
  const notifications = createInbox<Received>();
  const questions = createInbox<Received>();
  client.fallbackNotificationHandler = async (notification: Received) => notifications.push(notification);
  const answering =
    <Result>(answer: () => Result) =>
    async (request: Received): Promise<Result> => {
      questions.push(request);
      return answer();
    };
  return { notifications, questions, answering };
}

type CallTool = (
  params: { name: string; arguments: Record<string, unknown> },
  options: { onprogress?: (progress: Progress) => void; signal?: AbortSignal },
) => Promise<object>;

/** Where the two majors have the same methods, one of them stands for both. */
function adapt(
  client: ClientV1 | ClientV2,
  transport: SdkTransport,
  protocolVersion: string | undefined,
  { notifications, questions }: { notifications: Inbox<Received>; questions: Inbox<Received> },
  callTool: CallTool,
): SdkClient {
  const close = () => client.close();
  return {
    protocolVersion,
    sessionId: 'sessionId' in transport ? transport.sessionId : undefined,
    notifications,
    questions,
    callTool: async (name, args = {}, { onProgress, signal } = {}) => {
      const result = await callTool(
        { name, arguments: args },
        { ...(onProgress && { onprogress: onProgress }), ...(signal && { signal }) },
      );
      const { content, isError } = result as { content?: { text?: string }[]; isError?: boolean };
      const text = content?.[0]?.text ?? '';
      if (isError) throw new Error(`The tool ${name} failed: ${text}`);
      return text;
    },
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    listPrompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
    listResources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    getPrompt: async (name, args) => {
      const { messages } = await client.getPrompt({ name, arguments: args });
      const content = messages[0]?.content;
      return content?.type === 'text' ? content.text : '';
    },
    readResource: async (uri) => {
      const { contents } = await client.readResource({ uri });
      const [first] = contents;
      return first !== undefined && 'text' in first ? first.text : '';
    },
    subscribeResource: (uri) => client.subscribeResource({ uri }),
    unsubscribeResource: (uri) => client.unsubscribeResource({ uri }),
    completePrompt: async (name, argument) => {
      const { completion } = await client.complete({ ref: { type: 'ref/prompt', name }, argument });
      return completion.values;
    },
    setLoggingLevel: (level) => client.setLoggingLevel(level),
    ping: () => client.ping(),
    terminateSession: async () => {
      if (!('terminateSession' in transport)) throw new Error('This transport has no DELETE');
      await transport.terminateSession();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
