import type { ServerResponse } from 'node:http';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { Accepts } from '../../protocol/http/media-types.ts';
import { keepAliveComment } from '../../protocol/wire/sse.ts';
import type { EventSink, Headers, Reply } from '../../reply/reply.ts';
import { contain } from '../../util/boundary.ts';
import type { ConnectionObserver } from '../connection-observer.ts';
import type { AdmittedRequest } from '../pipeline/admission.ts';
import { receivedAt } from '../pipeline/refused-calls.ts';
import { requestIdOf } from '../pipeline/request-log-fields.ts';
import { hasFailed, respondWithFault, respondWithJson } from '../respond.ts';

/** Without it, Node.js would announce a chunked body. */
const noBody = { 'content-length': 0, 'x-content-type-options': 'nosniff' };
const noContent = { 'x-content-type-options': 'nosniff' };

/** A smaller answer is with the operating system as soon as it is written, and holds nothing here. */
const pipeBytes = 64 * 1024;

/**
 * A client with less than this on its way keeps up: Node.js says so only below 16 KiB, which one burst exceeds, and what does
 * not go out at once is read from the log again. What a client that does not read holds here (P8).
 */
const unsentBytes = 128 * 1024;

/** Times of a reply, and who is told of its stream. */
export interface ReplyTimes {
  /** How often an idle stream gets a comment. */
  readonly keepAliveMs: number;
  /** How long a client may leave the rest of a complete answer unread. */
  readonly slowReaderMs: number;
  readonly traffic?: Pick<ConnectionObserver, 'onStream'> | undefined;
}

/** A session's reply on a Node.js response: a class, since every request gets one. */
export class HttpReply implements Reply {
  readonly accepts: Accepts;
  readonly forwarded: Reply['forwarded'];
  readonly scopes: Reply['scopes'];
  readonly needs: Reply['needs'];
  protected readonly outgoing: ServerResponse;
  readonly #times: ReplyTimes;

  /** @param needs the scopes that the request needs, which the session remembers (`UsedScopes`) */
  constructor(
    outgoing: ServerResponse,
    accepts: Accepts,
    times: ReplyTimes,
    sender: AdmittedRequest,
    needs?: readonly string[] | undefined,
  ) {
    this.accepts = accepts;
    this.forwarded = sender.forwarded;
    this.scopes = sender.identity.scopes;
    this.needs = needs;
    this.outgoing = outgoing;
    this.#times = times;
  }

  get receivedAt(): number | undefined {
    return receivedAt(this.outgoing.req);
  }

  get requestId(): string | undefined {
    return requestIdOf(this.outgoing.req);
  }

  get isGone(): boolean {
    return this.outgoing.destroyed;
  }

  onGone(listener: () => void): void {
    const { outgoing } = this;
    outgoing.once('close', () => {
      if (!outgoing.writableFinished || hasFailed(outgoing)) contain('request', listener);
    });
  }

  json(text: Buffer, headers?: Headers, status = 200): void {
    if (text.length > pipeBytes) abortIfUnread(this.outgoing, this.#times);
    respondWithJson(this.outgoing, status, text, headers);
  }

  accepted(): void {
    this.outgoing.writeHead(202, noBody).end();
  }

  removed(): void {
    this.outgoing.writeHead(200, noBody).end();
  }

  nothing(): void {
    this.outgoing.writeHead(204, noContent).end();
  }

  fault(reason: Reason, id: RequestId | null, data?: Record<string, unknown>): void {
    respondWithFault(this.outgoing, reason, id, data);
  }

  stream(headers?: Headers): EventSink {
    return openEventStream(this.outgoing, this.#times, headers);
  }
}

/**
 * Call it before the end of an answer: a client that never reads the rest would hold it, and its socket, for ever (P8).
 * The time starts again with every part that the client takes.
 */
function abortIfUnread(outgoing: ServerResponse, { slowReaderMs }: ReplyTimes): void {
  outgoing.setTimeout(slowReaderMs, () => outgoing.destroy());
}

/** At most this long, and for each stream another time: thousands that opened together must not all write at once. */
const spread = (ms: number): number => Math.ceil(ms * (0.7 + 0.3 * Math.random()));

/** Sends the head of an event stream and keeps the connection from looking idle. */
export function openEventStream(outgoing: ServerResponse, times: ReplyTimes, headers?: Headers): EventSink {
  outgoing.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-content-type-options': 'nosniff',
    'x-accel-buffering': 'no', // nginx would hold events back
    ...headers,
  });
  outgoing.flushHeaders();
  const keepAlive = setInterval(() => {
    if (!outgoing.writableNeedDrain) outgoing.write(keepAliveComment);
  }, spread(times.keepAliveMs));
  const onClosed = times.traffic?.onStream();
  outgoing.once('close', () => {
    clearInterval(keepAlive);
    onClosed?.();
  });
  return {
    write: (text) => outgoing.write(text) || outgoing.writableLength < unsentBytes,
    onDrain: (listener) => {
      outgoing.on('drain', () => contain('request', listener, () => outgoing.destroy()));
    },
    onClose: (listener) => {
      outgoing.once('close', () => contain('request', listener));
    },
    end() {
      clearInterval(keepAlive);
      abortIfUnread(outgoing, times);
      outgoing.end();
    },
    cut: () => {
      outgoing.destroy();
    },
  };
}
