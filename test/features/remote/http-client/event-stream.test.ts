import { expect, onTestFinished, test, vi } from 'vitest';
import { Canceller } from '../../../../src/features/remote/http-client/canceller.ts';
import type { FollowOptions } from '../../../../src/features/remote/http-client/event-stream.ts';
import type { HttpResponse } from '../../../../src/features/remote/http-client/http-connection.ts';

const pauseMs = 3_000;
/** A stream that is followed for ever ends here. */
const maxAttempts = 1_000;

vi.mock('../../../../src/core/backend/reconnect-pause.ts', async (original) => ({
  ...(await original<object>()),
  pauseBeforeReconnect: async () => {
    vi.advanceTimersByTime(pauseMs);
    return true;
  },
}));

/** One connection of a stream: what it brings, and how it ends. */
interface Connection {
  readonly text?: string;
  readonly isCut?: boolean;
}

const responseOf = (connection: Connection): HttpResponse =>
  ({ status: 200, mediaType: 'text/event-stream', body: connection }) as unknown as HttpResponse;

/** Follows the answer to a POST, whose first connection brings an event. `resumed` says what the next ones bring. */
async function follow(first: Connection, resumed: (attempt: number) => Connection) {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const canceller = new Canceller();
  let attempts = 0;
  let messages = 0;
  const flow = {
    async read({ text, isCut }: Connection, onChunk: (chunk: Buffer) => void) {
      if (text !== undefined) onChunk(Buffer.from(text));
      if (isCut === true) throw new Error('reset');
    },
  };
  const { followEventStream } = await import('../../../../src/features/remote/http-client/event-stream.ts');
  const end = await followEventStream({
    flow: flow as unknown as FollowOptions['flow'],
    maxLineBytes: 1_000,
    canceller,
    isStandalone: false,
    first: responseOf(first),
    isComplete: () => messages === 2,
    onMessages: (more) => {
      messages += more.length;
    },
    onNoise: () => undefined,
    isForgotten: async () => false,
    async open() {
      if (attempts === maxAttempts) canceller.abort();
      return responseOf(resumed(++attempts));
    },
  });
  return { end, attempts };
}

const progress = 'id: 1\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n';
const answer = 'id: 2\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n';

test('the answer to a call that was cut, and is resumed with nothing each time, is lost after 15 s', async () => {
  expect(await follow({ text: progress, isCut: true }, () => ({}))).toEqual({
    end: { outcome: 'lost', reason: 'server_unreachable' },
    attempts: 5,
  });
});

test('a server that ends the stream of a call itself is asked until the answer comes, however long it takes', async () => {
  const comesAt = 100;
  expect(await follow({ text: progress }, (attempt) => (attempt === comesAt ? { text: answer } : {}))).toEqual({
    end: { outcome: 'complete' },
    attempts: comesAt,
  });
});

test('a connection that is cut again and again is resumed until the answer comes', async () => {
  const comesAt = 100;
  const resumed = (attempt: number) => (attempt === comesAt ? { text: answer } : { isCut: true });
  expect(await follow({ text: progress, isCut: true }, resumed)).toEqual({
    end: { outcome: 'complete' },
    attempts: comesAt,
  });
});
