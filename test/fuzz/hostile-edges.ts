import type { Backend, BackendEvents, OpenBackend } from '../../src/core/backend/backend.ts';
import { linkBackends } from '../../src/core/backend/link/link.ts';
import { readSmallTexts } from '../../src/core/protocol/message/server-texts.ts';
import { flattenLineBreaks, LineSplitter } from '../../src/core/protocol/wire/lines.ts';
import { openModernHttp } from '../../src/features/remote/modern-http/modern-http-backend.ts';
import { openSse } from '../../src/features/remote/sse/sse-backend.ts';
import { openStreamableHttp } from '../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { openWebSocket } from '../../src/features/websocket/backend/websocket-backend.ts';
import { type React, reactNow, reactWith, read } from './fake-sockets.ts';
import { honest, type Step, textOf } from './hostile-texts.ts';

/** The kinds of backends, each as far as the socket or pipe below it. */
export type Kind = 'lines' | 'http' | 'sse' | 'modern-http' | 'websocket';

/** A hostile server that does what its steps say. */
export interface Hostile {
  readonly open: OpenBackend;
  /** Ends all that was opened, and all that is opened from now on. */
  end(): Promise<void>;
}

/** How many texts each kind of server has said, and how many messages of these came through the code for its kind. */
const heardOf = new Map<Kind, { said: number; received: number }>();

const countsOf = (kind: Kind): { said: number; received: number } => {
  const counts = heardOf.get(kind) ?? { said: 0, received: 0 };
  heardOf.set(kind, counts);
  return counts;
};

/** The events, with the messages in them counted. */
const countReceived = (events: BackendEvents, counts: { received: number }): BackendEvents => ({
  onMessages(messages, relatedRequests) {
    counts.received += messages.length;
    events.onMessages(messages, relatedRequests);
  },
  onNoise: (text) => events.onNoise(text),
  onUnanswered: (...args) => events.onUnanswered(...args),
  onState: (state) => events.onState?.(state),
  onEnd: (end) => events.onEnd(end),
});

/** Throws if nothing that servers of this kind said has come through since the last call: the cases tried nothing. */
export function expectHeard(kind: Kind): void {
  const { said, received } = countsOf(kind);
  heardOf.delete(kind);
  if (said === 0 || received === 0)
    throw new Error(`servers of the kind ${kind} said ${said} texts, of which ${received} messages came through`);
}

/** A server that does these steps at the messages that it gets. Until `honestUntil` is among them, it does what is right. */
export function createHostile(kind: Kind, steps: readonly Step[], honestUntil?: string): Hostile {
  let next = 0;
  let isHonest = honestUntil !== undefined;
  const counts = countsOf(kind);
  const react: React = (heard, say) => {
    if (heard.method === undefined) return;
    if (heard.method === honestUntil) isHonest = false;
    const step = isHonest ? honest : (steps[next++ % steps.length] as Step);
    if (isHonest && heard.id === undefined) return;
    counts.said += step.sayings.length;
    say(
      step.sayings.map((saying) => textOf(saying, heard)),
      step.way,
    );
  };
  reactWith(react);
  const opened: Backend[] = [];
  let isOver = false;
  const open = linkBackends((events, options) => {
    const backend = openers[kind](countReceived(events, counts), options);
    opened.push(backend);
    if (isOver) queueMicrotask(() => void backend.close());
    return backend;
  }, []);
  return {
    open,
    async end() {
      isOver = true;
      for (let n = 0; n < opened.length; n++) await opened[n]?.close();
    },
  };
}

/** A pipe, as STDIO servers and those on sockets have it. */
const openLines: OpenBackend = (events) => {
  const splitter = new LineSplitter({ maxLineBytes: 100_000 });
  const react = reactNow();
  let isOver = false;
  const end = (detail: string): void => {
    if (isOver) return;
    isOver = true;
    events.onEnd({ reason: detail === 'closed' ? 'closed' : 'exited', detail });
  };
  return {
    pid: undefined,
    send(message) {
      if (isOver) return 'ended';
      const heard = read(message.text);
      queueMicrotask(() =>
        react(heard, (texts, way) => {
          if (isOver) return;
          const bytes = Buffer.concat(texts.flatMap((text) => [text, Buffer.from('\n')]));
          const at = way % (bytes.length + 1);
          for (const chunk of [bytes.subarray(0, at), bytes.subarray(at)]) {
            const { messages, noise } = readSmallTexts(splitter.push(chunk).map(flattenLineBreaks));
            if (!isOver) for (const text of noise) events.onNoise(text);
            if (!isOver && messages.length > 0) events.onMessages(messages);
          }
          if (way % 50 === 49) end('exited');
        }),
      );
      return 'sent';
    },
    pause: () => undefined,
    resume: () => undefined,
    async close() {
      await null;
      end('closed');
    },
  };
};

const limits = { maxLineBytes: 100_000, connectTimeoutMs: 2 ** 30, postTimeoutMs: 2 ** 30 };
const url = new URL('http://hostile.test/mcp');

const openers: Readonly<Record<Kind, OpenBackend>> = {
  lines: openLines,
  http: (events, options) => openStreamableHttp({ ...limits, url }, events, options),
  sse: (events, options) => openSse({ ...limits, url, endpointTimeoutMs: 2 ** 30 }, events, options),
  'modern-http': (events) => openModernHttp({ ...limits, url, version: '1' }, events),
  websocket: (events, options) =>
    openWebSocket({ ...limits, url: new URL('ws://hostile.test/'), heartbeatMs: 2 ** 30 }, events, options),
};
