import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { whenClosed } from '../../../core/http/replies/http-reply.ts';
import { challengeTo, isUpstreamRefusal } from '../../../core/protocol/http/upstream-challenge.ts';
import type { EventBatch } from '../../../core/reply/event-batch.ts';
import type { CompleteAnswer, EventSink, FaultAnswer, Headers, RequestFacts } from '../../../core/reply/reply.ts';
import { contain } from '../../../core/util/boundary.ts';
import {
  beat,
  type Denial,
  type PeerCall,
  type PeerFailure,
  type PeerListener,
  type PeerReply,
  type PeerRequest,
  type Ping,
} from './peer-request.ts';

/**
 * A response between instances. Its first header says what the body is: the text of a JSON answer, the events of a
 * stream, the JSON of a fault, or nothing.
 */
const kindHeader = 'gangway-answer';
/** JSON in base64: the further headers and the status that the client gets. */
const extrasHeader = 'gangway-extras';
/** The trailer of a stream that another instance continues. */
const movedTrailer = 'gangway-moved';
/** The status of all requests on a connection whose other side has not proven the secret. The kind is the reason. */
const refusedStatus = 403;

type Kind = CompleteAnswer['kind'] | Denial | 'stream';

/** As with clients: an ingress with fewer unsent bytes keeps up. Later events are read from the log (P8). */
const unsentBytes = 128 * 1024;

/** Copying a larger text costs more than it saves. */
const maxTextBytes = 8 * 1024;

/** The owner's side: writes answers and events straight to the response. */
export class HttpPeerReply implements PeerReply {
  readonly request: RequestFacts;
  readonly isContinued: boolean;
  readonly #outgoing: ServerResponse;

  constructor(asked: PeerRequest | Ping, outgoing: ServerResponse) {
    this.request = asked.request;
    this.isContinued = asked.kind === 'listen' && asked.continues === true;
    this.#outgoing = outgoing;
  }

  get isGone(): boolean {
    return this.#outgoing.destroyed;
  }

  onGone(listener: () => void): void {
    const outgoing = this.#outgoing;
    whenClosed(outgoing, () => {
      if (!outgoing.writableFinished) contain('request', listener);
    });
  }

  answer(answer: CompleteAnswer): void {
    switch (answer.kind) {
      case 'json':
        return this.#end('json', answer.text, answer);
      case 'accepted':
      case 'removed':
      case 'nothing':
        return this.#end(answer.kind, noText);
      case 'fault':
        return this.#fault(answer);
      default:
        answer satisfies never; // an answer with members of its own has to bring them along
    }
  }

  #fault(answer: FaultAnswer): void {
    const { forwarded } = this.request;
    // The ingress makes a header of the challenge, and removes it from the data.
    const wwwAuthenticate = isUpstreamRefusal(answer.reason) ? challengeTo(forwarded)?.wwwAuthenticate : undefined;
    const data = wwwAuthenticate === undefined ? answer.data : { ...answer.data, wwwAuthenticate };
    this.#end('fault', Buffer.from(JSON.stringify({ ...answer, ...(data && { data }) })));
  }

  deny(why: Denial): void {
    this.#end(why, noText);
  }

  /** Shows the ingress that this request is under way, and that its connection passes bytes on. */
  beat(): void {
    const outgoing = this.#outgoing;
    if (outgoing.writableEnded || outgoing.destroyed || outgoing.writableLength > 0) return;
    if (outgoing.headersSent) outgoing.write(beat);
    else outgoing.writeProcessing();
  }

  stream(headers?: Headers): EventSink {
    const outgoing = this.#outgoing;
    outgoing.writeHead(200, { [kindHeader]: 'stream', ...extrasOf({ headers }) });
    // The first event is usually written in this turn, and then needs no packet of its own.
    setImmediate(() => outgoing.flushHeaders());
    return {
      write: (batch: EventBatch) => outgoing.write(batch.text) || outgoing.writableLength < unsentBytes,
      onDrain: (listener) => {
        outgoing.on('drain', () => contain('request', listener, () => outgoing.destroy()));
      },
      onClose: (listener) => whenClosed(outgoing, () => contain('request', listener)),
      handOver: () => {
        outgoing.addTrailers({ [movedTrailer]: '1' });
        outgoing.end();
      },
      end: () => {
        outgoing.end();
      },
      cut: () => {
        outgoing.destroy();
      },
    };
  }

  #end(kind: Kind, text: Buffer, extras: Extras = {}): void {
    const outgoing = this.#outgoing;
    outgoing.writeHead(200, { [kindHeader]: kind, 'content-length': text.length, ...extrasOf(extras) });
    // Node.js sends a string together with the head, and a buffer separately; in Latin-1 each byte is itself.
    if (text.length > maxTextBytes) outgoing.end(text);
    else outgoing.end(text.toString('latin1'), 'latin1');
  }
}

const noText = Buffer.alloc(0);

interface Extras {
  readonly headers?: Headers | undefined;
  readonly status?: number | undefined;
}

function extrasOf({ headers, status }: Extras): Headers {
  if (headers === undefined && (status === undefined || status === 200)) return {};
  return { [extrasHeader]: Buffer.from(JSON.stringify({ headers, status })).toString('base64') };
}

/** The response to whatever comes on a connection that is not served. */
export const refusalOf = (why: string): string =>
  `HTTP/1.1 ${refusedStatus} Forbidden\r\n${kindHeader}: ${why}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`;

/** The ingress's side: reads the response of an owner for a listener. */
export class ResponseReader implements PeerCall, Dispatcher.DispatchHandlers {
  isSent = false;
  /** The time since something arrived on its connection, in milliseconds. */
  silentMs = 0;
  /** Called whenever something arrives. */
  onHeard: (() => void) | undefined;
  /** Called once when the call is over. */
  onOver: (() => void) | undefined;
  readonly #listener: PeerListener;
  readonly #onRefused: (why: string) => void;
  #isOver = false;
  #kind: Kind | undefined;
  #extras: Extras = {};
  #parts: Buffer[] = [];
  #abort: ((cause?: Error) => void) | undefined;
  #resume: (() => void) | undefined;
  #isPaused = false;

  constructor(listener: PeerListener, onRefused: (why: string) => void) {
    this.#listener = listener;
    this.#onRefused = onRefused;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  resume(): void {
    this.#isPaused = false;
    this.#resume?.();
  }

  /** Counts the time in which nothing arrived, although it could have. */
  countSilence(ms: number): void {
    if (this.isSent && !this.#isPaused) this.silentMs += ms;
  }

  abort(): void {
    this.#finish();
    this.#abort?.();
  }

  /** Ends the call, because the owner is out of reach. */
  fail(why: PeerFailure): void {
    if (this.#isOver) return;
    this.abort();
    this.#listener.failed(why);
  }

  onConnect(abort: (cause?: Error) => void): void {
    this.#abort = abort;
    if (this.#isOver) abort();
    else this.isSent = true;
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    this.#resume = resume;
    this.#hear();
    if (status < 200 || this.#isOver) return true;
    let kind = '';
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at]?.toString('latin1').toLowerCase();
      const value = rawHeaders[at + 1]?.toString('latin1') ?? '';
      if (name === kindHeader) kind = value;
      else if (name === extrasHeader) this.#extras = JSON.parse(Buffer.from(value, 'base64').toString());
    }
    if (status !== 200) {
      this.#onRefused(kind);
      this.fail('refused');
      return true;
    }
    this.#kind = kind as Kind;
    if (this.#kind === 'stream') this.#listener.opened(this.#extras.headers);
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#isOver) return true;
    this.#hear();
    if (this.#kind !== 'stream') {
      this.#parts.push(chunk);
      return true;
    }
    this.#isPaused = !this.#listener.received(chunk);
    return !this.#isPaused;
  }

  onComplete(trailers: string[] | null): void {
    if (this.#isOver) return;
    this.#finish();
    const text = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    switch (this.#kind) {
      case 'stream':
        return this.#listener.ended((trailers ?? []).some((name) => String(name).toLowerCase() === movedTrailer));
      case 'moved':
      case 'ending':
        return this.#listener.denied(this.#kind);
      case 'json':
        return this.#listener.answered({ kind: 'json', text, ...this.#extras });
      case 'fault':
        return this.#listener.answered(JSON.parse(text.toString()));
      case undefined:
        return this.#listener.failed('lost');
      default:
        this.#listener.answered({ kind: this.#kind });
    }
  }

  onError(): void {
    this.fail(this.isSent ? 'lost' : 'unsent');
  }

  #hear(): void {
    this.silentMs = 0;
    this.onHeard?.();
  }

  #finish(): void {
    this.#isOver = true;
    this.onOver?.();
    this.onOver = undefined;
  }
}
