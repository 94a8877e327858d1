import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { HttpContext } from '../../src/core/http/http-context.ts';

/** A request without a connection. */
export interface FakeRequest {
  readonly method?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The parts in which the body arrives; undefined for a body that does not end. */
  readonly body?: readonly string[] | undefined;
  /** The port that the gateway listens on; undefined for none. */
  readonly localPort?: number | undefined;
}

/** The response of a request without a connection. */
export interface FakeResponse {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly text: string;
}

/** Creates the context of a request, and a function that returns its response once there is one. */
export function createHttpContext({
  method = 'GET',
  url = '/mcp',
  headers = {},
  body = [],
  localPort,
}: FakeRequest = {}): {
  readonly context: HttpContext;
  readonly response: () => FakeResponse | undefined;
} {
  const incoming = new IncomingMessage(Object.defineProperty(new Socket(), 'localPort', { value: localPort }));
  incoming.method = method;
  incoming.url = url;
  incoming.httpVersion = '1.1';
  incoming.httpVersionMajor = 1;
  incoming.httpVersionMinor = 1;
  for (const [name, value] of Object.entries({ host: 'localhost', ...headers })) {
    incoming.headers[name.toLowerCase()] = value;
    incoming.rawHeaders.push(name, value);
  }
  for (const part of body) incoming.push(part);
  if (body !== undefined) incoming.push(null);
  const outgoing = new ServerResponse(incoming);
  const { socket, written } = createFakeSocket();
  outgoing.assignSocket(socket);
  return { context: new HttpContext(incoming, outgoing), response: () => parseResponse(written()) };
}

/** Creates a connection to nobody, and a function that returns everything that was written to it. */
export function createFakeSocket(): { readonly socket: Socket; readonly written: () => string } {
  let written = '';
  const socket = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      written += chunk.toString('latin1');
      done();
    },
  }) as Socket;
  return { socket, written: () => written };
}

function parseResponse(written: string): FakeResponse | undefined {
  const end = written.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = written.slice(0, end).split('\r\n');
  const headers = lines.map((line) => line.split(': ', 2) as [string, string]);
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    text: written.slice(end + 4),
  };
}
