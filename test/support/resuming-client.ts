import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import type { Message } from './http-client.ts';
import { createSseReader, type SseEvent } from './sse-reader.ts';
import { createInbox, type Inbox, type Waiting, withDeadline } from './wait-for.ts';

/** One connection of a client that follows a stream: its request and the received events. */
export interface Listened {
  readonly method: 'GET' | 'POST';
  /** The `Last-Event-ID` that was sent; undefined if none was. */
  readonly after: string | undefined;
  /** 0 if the connection broke before the head of the answer had come. */
  readonly status: number;
  /** The complete events. An incomplete one is dropped, as the SSE standard requires. */
  readonly events: readonly SseEvent[];
  /** The body of an answer that is no stream. */
  readonly text: string;
  /** True if the answer ended in order. */
  readonly isWhole: boolean;
}

/** A connection that may still deliver events. */
export interface Listening {
  /** The current state; complete when `ended` has resolved. */
  readonly listened: Listened;
  /** The events, as they come. */
  readonly events: Inbox<SseEvent>;
  /** Resolves with the head of the answer, or when the connection has broken before. */
  readonly opened: Promise<Listened>;
  /** Resolves when the connection has ended, in order or not. */
  readonly ended: Promise<Listened>;
  /** Cuts the connection at once. */
  drop(): void;
}

export interface ListenOptions {
  /** The headers of the session. */
  readonly headers: OutgoingHttpHeaders;
  /** The text or message to POST; without it the stream is opened by GET. */
  readonly body?: unknown;
  readonly after?: string | undefined;
  onEvent?(event: SseEvent): void;
}

/** Opens one connection, by POST or GET, on a socket of its own. */
export function listen(url: string, { headers, body, after, onEvent }: ListenOptions): Listening {
  const method = body === undefined ? 'GET' : 'POST';
  const events = createInbox<SseEvent>();
  const listened = { method, after, status: 0, events: events.items, text: '', isWhole: false } as const;
  const state: { -readonly [K in keyof Listened]: Listened[K] } = { ...listened };
  const request = httpRequest(url, {
    method,
    agent: false,
    headers: {
      Accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
      ...(method === 'POST' && { 'Content-Type': 'application/json' }),
      ...headers,
      ...(after !== undefined && { 'Last-Event-ID': after }),
    },
  });
  let tellOpened: (listened: Listened) => void = () => undefined;
  const opened = new Promise<Listened>((resolve) => {
    tellOpened = resolve;
  });
  const ended = new Promise<Listened>((resolve) => {
    request.on('close', () => {
      events.end();
      tellOpened(state);
      resolve(state);
    });
  });
  request.on('error', () => undefined); // `close` and `isWhole` report it
  request.on('response', (response) => {
    state.status = response.statusCode ?? 0;
    const isStream = /^text\/event-stream\b/.test(response.headers['content-type'] ?? '');
    const read = createSseReader({
      onEvent: (event) => {
        onEvent?.(event);
        events.push(event);
      },
      onComment: () => undefined,
    });
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      if (isStream) read(chunk);
      else state.text += chunk;
    });
    response.on('end', () => {
      state.isWhole = response.complete;
    });
    response.on('error', () => undefined);
    tellOpened(state);
  });
  request.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
  return { listened: state, events, opened, ended, drop: () => void request.destroy() };
}

/** The end of a client that follows a stream. */
export interface Followed {
  readonly transcript: readonly Listened[];
  /**
   * `done`: the event that it waited for has come. `json`: the answer was no stream. `lost`: the connection broke
   * before an event id had come, so that there is nothing to resume. `refused`: an answer that is neither.
   */
  readonly outcome: 'done' | 'json' | 'lost' | 'refused';
  /** The id of the last event that had one. */
  readonly lastEventId: string | undefined;
}

export interface FollowOptions extends ListenOptions {
  /** True for the event that the client waits for. */
  isLast(event: SseEvent): boolean;
  /** Called before each new connection after the first; the client stays away until it resolves. */
  stayAway?(connections: number): Promise<void> | undefined;
  /** Leave the connection when the last event has come, instead of reading to the end. */
  readonly leavesAtLast?: boolean;
  readonly deadlineMs?: number;
}

/**
 * Follows a stream like a good client. When the connection ends, the client reconnects by GET with the id of the last
 * event, until the expected event has arrived.
 */
export async function follow(url: string, options: FollowOptions): Promise<Followed> {
  const { headers, body, isLast, stayAway, leavesAtLast = false, deadlineMs = 60_000 } = options;
  const transcript: Listened[] = [];
  let lastEventId = options.after;
  let isDone = false;
  const result = (outcome: Followed['outcome']): Followed => ({ transcript, outcome, lastEventId });
  for (;;) {
    const isFirst = transcript.length === 0;
    if (!isFirst) await stayAway?.(transcript.length);
    const listening = listen(url, {
      headers,
      ...(isFirst && body !== undefined && { body }),
      after: lastEventId,
      onEvent: (event) => {
        if (event.id !== undefined) lastEventId = event.id;
        if (!isLast(event)) return;
        isDone = true;
        if (leavesAtLast) listening.drop();
      },
    });
    const waiting: Waiting = { deadlineMs, what: `the end of connection ${transcript.length} from ${lastEventId} on` };
    const listened = await withDeadline(listening.ended, waiting);
    transcript.push(listened);
    if (isDone) return result('done');
    // A connection that broke before its head is tried again. A GET changes nothing, so that is safe.
    if (listened.status === 0 && listened.method === 'GET') continue;
    if (listened.status === 200 && listened.text !== '' && listened.isWhole) return result('json');
    if (listened.status !== 200 && listened.status !== 0) return result('refused');
    if (lastEventId === undefined && listened.method === 'POST') return result('lost');
  }
}

/** True for an event that holds a response: the last one of the answer to a request. */
export const isResponse = ({ data }: SseEvent): boolean =>
  data !== undefined && data !== '' && isResponseMessage(JSON.parse(data));

const isResponseMessage = (message: Message): boolean => message.result !== undefined || message.error !== undefined;
