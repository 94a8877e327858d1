// src/core/http/replies: the ways in which a session answers an HTTP request.
import type { ServerResponse } from 'node:http';
import { isUpstreamRefusal } from '../../protocol/http/upstream-challenge.ts';
import { keepAliveComment } from '../../protocol/wire/sse.ts';
import type { EventBatch } from '../../reply/event-batch.ts';
import type { CompleteAnswer, EventSink, FaultAnswer, Headers, Reply, RequestFacts } from '../../reply/reply.ts';
import { contain } from '../../util/boundary.ts';
import type { ConnectionMeters } from '../connection-events.ts';
import type { HttpContext } from '../http-context.ts';
import { respondWithJson, sendHead } from '../respond.ts';

/** Without this header, Node.js would announce a chunked body. */
const noBody = { 'content-length': 0 };

/**
 * A client with fewer unsent bytes keeps up. The limit of Node.js is 16 KiB, which one burst exceeds. Events beyond the
 * limit are read from the log later. The limit bounds the memory for a client that does not read (P8).
 */
const unsentBytes = 128 * 1024;

/** Times of a reply, and the number of open streams. */
export interface ReplyTimes {
  /** Interval of the comments on an idle stream. */
  readonly heartbeatMs: number;
  readonly meters?: Pick<ConnectionMeters, 'streams'> | undefined;
}

/** A session's reply on a Node.js response: a class, since every request gets one. */
export class HttpReply implements Reply {
  protected readonly context: HttpContext;
  protected readonly outgoing: ServerResponse;
  readonly #times: ReplyTimes;

  constructor(context: HttpContext, times: ReplyTimes) {
    this.context = context;
    this.outgoing = context.outgoing;
    this.#times = times;
  }

  get request(): RequestFacts {
    return this.context;
  }

  get isGone(): boolean {
    return this.outgoing.destroyed;
  }

  onGone(listener: () => void): void {
    const { context, outgoing } = this;
    context.whenClosed(() => {
      if (!outgoing.writableFinished || context.hasFailed) contain('request', listener);
    });
  }

  answer(answer: CompleteAnswer): void {
    switch (answer.kind) {
      case 'json':
        return respondWithJson(this.outgoing, answer.status ?? 200, answer.text, answer.headers);
      case 'accepted':
        sendHead(this.outgoing, 202, noBody).end();
        return;
      case 'removed':
        sendHead(this.outgoing, 200, noBody).end();
        return;
      case 'nothing':
        sendHead(this.outgoing, 204).end();
        return;
      case 'fault':
        return this.#fault(answer);
      default:
        answer satisfies never; // a new kind of answer does not compile, here and wherever else kinds are told apart
    }
  }

  #fault({ reason, id, data, isReported = false }: FaultAnswer): void {
    this.context.hasReportedCalls = isReported;
    if (isUpstreamRefusal(reason)) this.context.passChallenge(reason, id, data);
    else this.context.respondWithFault(reason, id, data);
  }

  stream(headers?: Headers): EventSink {
    return new HttpEventStream(this.outgoing, this.#times, headers);
  }
}

/** Calls back when the response is closed, also if it is closed already. */
export function whenClosed(outgoing: ServerResponse, listener: () => void): void {
  if (outgoing.destroyed) queueMicrotask(listener);
  else outgoing.on('close', listener);
}

/** Returns a random time up to this: thousands of streams that opened together must not all write at once. */
const randomizeInterval = (ms: number): number => Math.ceil(ms * (0.7 + 0.3 * Math.random()));

/**
 * The head of a stream waits this long for the first event, in milliseconds. If this instance were killed between the
 * two, the client would have a stream that it cannot resume, and would wait in vain.
 */
const firstEventMs = 250;

/** The event stream of an HTTP response. It sends its head with its first event, and comments while it is idle. */
export class HttpEventStream implements EventSink {
  readonly #outgoing: ServerResponse;
  #keepAlive: NodeJS.Timeout;
  #hasBegun = false;

  constructor(outgoing: ServerResponse, times: ReplyTimes, headers?: Headers) {
    this.#outgoing = outgoing;
    sendHead(outgoing, 200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no', // nginx would hold events back
      ...headers,
    });
    this.#keepAlive = setTimeout(() => {
      if (!this.#hasBegun) this.#comment();
      this.#keepAlive = setInterval(() => this.#comment(), randomizeInterval(times.heartbeatMs));
    }, firstEventMs);
    const streams = times.meters?.streams;
    streams?.add(1);
    whenClosed(outgoing, () => {
      clearTimeout(this.#keepAlive);
      streams?.add(-1);
    });
  }

  write(batch: EventBatch): boolean {
    return this.writeText(batch.text);
  }

  /** Some clients, proxies and browsers report an open stream only after its first byte. */
  #comment(): void {
    if (!this.#outgoing.writableNeedDrain) this.#outgoing.write(keepAliveComment);
  }

  /** Writes the SSE text of whole events; returns like `write`. */
  writeText(text: Buffer): boolean {
    this.#hasBegun = true;
    return this.#outgoing.write(text) || this.#outgoing.writableLength < unsentBytes;
  }

  onDrain(listener: () => void): void {
    this.#outgoing.on('drain', () => contain('request', listener, () => this.#outgoing.destroy()));
  }

  onClose(listener: () => void): void {
    whenClosed(this.#outgoing, () => contain('request', listener));
  }

  end(): void {
    clearTimeout(this.#keepAlive);
    this.#outgoing.end();
  }

  cut(): void {
    this.#outgoing.destroy();
  }
}
