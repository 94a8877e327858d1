import { Answer, type AnswerTarget, legacyPolicy } from '../call/answer.ts';
import type { OpeningAnswer } from '../call/call-answer.ts';
import { type Call, failCall } from '../call/session-calls.ts';
import { isAnswerTooLarge, readHandshake, withLegacyRevision } from '../protocol/handshake.ts';
import { errorCodeIn } from '../protocol/json.ts';
import { changedMessage } from '../protocol/message/changed-message.ts';
import { type Message, readGatewayMessage, requestId } from '../protocol/message/message.ts';
import { createMessageBatch } from '../reply/event-batch.ts';
import type { EventSink, Headers, Reply, RequestFacts } from '../reply/reply.ts';
import { SessionExists } from '../store/session-records.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import { TimeLimit } from '../util/timing/time-limit.ts';
import { endCall } from './end-reason.ts';
import type { Inbound } from './inbound/inbound.ts';
import { eventText } from './outbound/logged-target.ts';
import type { Outbound } from './outbound/outbound.ts';
import type { SessionLog } from './outbound/session-log.ts';
import type { ServerLink } from './server/server-link.ts';
import type { SessionCore } from './session-core.ts';

/** The parts of the session that is opened. */
export interface OpeningParts {
  readonly link: ServerLink;
  readonly log: SessionLog;
  readonly outbound: Outbound;
  readonly inbound: Inbound;
}

/**
 * Opens a session: starts its server, passes the client's `initialize` on, stores the record, and answers. It is dropped
 * when the client has its answer.
 */
export class SessionOpening {
  /** The error code with which the server refused `initialize`. */
  refusalCode: number | undefined;
  readonly #session: SessionCore;
  readonly #parts: OpeningParts;
  readonly #initialize: Message;
  readonly #facts: RequestFacts;
  readonly #answer: OpeningAnswer;
  readonly #startedAt = performance.now();
  readonly #startLimit: TimeLimit;
  /** Settles when the client has its answer, or the session has ended. Undefined before the server's answer. */
  #completed: Promise<void> | undefined;

  /** @param headers of a successful answer */
  constructor(session: SessionCore, parts: OpeningParts, reply: Reply, headers: Headers | undefined) {
    const { startTimeoutMs } = session.parts.server;
    const { outbound, inbound } = parts;
    this.#session = session;
    this.#parts = parts;
    this.#startLimit = new TimeLimit(() => session.endFor('server_start_timeout'), startTimeoutMs);
    const initialize = readGatewayMessage(session.client.initialize);
    const id = requestId(initialize);
    const { commitAfterMs } = session.limits;
    const options = { policy: legacyPolicy, reply, ids: [id], commitAfterMs, headers };
    this.#answer = inbound.oneStream?.opening(id, reply) ?? new Answer(new OpeningTarget(session, outbound), options);
    this.#initialize = initialize;
    this.#facts = reply.request;
  }

  /** Starts the server, and passes `initialize` on. */
  begin(): void {
    const { link, inbound } = this.#parts;
    link.open();
    inbound.call([this.#initialize], this.#answer, this.#facts);
  }

  /**
   * The server has answered `initialize`.
   * @param onCompleted the client has its answer
   */
  answered(call: Call, response: Message, onCompleted: () => void): void {
    this.close();
    this.#completed = this.#complete(call, response).then(onCompleted);
    detach('session', this.#completed, () => this.#session.endFor('internal'));
  }

  /** Resolves when the answer of the server is stored, and the client has it. At once while there is none. */
  async whenCompleted(): Promise<void> {
    await this.#completed?.catch(() => undefined); // reported where it began
  }

  /** The session ends. */
  close(): void {
    this.#startLimit.clear();
  }

  /** Only after this the session exists for other requests. */
  async #complete(call: Call, received: Message): Promise<void> {
    const session = this.#session;
    const text = withLegacyRevision(received.text);
    const response = text === received.text ? received : changedMessage(received, text, {});
    const handshake = readHandshake(response.text);
    if (handshake === undefined) return this.#refuse(call, response);
    // A signal of its own: a session that is stored late must not lose its store.
    const givesUp = (): AbortSignal => AbortSignal.timeout(session.limits.storeWaitMs);
    try {
      await session.createRecord(response.text, handshake.protocolVersion, givesUp);
    } catch (cause) {
      // If the key was not made here, only the store knows whether another session has or had it.
      const isTaken = session.client.isGroup && cause instanceof SessionExists;
      const reason = cause instanceof StoreUnavailable ? 'store_unavailable' : 'internal';
      if (!isTaken) session.report(cause);
      failCall(call, isTaken ? 'already_initialized' : reason);
      session.endFor(isTaken ? 'refused' : reason);
      return;
    }
    if (session.endReason !== undefined) {
      endCall(call, session.endReason);
      await session.endRecord(); // the end did not know of the record
      return;
    }
    session.handshake = handshake;
    session.parts.server.introduction?.note(response.text);
    session.ready();
    call.report?.answered(response);
    this.#answer.response(response);
    this.#parts.log.open();
    this.#reportStart();
  }

  /** The server has refused the session, or its answer cannot be kept. */
  #refuse(call: Call, response: Message): void {
    const { text } = response;
    if (isAnswerTooLarge(text)) {
      call.report?.failed('handshake_too_large');
      this.#answer.fault('handshake_too_large', undefined, call.id);
    } else {
      call.report?.answered(response);
      this.#answer.refused(response);
    }
    this.refusalCode = errorCodeIn(text);
    this.#session.endFor('refused');
  }

  #reportStart(): void {
    const { parts, name, protocolVersion } = this.#session;
    const startMs = Math.round(performance.now() - this.#startedAt);
    parts.telemetry.emit({ type: 'session-started', name, protocolVersion, startMs, pid: this.#parts.link.pid });
  }
}

/**
 * The stream of the answer to `initialize`, which cannot be resumed. Before that answer the session has no record to
 * log events in, so they are sent without an id (P5). The server is paused while the client does not keep up, since no
 * other limit bounds the bytes that wait for the client.
 */
class OpeningTarget implements AnswerTarget {
  readonly isLogged = false;
  readonly #session: SessionCore;
  readonly #outbound: Outbound;
  #sink: EventSink | undefined;

  constructor(session: SessionCore, outbound: Outbound) {
    this.#session = session;
    this.#outbound = outbound;
  }

  open(answer: Answer): void {
    this.#sink = answer.connect();
    this.#sink?.onDrain(() => this.#outbound.setHeld(false));
  }

  write({ text }: Pick<Message, 'text'>): boolean {
    if (this.#sink?.write(createMessageBatch(text)) === false) this.#outbound.setHeld(true);
    return true;
  }

  respond(response: Message, isLast: boolean): void {
    this.write({ text: eventText(response, this.#session.limits.maxEventBytes) });
    if (!isLast) return;
    this.#sink?.end();
    this.#outbound.setHeld(false); // a response that has ended reports no drain
  }

  undeliverable(): void {
    this.#session.drop('undeliverable');
  }
}
