import type { Agent, OutgoingHttpHeaders } from 'node:http';
import { initialize, type Message, type Session } from './http-client.ts';

/** A call of a tool. */
export interface HostedCall {
  readonly tool: string;
  readonly args?: object;
  /** The token for progress, if the call has one. */
  readonly progressToken?: string | number;
}

export interface TurnOptions {
  readonly headers?: OutgoingHttpHeaders;
  readonly agent?: Agent;
  /** The conversation, for clients that name it. */
  readonly conversation?: string;
  /** The name of the client in place of its real one. */
  readonly clientName?: string;
  /** Called with each answer when it has come, so that those before a fault are not lost. */
  onMessages?(messages: readonly Message[], call: HostedCall): void;
}

/** A client that keeps no session for longer than one turn of its model: the sequence of its requests. */
export interface HostedClient {
  readonly name: string;
  /** The calls of one turn. Resolves with the messages of each call. Rejects if a request has no answer. */
  turn(url: string, calls: readonly HostedCall[], options?: TurnOptions): Promise<Message[][]>;
}

const open = (url: string, name: string, { headers = {}, agent, clientName = name }: TurnOptions): Promise<Session> =>
  initialize(url, { headers, clientInfo: { name: clientName, version: '1.0.0' }, ...(agent && { agent }) });

async function callIn(session: Session, call: HostedCall, options: TurnOptions, meta: object = {}): Promise<Message[]> {
  const { tool, args = {}, progressToken } = call;
  const _meta = { ...meta, ...(progressToken !== undefined && { progressToken }) };
  const { status, messages, text } = await session.request('tools/call', { name: tool, arguments: args, _meta });
  if (status !== 200) throw new Error(`${tool} got ${status}: ${text}`);
  options.onMessages?.(messages, call);
  return [...messages];
}

/** One after the other, in one session. */
async function callAll(session: Session, calls: readonly HostedCall[], options: TurnOptions, meta?: object) {
  const answers: Message[][] = [];
  for (const call of calls) answers.push(await callIn(session, call, options, meta));
  return answers;
}

/** A session of the Python SDK, which listens for as long as it is open, and ends it. */
async function inListeningSession(
  url: string,
  options: TurnOptions,
  use: (session: Session) => Promise<Message[][]>,
): Promise<Message[][]> {
  const session = await open(url, 'mcp', options);
  const listening = session.getStream().catch(() => undefined);
  try {
    return await use(session);
  } finally {
    (await listening)?.drop();
    await session.delete().catch(() => undefined);
  }
}

/** The traces of four clients, as their users and their code show them. */
export const hostedClients: readonly HostedClient[] = [
  {
    // A session before nearly every call, which nobody ends.
    name: "Claude's connector",
    async turn(url, calls, options = {}) {
      const answers: Message[][] = [];
      for (const call of calls) {
        const session = await open(url, 'Anthropic/ClaudeAI', options);
        answers.push(await callIn(session, call, options));
      }
      return answers;
    },
  },
  {
    // A session for each batch, which begins with the tools and which nobody ends. Each call names the conversation.
    name: 'ChatGPT',
    async turn(url, calls, options = {}) {
      const session = await open(url, 'openai-mcp', options);
      await session.request('tools/list', {});
      return callAll(session, calls, options, { 'openai/session': options.conversation ?? 'v1/conversation' });
    },
  },
  {
    // A session for each call. The SDK asks for the tools once it has a result to check.
    name: "LangChain's adapter",
    async turn(url, calls, options = {}) {
      const answers: Message[][] = [];
      for (const call of calls)
        answers.push(
          ...(await inListeningSession(url, options, async (session) => {
            const messages = await callIn(session, call, options);
            await session.request('tools/list', {});
            return [messages];
          })),
        );
      return answers;
    },
  },
  {
    // A session for each invocation of an agent.
    name: "Google's ADK",
    turn: (url, calls, options = {}) =>
      inListeningSession(url, options, async (session) => {
        await session.request('tools/list', {});
        return callAll(session, calls, options);
      }),
  },
];
