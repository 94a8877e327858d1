import { Answer } from '../call/answer.ts';
import type { OpeningAnswer } from '../call/call-answer.ts';
import { LiveTarget } from '../call/live-target.ts';
import { type Call, failCall } from '../call/session-calls.ts';
import type { RequestId } from '../protocol/faults.ts';
import { isAnswerTooLarge, readHandshake, withLegacyRevision } from '../protocol/handshake.ts';
import { nextOwnId } from '../protocol/ids/own-ids.ts';
import { errorCodeIn } from '../protocol/json.ts';
import { changedMessage } from '../protocol/message/changed-message.ts';
import { type Message, readGatewayMessage, requestId } from '../protocol/message/message.ts';
import {
  accepted,
  type CompleteAnswer,
  faultAnswer,
  type Headers,
  type Reply,
  type RequestFacts,
} from '../reply/reply.ts';
import { getStream } from '../store/event-log.ts';
import { SessionExists } from '../store/session-records.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import { TimeLimit } from '../util/timing/time-limit.ts';
import { endCall } from './end-reason.ts';
import type { Inbound } from './inbound/inbound.ts';
import { eventText } from './outbound/logged-target.ts';
import type { SessionLog } from './outbound/session-log.ts';
import type { ServerLink } from './server/server-link.ts';
import type { SessionCore } from './session-core.ts';

/** The id of an `initialize` that the gateway sends for a client that sends none. Its answer is not for the client. */
export const ownInitializeId = nextOwnId();

/**
 * Opens a session: starts its server, passes the client's `initialize` on, stores the record, and answers. It is dropped
 * when the client has its answer.
 */
export class SessionOpening {
  /** The error code with which the server refused `initialize`. */
  refusalCode: number | undefined;
  readonly #session: SessionCore;
  readonly #link: ServerLink;
  readonly #log: SessionLog;
  readonly #inbound: Inbound;
  readonly #initialize: Message;
  readonly #facts: RequestFacts;
  readonly #answer: OpeningAnswer;
  readonly #startedAt = performance.now();
  readonly #startLimit: TimeLimit;
  /** Settles when the client has its answer, or the session has ended. Undefined before the server's answer. */
  #completed: Promise<void> | undefined;

  /**
   * @param parts of the session that is opened
   * @param headers of a successful answer
   */
  constructor(
    session: SessionCore,
    parts: { readonly link: ServerLink; readonly log: SessionLog; readonly inbound: Inbound },
    reply: Reply,
    headers: Headers | undefined,
  ) {
    const { startTimeoutMs } = session.parts.server;
    this.#session = session;
    this.#link = parts.link;
    this.#log = parts.log;
    this.#inbound = parts.inbound;
    this.#startLimit = new TimeLimit(() => session.endFor('server_start_timeout'), startTimeoutMs);
    const initialize = readGatewayMessage(session.client.initialize);
    const id = requestId(initialize);
    const { commitAfterMs, slowReaderMs } = session.limits;
    // Before this answer the session has no record to log events in, so they are sent without an id (P5).
    this.#answer = session.client.isOneStream
      ? openingOnStream(session, parts.log, id, reply)
      : new Answer(new LiveTarget(slowReaderMs), { era: 'legacy', reply, ids: [id], commitAfterMs, headers });
    this.#initialize = initialize;
    this.#facts = reply.request;
  }

  /** Starts the server, and passes `initialize` on. */
  begin(): void {
    this.#link.open();
    this.#inbound.call([this.#initialize], this.#answer, this.#facts);
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
    this.#log.open();
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
    parts.telemetry.emit({ type: 'session-started', name, protocolVersion, startMs, pid: this.#link.pid });
  }
}

/**
 * The answer to `initialize` for a client that gets everything on one stream, over HTTP+SSE or on a WebSocket. It goes to
 * that stream, and the request is only told whether the session exists.
 */
function openingOnStream(session: SessionCore, log: SessionLog, id: RequestId, reply: Reply): OpeningAnswer {
  let isAnswered = false;
  const answer = (what: CompleteAnswer): void => {
    if (isAnswered) return;
    isAnswered = true;
    reply.answer(what);
  };
  return {
    stream: undefined,
    hasStream: false, // earlier server messages are kept for the GET stream, within its limits
    message: ({ text }) => {
      log.add(getStream, text, false);
      return true;
    },
    response: (response) => {
      const text = eventText(response, session.limits.maxEventBytes);
      if (id !== ownInitializeId) log.add(getStream, text, false);
      answer(accepted);
    },
    refused: ({ text }) => answer({ kind: 'json', text }),
    fault: (reason) => answer({ ...faultAnswer(reason, id), isReported: true }),
  };
}
