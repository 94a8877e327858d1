// Clients of each kind without any SDK, in one session as far as they have one, which call the tool `echo`.
import { initialize, type Message, type SessionOptions } from '../support/http-client.ts';
import { callModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

/** A connected client. */
export interface CallingClient {
  /** Resolves with the answer. */
  call(text: string): Promise<Message>;
  stop(): unknown;
}

/** A kind of client, and how it connects. */
export type CallingKind = readonly [name: string, connect: (url: string) => Promise<CallingClient>];

const echo = (text: string) => ({ name: 'echo', arguments: { text } });

const byHttp =
  (options: SessionOptions = {}) =>
  async (url: string): Promise<CallingClient> => {
    const session = await initialize(url, options);
    return {
      call: async (text) => (await session.request('tools/call', echo(text))).messages.at(-1),
      stop: () => session.delete(),
    };
  };

async function bySse(url: string): Promise<CallingClient> {
  const client = await connectOld(new URL(url).origin);
  return { call: (text) => client.request('tools/call', echo(text)), stop: () => client.drop() };
}

async function byWebSocket(url: string): Promise<CallingClient> {
  const client = await connectWebSocket(webSocketUrlOf(url));
  await client.initialize();
  let id = 0;
  return {
    call(text) {
      client.send({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params: echo(text) });
      return client.next((message) => message.id === id && message.method === undefined);
    },
    stop: () => client.peer.terminate(),
  };
}

async function byModern(url: string): Promise<CallingClient> {
  return {
    call: async (text) => (await callModern(url, 'echo', { text })).messages.at(-1),
    stop: () => undefined,
  };
}

export const callingClients: readonly CallingKind[] = [
  ['Streamable HTTP', byHttp()],
  ['HTTP+SSE', bySse],
  ['WebSocket', byWebSocket],
  ['2026-07-28', byModern],
];
