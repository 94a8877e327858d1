import type { Reason, RequestId } from '../../src/core/protocol/faults.ts';
import type { Accepts } from '../../src/core/protocol/http/media-types.ts';
import { formatEventId } from '../../src/core/protocol/wire/event-id.ts';
import type { EventSink, Headers, Reply, RequestFacts } from '../../src/core/reply/reply.ts';
import { messagesOf } from './http-client.ts';
import { createSseReader, type SseEvent } from './sse-reader.ts';
import { createInbox, type Inbox } from './wait-for.ts';

/** An event stream without a connection. */
export interface FakeSink extends EventSink {
  /** The events written, as a client reads them. */
  readonly events: Inbox<SseEvent>;
  /** The messages in them. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  readonly messages: readonly any[];
  /** The ids of them. */
  readonly ids: readonly string[];
  /** The end that each write announced, if any. */
  readonly places: readonly (string | undefined)[];
  readonly state: 'open' | 'ended' | 'cut' | 'left';
  /** The result of `write`: false while the client does not read. */
  keepsUp: boolean;
  /** The client reads again. */
  drain(): void;
  /** The client's connection breaks. */
  leave(): void;
}

/** The answer of a reply. */
export type Given =
  | {
      readonly kind: 'json';
      // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
      readonly json: any;
      readonly text: string;
      readonly headers: Headers | undefined;
      readonly status?: number;
    }
  | { readonly kind: 'accepted' | 'nothing' | 'removed' }
  | {
      readonly kind: 'fault';
      readonly reason: Reason;
      readonly id: RequestId | null;
      readonly data?: Record<string, unknown>;
    }
  | { readonly kind: 'stream'; readonly sink: FakeSink; readonly headers: Headers | undefined };

/** A reply without a connection. It throws at a second answer. */
export interface FakeReply extends Reply {
  /** The answer; undefined before the answer. */
  readonly given: Given | undefined;
  /** Resolves with the answer. */
  answered(): Promise<Given>;
  /** The sink of the answer; throws if the answer is not a stream. */
  readonly sink: FakeSink;
  /** The client's connection breaks. */
  leave(): void;
}

export const acceptsBoth: Accepts = { json: true, sse: true };
export const acceptsJson: Accepts = { json: true, sse: false };
export const acceptsSse: Accepts = { json: false, sse: true };

/** Creates an open sink. `onWrite` receives each text when it is written. */
export function createFakeSink(onWrite?: (text: string) => void): FakeSink {
  const events = createInbox<SseEvent>();
  const read = createSseReader({ onEvent: events.push, onComment: () => undefined });
  const drainListeners: (() => void)[] = [];
  const closeListeners: (() => void)[] = [];
  const places: (string | undefined)[] = [];
  let state: FakeSink['state'] = 'open';

  const close = (how: 'ended' | 'cut' | 'left'): void => {
    if (state !== 'open') return;
    state = how;
    events.end();
    const tell = (): void => {
      for (const listener of closeListeners.splice(0)) listener();
    };
    // Node.js reports a socket that we close later, never inside the call that closes it.
    if (how === 'left') tell();
    else queueMicrotask(tell);
  };

  const sink: FakeSink = {
    events,
    places,
    keepsUp: true,
    get state() {
      return state;
    },
    get messages() {
      return messagesOf(events.items);
    },
    get ids() {
      return events.items.map(({ id }) => id).filter((id) => id !== undefined);
    },
    write(batch) {
      if (state === 'ended') throw new Error('written after the end');
      if (state !== 'open') return false;
      const text = batch.text.toString();
      onWrite?.(text);
      places.push(batch.at && formatEventId(batch.at.stream, batch.at));
      read(text);
      return sink.keepsUp;
    },
    onDrain: (listener) => void drainListeners.push(listener),
    onClose: (listener) => void closeListeners.push(listener),
    end: () => close('ended'),
    cut: () => close('cut'),
    drain() {
      sink.keepsUp = true;
      for (const listener of drainListeners) listener();
    },
    leave: () => close('left'),
  };
  return sink;
}

/** Creates a reply that waits for its answer. */
export function createFakeReply(accepts: Accepts = acceptsBoth, facts: Partial<RequestFacts> = {}): FakeReply {
  const answers = createInbox<Given>();
  const goneListeners: (() => void)[] = [];
  let isGone = false;

  const give = (given: Given): void => {
    if (isGone) return;
    if (answers.items.length > 0) throw new Error(`answered twice: ${answers.items[0]?.kind}, then ${given.kind}`);
    answers.push(given);
  };
  const goOnce = (): void => {
    if (isGone) return;
    isGone = true;
    for (const listener of goneListeners.splice(0)) listener();
  };

  const reply: FakeReply = {
    request: { accepts, ...facts },
    get isGone() {
      return isGone;
    },
    get given() {
      return answers.items[0];
    },
    answered: async () => answers.items[0] ?? answers.next(),
    get sink() {
      const [given] = answers.items;
      if (given?.kind !== 'stream') throw new Error(`the answer is ${given?.kind ?? 'not there'} and no stream`);
      return given.sink;
    },
    onGone: (listener) => void goneListeners.push(listener),
    answer(answer) {
      if (answer.kind === 'fault') {
        const { reason, id, data } = answer;
        give({ kind: 'fault', reason, id, ...(data && { data }) });
      } else if (answer.kind === 'json') {
        const { headers, status } = answer;
        const text = answer.text.toString();
        give({ kind: 'json', json: JSON.parse(text), text, headers, ...(status !== undefined && { status }) });
      } else give(answer);
    },
    stream(headers) {
      const sink = createFakeSink();
      sink.onClose(() => {
        if (sink.state !== 'ended') goOnce(); // a completely sent answer does not count as gone
      });
      give({ kind: 'stream', sink, headers });
      return sink;
    },
    leave() {
      const [given] = answers.items;
      if (given === undefined) goOnce();
      else if (given.kind === 'stream') given.sink.leave();
    },
  };
  return reply;
}
