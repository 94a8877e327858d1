import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
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

/** A connected client of the official SDK with what both of its majors can do, so that one table of features tests both. */
export interface SdkClient extends AsyncDisposable {
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
  /** Ends the session by DELETE. */
  terminateSession(): Promise<void>;
  close(): Promise<void>;
}

/** What these clients answer to a server's questions. */
export const answers = {
  sample: 'an answer of the model',
  elicited: { username: 'ada', email: 'ada@example.com' },
  roots: [{ uri: 'file:///home/someone/project', name: 'project' }],
} as const;

const clientInfo = { name: 'sdk-test-client', version: '1.0.0' };
const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
const answerSample = () => ({
  role: 'assistant' as const,
  content: { type: 'text' as const, text: answers.sample },
  model: 'test-model',
});
const answerElicitation = () => ({ action: 'accept' as const, content: { ...answers.elicited } });
const answerRoots = () => ({ roots: [...answers.roots] });

/** Connects a client of `@modelcontextprotocol/sdk` (v1). */
export async function connectV1(url: string): Promise<SdkClient> {
  const client = new ClientV1(clientInfo, { capabilities });
  const transport = new TransportV1(new URL(url));
  const inboxes = receive(client);
  client.setRequestHandler(CreateMessageRequestSchema, inboxes.answering(answerSample));
  client.setRequestHandler(ElicitRequestSchema, inboxes.answering(answerElicitation));
  client.setRequestHandler(ListRootsRequestSchema, inboxes.answering(answerRoots));
  // The SDK's types are not made for exactOptionalPropertyTypes: `sessionId?: string` is not `string | undefined`.
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return adapt(client, transport, inboxes, (params, options) => client.callTool(params, undefined, options));
}

/** Connects a client of `@modelcontextprotocol/client` (v2), which by default speaks the revisions with `initialize`. */
export async function connectV2(url: string): Promise<SdkClient> {
  const client = new ClientV2(clientInfo, { capabilities });
  const transport = new TransportV2(new URL(url));
  const inboxes = receive(client);
  client.setRequestHandler('sampling/createMessage', inboxes.answering(answerSample));
  client.setRequestHandler('elicitation/create', inboxes.answering(answerElicitation));
  client.setRequestHandler('roots/list', inboxes.answering(answerRoots));
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return adapt(client, transport, inboxes, (params, options) => client.callTool(params, options));
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
  transport: TransportV1 | TransportV2,
  { notifications, questions }: { notifications: Inbox<Received>; questions: Inbox<Received> },
  callTool: CallTool,
): SdkClient {
  const close = () => client.close();
  return {
    protocolVersion: transport.protocolVersion,
    sessionId: transport.sessionId,
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
    terminateSession: () => transport.terminateSession(),
    close,
    [Symbol.asyncDispose]: close,
  };
}
