import type { OutgoingHttpHeaders } from 'node:http';
import { type GatewayOptions, root } from '../support/gateway.ts';
import { initialize, type Session, type SessionOptions } from '../support/http-client.ts';
import { type Listening, type ListenOptions, listen } from '../support/resuming-client.ts';

/** A gateway's options with the server whose messages are numbered. */
export const withCounting = (...args: string[]): GatewayOptions => ({
  command: [process.execPath, `${root}test/resume/counting-server.mjs`],
  // A call that a test leaves open does not delay the end of the gateway.
  args: ['--timeouts.drain', '0', ...args],
});

/** The headers of a session. */
export const headersOf = ({ id, version }: Session): OutgoingHttpHeaders => ({
  'Mcp-Session-Id': id,
  'MCP-Protocol-Version': version,
});

const padOf = (n: number, pad: number): string => 'ä€𝄞x'.repeat((n * 7) % (pad + 1));
const text = (message: object): string => JSON.stringify({ jsonrpc: '2.0', ...message });

/** What the server says of a call: its progress, then the response. The numbers `from` to `to`. */
export const progressTexts = (token: string | number, to: number, pad = 0, from = 1): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => {
    const progress = from + index;
    const params = { progressToken: token, progress, message: padOf(progress, pad) };
    return text({ method: 'notifications/progress', params });
  });

/** All that the server says in answer to `test/count`, or to a `test/hold` that emitted so much. */
export const answerTexts = (id: string | number, count: number, pad = 0): string[] => [
  ...progressTexts(id, count, pad),
  text({ id, result: { counted: count } }),
];

/** What the server says after `test/tell`. */
export const toldTexts = (to: number, pad = 0, from = 1): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) =>
    text({ method: 'notifications/told', params: { n: from + index, pad: padOf(from + index, pad) } }),
  );

/** A call whose id is its progress token too. */
export const call = (id: string | number, method: string, params: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { ...params, _meta: { progressToken: id } },
});

/** A session with the counting server, whose streams the test listens to itself. */
export interface CountingSession extends Session {
  /** Opens a connection of its own: POST if there is a body, else GET. */
  listen(options?: Omit<ListenOptions, 'headers'>, url?: string): Listening;
  /** Makes a held call report so many times. Resolves when it is done: all of it is in the log then. */
  emit(token: string | number, count: number, pad?: number): Promise<void>;
  /** Makes a held call be answered. */
  finish(token: string | number): Promise<void>;
  /** Makes the server send the notifications `from` to `to` outside of any call. */
  tell(from: number, to: number, how?: { burst?: number; gapMs?: number; pad?: number }): Promise<void>;
  /** The lines that reached the server since the last time. */
  lines(): Promise<string[]>;
  at(url: string): CountingSession;
}

/** Opens a session. */
export async function openCounting(url: string, options: SessionOptions = {}): Promise<CountingSession> {
  return countingAt(url, await initialize(url, options));
}

function countingAt(url: string, session: Session): CountingSession {
  // biome-ignore lint/suspicious/noExplicitAny: a result of any shape
  const ask = async (method: string, params: object): Promise<any> => {
    const answer = await session.request(method, params);
    const response = answer.messages.find(({ result }) => result !== undefined);
    if (response === undefined) throw new Error(`${method} got ${answer.status}: ${answer.text}`);
    return response.result;
  };
  return {
    ...session,
    listen: (more = {}, at = url) => listen(at, { headers: headersOf(session), ...more }),
    emit: (token, count, pad = 0) => ask('test/emit', { token, count, pad }),
    finish: (token) => ask('test/finish', { token }),
    tell: (from, to, { burst = 1_000, gapMs = 0, pad = 0 } = {}) =>
      ask('test/tell', { from, to, burst, gapMs, pad }).then(() => undefined),
    at: (other) => countingAt(other, session.at(other)),
    lines: async () => (await ask('test/lines', {})).lines,
  };
}

/** Opens a call that the server holds, and resolves when its stream has begun with an id. */
export async function hold(session: CountingSession, id: string | number, url?: string): Promise<Listening> {
  const listening = session.listen({ body: call(id, 'test/hold') }, url);
  await listening.events.next(({ id }) => id !== undefined, { what: 'the first event of a held call' });
  return listening;
}

/** The texts of the messages in events. */
export const textsOf = (events: Iterable<{ readonly data?: string }>): string[] =>
  [...events].flatMap(({ data }) => (data === undefined || data === '' ? [] : [data]));
