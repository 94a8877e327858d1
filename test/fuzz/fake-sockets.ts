import { EventEmitter } from 'node:events';
import type { loadLibrary as loadRealLibrary } from '../../src/core/util/load-library.ts';
import type { HttpConnection, HttpResponse } from '../../src/features/remote/http-client/http-connection.ts';
import { ResponseBody } from '../../src/features/remote/http-client/response-body.ts';
import type { Heard } from './hostile-texts.ts';

/** Does one step at a message; `say` with texts, and the number that says in which way. */
export type React = (heard: Heard, say: (texts: readonly Buffer[], way: number) => void) => void;

/** The server of the case that runs now: fakes of sockets have no other way to it. */
let current: React = () => undefined;

export const reactNow = (): React => current;

export function reactWith(react: React): void {
  current = react;
}

/** A message as its server hears it; the first one of several. */
export const read = (message: Uint8Array): Heard => {
  const heard: unknown = JSON.parse(Buffer.from(message).toString());
  return (Array.isArray(heard) ? (heard[0] ?? {}) : heard) as Heard;
};

const mediaTypes = ['application/json', 'text/event-stream', 'text/html', ''];

/** The events of a stream with these texts, with what may stand between them. */
function eventsOf(texts: readonly Buffer[], way: number): Buffer {
  const oddities = ['', ': comment\n', 'id: 1\n', 'retry: 1\n', 'event: other\ndata: x\n\n', 'id: \u0000\n', 'data\n'];
  const lineBreak = way % 7 === 0 ? '\r\n' : '\n';
  const events = texts.map((text, n) => {
    const oddity = oddities[(way + n) % oddities.length] as string;
    return `${oddity}data: ${text.toString('latin1')}${lineBreak}${lineBreak}`;
  });
  return Buffer.from(events.join(''), 'latin1');
}

/** What stands for the HTTP connections of a backend; the tests put it in place of that of `http-connection.ts`. */
export function openHttpConnection(): HttpConnection {
  const react = current;
  const cuts = new Set<() => void>();
  let tellStream: ((chunk: Buffer) => void) | undefined;
  const answerOf = (
    status: number,
    mediaType: string,
    chunks: readonly Buffer[],
    headers = {},
  ): HttpResponse & { end(): void } => {
    const body: ResponseBody = new ResponseBody({ resume: () => undefined, abort: (cause) => body.end(cause) });
    for (const chunk of chunks) body.take(chunk);
    cuts.add(() => body.end(new Error('cut')));
    const url = new URL('http://127.0.0.1/mcp');
    return { status, mediaType, headers, body, url, end: () => body.end() };
  };
  return {
    noteChallenge: () => false,
    request({ method, headers, body, signal }) {
      return new Promise((resolve, reject) => {
        const abort = (): void => reject(new Error('aborted'));
        cuts.add(abort);
        if (signal instanceof AbortSignal) signal.addEventListener('abort', abort, { once: true });
        else signal.onAbort = abort;
        const give = (answer: HttpResponse & { end(): void }, ends: boolean): void => {
          if (ends) answer.end();
          resolve(answer);
        };
        if (method === 'DELETE') return give(answerOf(200, '', []), true);
        if (method === 'GET') {
          // Only a server of HTTP+SSE has a stream that matters; its backend says so by asking for nothing else.
          if (!headers['accept']?.includes('text/event-stream') || headers['cache-control'] !== 'no-store')
            return give(answerOf(405, '', []), true);
          const stream = answerOf(200, 'text/event-stream', [Buffer.from('event: endpoint\ndata: /m\n\n')]);
          tellStream = (chunk) => void stream.body.take(chunk);
          return give(stream, false);
        }
        let isAnswered = false;
        const answer = (texts: readonly Buffer[], way: number): void => {
          isAnswered = true;
          const how = way % 12;
          const [first = Buffer.alloc(0)] = texts;
          const mediaType = mediaTypes[Math.floor(way / 12) % mediaTypes.length] as string;
          const session = way % 5 === 0 ? { 'mcp-session-id': ['s', 'ü', '', 's s'][way % 4] } : {};
          if (tellStream !== undefined && how < 8) {
            tellStream(eventsOf(texts, way));
            give(answerOf(202, '', [], session), true);
          } else if (how < 4) give(answerOf(200, 'application/json', [first], session), true);
          else if (how < 7) give(answerOf(200, 'text/event-stream', [eventsOf(texts, way)], session), how < 6);
          else if (how === 7) give(answerOf(202, '', [], session), true);
          else if (how === 8)
            give(answerOf([400, 404, 500, 503, 301][way % 5] as number, mediaType, [first], session), true);
          else if (how === 9) give(answerOf(200, mediaType, texts, session), true);
          else if (how === 10) give(answerOf(200, 'text/event-stream', [first.subarray(0, way % 20)], session), true);
          else reject(new Error('refused'));
        };
        queueMicrotask(() => {
          const heard = read(body ?? Buffer.from('{}'));
          react(heard, answer);
          if (!isAnswered) give(answerOf(202, '', []), true);
        });
      });
    },
    async close() {
      for (const cut of cuts) cut();
      cuts.clear();
    },
  };
}

/** `loadLibrary`, whose library for WebSockets has the fake one. */
export const withFakeWebSocket = (loadLibrary: typeof loadRealLibrary): typeof loadRealLibrary =>
  ((name: Parameters<typeof loadRealLibrary>[0]) =>
    name === 'ws' ? { WebSocket: FakeWebSocket } : loadLibrary(name)) as typeof loadRealLibrary;

/** What stands for a WebSocket; the tests put it in place of that of `ws`. */
export class FakeWebSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 0;
  readonly bufferedAmount = 0;
  readonly isPaused = false;
  readonly #react = current;

  constructor() {
    super();
    queueMicrotask(() => {
      if (this.readyState !== 0) return;
      this.emit('upgrade', { headers: { 'sec-websocket-protocol': 'mcp' }, socket: { bytesRead: 0 } });
      this.readyState = 1;
      this.emit('open');
    });
  }

  send(message: Uint8Array): void {
    const heard = read(message);
    queueMicrotask(() =>
      this.#react(heard, (texts, way) => {
        for (const text of texts) if (this.readyState === 1) this.emit('message', text, way % 3 === 0);
        if (way % 50 === 49) this.terminate();
      }),
    );
  }

  readonly pause = (): void => undefined;
  readonly resume = (): void => undefined;
  readonly ping = (): void => undefined;

  close(): void {
    this.terminate();
  }

  terminate(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    queueMicrotask(() => this.emit('close', 1006));
  }
}
