import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { answers, type Received } from './sdk-clients.ts';
import { createInbox, type Inbox } from './wait-for.ts';

/** The ways in which an SDK v2 client finds the era: `auto`, pinned, or not at all. */
export type Mode = 'auto' | 'legacy' | { readonly pin: string };

/** A connected client of the SDK v2. */
export interface ModernSdkClient extends AsyncDisposable {
  readonly client: Client;
  /** Every notification for which the SDK has no handler of its own. */
  readonly notifications: Inbox<Received>;
  /** Every request of the server during a call. All are answered; see `answers`. */
  readonly questions: Inbox<Received>;
  /** The text of a tool's first content. */
  callTool(name: string, args?: Record<string, unknown>, options?: object): Promise<string>;
}

/** Connects a client of `@modelcontextprotocol/client` (v2). */
export async function connectModernSdk(url: string, mode: Mode): Promise<ModernSdkClient> {
  const client = new Client(
    { name: 'modern-sdk-test-client', version: '1.0.0' },
    { capabilities: { sampling: {}, elicitation: {}, roots: {} }, versionNegotiation: { mode } },
  );
  const notifications = createInbox<Received>();
  const questions = createInbox<Received>();
  client.fallbackNotificationHandler = async (notification: Received) => notifications.push(notification);
  const answering =
    <Result>(result: Result) =>
    async (question: Received): Promise<Result> => {
      questions.push(question);
      return result;
    };
  const content = { ...answers.elicited, name: 'ada', color: 'red', ok: true, context: 'tests' };
  client.setRequestHandler('elicitation/create', answering({ action: 'accept' as const, content }));
  client.setRequestHandler('roots/list', answering({ roots: [...answers.roots] }));
  client.setRequestHandler(
    'sampling/createMessage',
    answering({
      role: 'assistant' as const,
      content: { type: 'text' as const, text: answers.sample },
      model: 'test-model',
    }),
  );
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return {
    ...{ client, notifications, questions },
    callTool: async (name, args = {}, options = {}) => {
      const { _meta, ...rest } = options as { _meta?: Record<string, unknown> };
      const result = await client.callTool({ name, arguments: args, ...(_meta && { _meta }) }, rest);
      const [first] = result.content as { text?: string }[];
      return first?.text ?? '';
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}
