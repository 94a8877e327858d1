import { connect, type Socket } from 'node:net';
import type { Message } from '../support/http-client.ts';
import { type Waiting, withDeadline } from '../support/wait-for.ts';

/** The answer to bytes that no HTTP client would send. */
export interface RawAnswer {
  /** 0 if the connection was closed without an answer. */
  readonly status: number;
  /** By name in lower case; of two the last. */
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
  /** The parsed body if it is JSON. */
  readonly json: Message;
  /** Everything that came, of further answers too. */
  readonly raw: string;
}

/** A connection whose bytes the test writes itself. */
export interface RawConnection {
  readonly socket: Socket;
  write(bytes: string | Uint8Array): void;
  /** Resolves with the first answer that is whole, or when the connection has ended. */
  answer(waiting?: Waiting): Promise<RawAnswer>;
  /** Resolves when the other side has closed the connection. */
  closed(waiting?: Waiting): Promise<void>;
  /** Cuts the connection, without the end of what was begun. */
  drop(): void;
}

/** Connects to a port of 127.0.0.1. Strings are written as Latin-1: one character is one byte. */
export async function connectRaw(port: number): Promise<RawConnection> {
  const socket = connect(port, '127.0.0.1');
  let raw = '';
  let check = (): void => undefined;
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    raw += chunk;
    check();
  });
  // A gateway may reset a connection that it refuses while bytes are on their way; what it said before counts.
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await withDeadline(new Promise<void>((resolve) => socket.once('connect', resolve)), { what: 'a connection' });
  return {
    socket,
    write: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    answer: async (waiting = {}) => {
      const whole = new Promise<void>((resolve) => {
        check = () => {
          if (isWhole(raw)) resolve();
        };
        check();
      });
      await withDeadline(Promise.race([whole, closed]), { what: 'an answer', ...waiting });
      return parse(raw);
    },
    closed: (waiting = {}) => withDeadline(closed, { what: 'the end of the connection', ...waiting }),
    drop: () => void socket.destroy(),
  };
}

/** Sends bytes on a connection of their own and resolves with the answer to them. */
export async function sendRaw(port: number, bytes: string | Uint8Array, waiting?: Waiting): Promise<RawAnswer> {
  const connection = await connectRaw(port);
  try {
    connection.write(bytes);
    return await connection.answer(waiting);
  } finally {
    connection.drop();
  }
}

/** The text of a request: the first line, header lines as they are, the body. */
export const requestText = (first: string, headers: readonly string[], body = ''): string =>
  `${first}\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n${body}`;

/** The first final answer: what comes before it are interim ones (100 Continue). */
function split(raw: string): { head: string; body: string } {
  const final = raw.replace(/^(?:HTTP\/1\.1 1\d\d [^\r\n]*\r\n\r\n)+/, '');
  const end = final.indexOf('\r\n\r\n');
  return end === -1 ? { head: '', body: '' } : { head: final.slice(0, end), body: final.slice(end + 4) };
}

function headersOf(head: string): Map<string, string> {
  const lines = head.split('\r\n').slice(1);
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
}

/** True once the answer's end has come. An event stream counts as whole with its head. */
function isWhole(raw: string): boolean {
  const { head, body } = split(raw);
  if (head === '') return false;
  const headers = headersOf(head);
  if (headers.get('content-type') === 'text/event-stream') return true;
  if (headers.get('transfer-encoding') === 'chunked') return body.includes('0\r\n\r\n');
  const length = headers.get('content-length');
  return length !== undefined && body.length >= Number(length);
}

function parse(raw: string): RawAnswer {
  const { head, body } = split(raw);
  const headers = headersOf(head);
  const text = body.slice(0, Number(headers.get('content-length') ?? body.length));
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
    headers,
    text,
    json: headers.get('content-type') === 'application/json' && text !== '' ? JSON.parse(text) : undefined,
    raw,
  };
}
