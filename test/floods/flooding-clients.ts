import { Agent, request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import { initialize } from '../support/http-client.ts';
import { envelope, modernHeaders } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

/** A request of a flood. Its parameters are members as JSON text, because they are of no use as objects. */
export interface FloodRequest {
  readonly method: string;
  readonly name?: string;
  readonly members: string;
}

/** A client that floods, on any transport. */
export interface FloodingClient {
  /** Sends a request. Resolves when it is answered, or was accepted by a transport that answers elsewhere. */
  send(id: number, request: FloodRequest, headers?: OutgoingHttpHeaders): Promise<unknown>;
  close(): Promise<unknown>;
}

/** Sends a text, and drops the answer unread. Resolves with the status; 0 if the connection broke. */
export async function sendText(url: string, body: string, headers: OutgoingHttpHeaders, agent: Agent): Promise<number> {
  return new Promise((resolve) => {
    const request = httpRequest(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      agent,
    });
    request.on('response', (response) => {
      response.resume();
      response.once('close', () => resolve(response.statusCode ?? 0));
    });
    request.on('error', () => resolve(0));
    request.end(body);
  });
}

const textOf = (id: number, { method, name, members }: FloodRequest, meta?: object): string => {
  const parts = [name && `"name":${JSON.stringify(name)}`, members, meta && `"_meta":${JSON.stringify(meta)}`];
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${parts.filter(Boolean).join()}}}`;
};

/** How a client of each transport reaches an endpoint of a gateway: `place` is the name of the server or view. */
export const floodingClients = {
  async http(baseUrl, place) {
    const url = `${baseUrl}/${place}/mcp`;
    const agent = new Agent({ keepAlive: true });
    const session = await initialize(url);
    return {
      send: (id, request, headers = {}) =>
        sendText(url, textOf(id, request), { 'Mcp-Session-Id': session.id, ...headers }, agent),
      close: () => session.delete().finally(() => agent.destroy()),
    };
  },
  async sse(baseUrl, place) {
    const agent = new Agent({ keepAlive: true });
    const client = await connectOld(baseUrl, { prefix: `/${place}` });
    const url = new URL(client.endpoint, baseUrl).href;
    return {
      send: async (id, request, headers = {}) => {
        const status = await sendText(url, textOf(id, request), headers, agent);
        if (status === 202) await client.response(id, { deadlineMs: 60_000 });
      },
      async close() {
        client.drop();
        agent.destroy();
      },
    };
  },
  async ws(baseUrl, place) {
    const client = await connectWebSocket(webSocketUrlOf(`${baseUrl}/${place}/mcp`));
    await client.initialize();
    return {
      send: (id, request) => {
        client.send(textOf(id, request));
        return client.next((message) => message.id === id && !('method' in message), { deadlineMs: 60_000 });
      },
      close: async () => client.peer.terminate(),
    };
  },
  async modern(baseUrl, place) {
    const url = `${baseUrl}/${place}/mcp`;
    const agent = new Agent({ keepAlive: true });
    return {
      send: (id, request, headers = {}) =>
        sendText(
          url,
          textOf(id, request, envelope),
          { ...modernHeaders(request.method, request.name), ...headers },
          agent,
        ),
      close: async () => agent.destroy(),
    };
  },
} satisfies Record<string, (baseUrl: string, place: string) => Promise<FloodingClient>>;

export type ClientTransport = keyof typeof floodingClients;

const numbered = (count: number, text: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => text(n)).join();

/** What clients do at once. */
export interface ClientFlood {
  /** The requests that are in flight at once, and how often they are sent. */
  readonly atOnce: number;
  readonly rounds: number;
  readonly request: FloodRequest;
  /** For transports whose messages have headers. */
  readonly headers?: OutgoingHttpHeaders;
}

const plain: FloodRequest = { method: 'tools/list', members: '' };

export const clientFloods: Readonly<Record<string, ClientFlood>> = {
  'clients: long keys that are not ASCII': {
    atOnce: 10,
    rounds: 1,
    request: { ...plain, members: numbered(1_000, (n) => `"${n}${'é'.repeat(1_990)}":1`) },
  },
  'clients: bodies just below the limit': {
    atOnce: 10,
    rounds: 1,
    request: { ...plain, members: `"a":[${'0,'.repeat(255_000)}0]` },
  },
  'clients: large calls': {
    atOnce: 10,
    rounds: 1,
    request: {
      method: 'tools/call',
      name: 'flood',
      members: `"arguments":{${numbered(8_000, (n) => `"${n}${'é'.repeat(200)}":1`)}}`,
    },
  },
  'clients: many headers': {
    atOnce: 10,
    rounds: 1,
    request: plain,
    headers: Object.fromEntries(Array.from({ length: 90 }, (_, n) => [`X-${n}`, 'x'.repeat(100)])),
  },
  'clients: many small requests': { atOnce: 50, rounds: 20, request: plain },
};
