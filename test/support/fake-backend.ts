import type {
  Backend,
  BackendEnd,
  BackendEvents,
  OpenBackend,
  OpenOptions,
  RequestIds,
} from '../../src/core/backend/backend.ts';
import type { Reason } from '../../src/core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../src/core/protocol/http/forwarded-headers.ts';
import { type Message, readBody } from '../../src/core/protocol/message/message.ts';
import { readSmallTexts } from '../../src/core/protocol/message/server-texts.ts';
import { toText } from './as-message.ts';
import { createInbox, type Inbox } from './wait-for.ts';

/** A backend without a process that a test controls. It keeps the promises of `Backend`, and no more. */
export interface FakeBackend extends Backend {
  /** The received messages, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  readonly sent: Inbox<any>;
  /** The headers of the received messages. */
  readonly headers: readonly (ForwardedHeaders | undefined)[];
  readonly isPaused: boolean;
  /** The number of pauses. */
  readonly pauses: number;
  readonly isClosed: boolean;
  /** From now on, `close` waits until the returned function is called. */
  holdClose(): () => void;
  /** Sets the result of `send`. */
  answerToSend: 'sent' | 'full' | 'ended';
  /** Emits lines in one burst: values as JSON, text and bytes unchanged. */
  says(...lines: readonly unknown[]): void;
  /** Like `says`, related to these requests. */
  saysBeside(of: RequestIds, ...lines: readonly unknown[]): void;
  /** The options with which the backend was opened. */
  readonly openedWith: OpenOptions | undefined;
  /** Reports that these requests will not be answered, and continues. */
  leaves(ids: RequestIds, reason: Reason, isFinal?: boolean): void;
  /** Reports its resume state. */
  tells(state: string): void;
  /** Ends by itself. */
  ends(end?: Partial<BackendEnd>): void;
}

/** A server whose backends are all fake. */
export interface FakeServer {
  readonly open: OpenBackend;
  /** All backends opened so far, oldest first. */
  readonly opened: readonly FakeBackend[];
  /** The backends that are neither closed nor ended. */
  readonly living: readonly FakeBackend[];
  /** The newest backend. */
  readonly backend: FakeBackend;
}

/** Creates a server. `onSend` answers messages to any of its backends; it also gets their text. */
export function createFakeServer(
  onSend?: (message: Record<string, unknown>, backend: FakeBackend, text: string) => void,
): FakeServer {
  const opened: FakeBackend[] = [];
  const ended = new Set<FakeBackend>();
  return {
    opened,
    get living() {
      return opened.filter((backend) => !ended.has(backend));
    },
    get backend() {
      const newest = opened.at(-1);
      if (newest === undefined) throw new Error('no backend was opened');
      return newest;
    },
    open(events, options) {
      const backend = createFakeBackend(1000 + opened.length, events, options, {
        onSend: (message, text) => onSend?.(message, backend, text),
        onEnd: () => ended.add(backend),
      });
      opened.push(backend);
      return backend;
    },
  };
}

interface Listeners {
  onSend(message: Record<string, unknown>, text: string): void;
  onEnd(): void;
}

function createFakeBackend(
  pid: number,
  events: BackendEvents,
  openedWith: OpenOptions | undefined,
  { onSend, onEnd }: Listeners,
): FakeBackend {
  const sent = createInbox<Record<string, unknown>>();
  const headers: (ForwardedHeaders | undefined)[] = [];
  let pauses = 0;
  let isPaused = false;
  let isClosed = false;
  let hasEnded = false;
  let closing: Promise<void> = Promise.resolve();

  const end = (told: BackendEnd): void => {
    if (hasEnded) return;
    hasEnded = true;
    onEnd();
    events.onEnd(told);
  };

  const report = (lines: readonly unknown[], relatedRequests?: RequestIds): void => {
    if (hasEnded || isClosed) return;
    const { messages, noise } = readSmallTexts(lines.map(toText));
    for (const text of noise) events.onNoise(text);
    if (messages.length > 0) events.onMessages(messages, relatedRequests);
  };

  const backend: FakeBackend = {
    pid,
    sent,
    headers,
    openedWith,
    answerToSend: 'sent',
    get isPaused() {
      return isPaused;
    },
    get pauses() {
      return pauses;
    },
    get isClosed() {
      return isClosed;
    },
    send(message, brought) {
      if (hasEnded || isClosed) return 'ended';
      if (backend.answerToSend !== 'sent') return backend.answerToSend;
      const text = message.text.toString();
      const parsed = JSON.parse(text) as Record<string, unknown>;
      headers.push(brought);
      sent.push(parsed);
      onSend(parsed, text);
      return 'sent';
    },
    pause() {
      pauses += 1;
      isPaused = true;
    },
    resume() {
      isPaused = false;
    },
    async close() {
      isClosed = true;
      await closing; // the end is reported outside this call
      end({ reason: 'closed', detail: 'The gateway closed the connection or process of the server.' });
    },
    holdClose() {
      let letGo: () => void = () => undefined;
      closing = new Promise((resolve) => {
        letGo = resolve;
      });
      return () => letGo();
    },
    says(...lines) {
      report(lines);
    },
    saysBeside(of, ...lines) {
      report(lines, of);
    },
    leaves: (ids, reason, isFinal) => events.onUnanswered(ids, reason, isFinal),
    tells: (state) => events.onState?.(state),
    ends: (told = {}) => end({ reason: 'exited', detail: 'It exited with code 1.', ...told }),
  };
  return backend;
}

/** A JSON-RPC message as the gateway reads it. */
export function readMessage(value: unknown): Message {
  const body = readBody(toText(value), 100);
  const [read] = body.ok ? body.messages : [];
  if (read?.ok !== true) throw new Error(`not a message: ${JSON.stringify(value)}`);
  return read.message;
}
