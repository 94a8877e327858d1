import { once } from 'node:events';
import { connect } from 'node:net';
import { type Waiting, withDeadline } from './wait-for.ts';

/** A value of RESP2, texts as UTF-8. An error inside an array is an `Error`; one that is the whole reply is thrown. */
export type Reply = string | number | null | Error | readonly Reply[];

/** Sends one command to a Redis on loopback, on a connection of its own, and resolves with the reply. */
export async function sendCommand(
  port: number,
  args: readonly (string | Buffer)[],
  waiting: Waiting = {},
): Promise<Reply> {
  let settle: (reply: Reply) => void = () => undefined;
  const replied = new Promise<Reply>((resolve) => {
    settle = resolve;
  });
  const connection = await openResp(port, settle, waiting);
  try {
    connection.send(args);
    const broken = connection.closed.then(() => new Error(connectionBroke));
    const what = `the reply of Redis to ${args[0]?.toString()}`;
    const reply = await withDeadline(Promise.race([replied, broken]), { what, ...waiting });
    if (reply instanceof Error) throw reply;
    return reply;
  } finally {
    connection.close();
  }
}

/** The message of the error when Redis ends a connection without a reply. */
export const connectionBroke = 'The connection to Redis broke';

/** One connection to a Redis. */
export interface RespConnection {
  send(args: readonly (string | Buffer)[]): void;
  close(): void;
  /** Resolves when it is closed, whoever closed it. */
  readonly closed: Promise<void>;
}

/** Connects. Tests have their own tiny client, independent of the client under test. */
export async function openResp(
  port: number,
  onReply: (reply: Reply) => void,
  waiting: Waiting = {},
): Promise<RespConnection> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const connected = once(socket, 'connect');
  socket.on('data', createRespReader(onReply));
  socket.on('error', () => undefined); // `connected` and `closed` report it
  await withDeadline(connected, { what: `a connection to Redis at ${port}`, ...waiting }).catch((error: Error) => {
    socket.destroy();
    throw error;
  });
  return { closed, send: (args) => void socket.write(formatCommand(args)), close: () => void socket.destroy() };
}

function formatCommand(args: readonly (string | Buffer)[]): Buffer {
  const parts = args.flatMap((arg) => {
    const bytes = Buffer.from(arg);
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')];
  });
  return Buffer.concat([Buffer.from(`*${args.length}\r\n`), ...parts]);
}

/** Reads replies from chunks, each byte once: the log of a session can have tens of megabytes. */
export function createRespReader(onReply: (reply: Reply) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  /** The arrays whose items are not all there yet, the outermost first. */
  const open: { readonly items: Reply[]; readonly length: number }[] = [];
  const take = (reply: Reply): void => {
    const array = open.at(-1);
    if (array === undefined) return onReply(reply);
    array.items.push(reply);
    if (array.items.length < array.length) return;
    open.pop();
    take(array.items);
  };
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    let end = 0;
    for (let read = readPart(rest, end); read !== undefined; read = readPart(rest, end)) {
      end = read.end;
      if ('length' in read) open.push({ items: [], length: read.length });
      else take(read.reply);
    }
    rest = rest.subarray(end);
  };
}

/** A reply other than a non-empty array, or the beginning of such an array. */
type Part = { readonly end: number } & ({ readonly reply: Reply } | { readonly length: number });

/** The reply at `start`, or undefined if it is incomplete. */
function readPart(bytes: Buffer, start: number): Part | undefined {
  const lineEnd = bytes.indexOf('\r\n', start);
  if (lineEnd === -1) return undefined;
  const line = bytes.toString('utf8', start + 1, lineEnd);
  const end = lineEnd + 2;
  const kind = String.fromCharCode(bytes[start] ?? 0);
  switch (kind) {
    case '+':
      return { reply: line, end };
    case '-':
      return { reply: new Error(line), end };
    case ':':
      return { reply: Number(line), end };
    case '$':
      return readBulk(bytes, end, Number(line));
    case '*':
      if (line === '-1') return { reply: null, end };
      return line === '0' ? { reply: [], end } : { length: Number(line), end };
    default:
      throw new Error(`Not a reply of Redis: ${JSON.stringify(kind + line)}`);
  }
}

function readBulk(bytes: Buffer, start: number, length: number): Part | undefined {
  if (length === -1) return { reply: null, end: start };
  const end = start + length;
  return bytes.length < end + 2 ? undefined : { reply: bytes.toString('utf8', start, end), end: end + 2 };
}
