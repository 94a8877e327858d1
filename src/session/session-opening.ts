import type { OpeningAnswer } from '../call/call-answer.ts';
import { type Call, failCall } from '../call/session-calls.ts';
import { isAnswerTooLarge, readHandshake, withLegacyRevision } from '../protocol/handshake.ts';
import { errorCodeIn } from '../protocol/json/splice.ts';
import { changedMessage, type Message, readGatewayMessage } from '../protocol/message/message.ts';
import type { Headers, Reply } from '../reply/reply.ts';
import { SessionExists } from '../store/session-records.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import { TimeLimit } from '../util/timing/time-limit.ts';
import type { BackendSupervisor } from './backend/supervisor.ts';
import { endCall } from './end-reason.ts';
import type { EventDelivery } from './events/delivery.ts';
import type { OneStream } from './events/one-stream.ts';
import { type ClientRequests, requestId } from './requests/client-requests.ts';
import { createOpeningAnswer, type OpeningHandler } from './requests/opening-answer.ts';
import type { SessionContext } from './session-context.ts';

/** Opens a session: starts its server, passes the client's `initialize` on, stores the record, and answers. */
export class SessionOpening implements OpeningHandler {
  /** The error code with which the server refused `initialize`. */
  refusalCode: number | undefined;
  readonly startedAt = performance.now();
  readonly #context: SessionContext;
  readonly #supervisor: BackendSupervisor;
  readonly #delivery: EventDelivery;
  readonly #requests: ClientRequests;
  readonly #oneStream: OneStream | undefined;
  #answer: OpeningAnswer | undefined;
  #startLimit: TimeLimit | undefined;
  /** Settles when the client has its answer, or the session has ended. Undefined before the server's answer. */
  #completed: Promise<void> | undefined;

  constructor(
    context: SessionContext,
    supervisor: BackendSupervisor,
    delivery: EventDelivery,
    requests: ClientRequests,
    oneStream: OneStream | undefined,
  ) {
    this.#context = context;
    this.#supervisor = supervisor;
    this.#delivery = delivery;
    this.#requests = requests;
    this.#oneStream = oneStream;
  }

  /**
   * Starts the server, passes `initialize` on with its headers, and answers it.
   * @param headers of a successful answer
   */
  start(reply: Reply, headers?: Headers): void {
    const context = this.#context;
    const { startTimeoutMs } = context.parts.server;
    this.#startLimit = new TimeLimit(() => context.end('server_start_timeout'), startTimeoutMs);
    const initialize = readGatewayMessage(context.client.initialize);
    const id = requestId(initialize);
    this.#answer =
      this.#oneStream?.opening(id, reply) ?? createOpeningAnswer(context, this.#delivery, id, reply, headers);
    this.#supervisor.open();
    this.#requests.call([initialize], this.#answer, reply.request);
  }

  /** The server has answered `initialize`. */
  answered(call: Call, response: Message): void {
    const answer = this.#answer as OpeningAnswer;
    this.close();
    this.#answer = undefined; // frees the client's request too
    this.#completed = this.#complete(answer, call, response);
    detach('session', this.#completed, () => this.#context.end('internal'));
  }

  /** Resolves when the answer of the server is stored, and the client has it. At once while there is none. */
  async whenCompleted(): Promise<void> {
    await this.#completed?.catch(() => undefined); // reported where it began
    this.#completed = undefined;
  }

  /** The session ends. */
  close(): void {
    this.#startLimit?.clear();
    this.#startLimit = undefined; // frees what its callback refers to
  }

  /** Only after this the session exists for other requests. */
  async #complete(answer: OpeningAnswer, call: Call, received: Message): Promise<void> {
    const context = this.#context;
    const text = withLegacyRevision(received.text);
    const response = text === received.text ? received : changedMessage(received, text, {});
    const handshake = readHandshake(response.text);
    if (handshake === undefined) {
      this.#refuse(answer, call, response);
      return;
    }
    context.protocolVersion = handshake.protocolVersion;
    // A signal of its own: a session that is stored late must not lose its store.
    const givesUp = (): AbortSignal => AbortSignal.timeout(context.limits.storeWaitMs);
    try {
      await context.record.create(response.text, handshake.protocolVersion, givesUp);
    } catch (cause) {
      // If the key was not made here, only the store knows whether another session has or had it.
      const isTaken = context.client.isGroup && cause instanceof SessionExists;
      const reason = cause instanceof StoreUnavailable ? 'store_unavailable' : 'internal';
      if (!isTaken) context.report(cause);
      failCall(call, isTaken ? 'already_initialized' : reason);
      context.end(isTaken ? 'refused' : reason);
      return;
    }
    if (context.endReason !== undefined) {
      endCall(call, context.endReason);
      await context.record.end(); // the end did not know of the record
      return;
    }
    context.handshake = handshake;
    context.parts.server.introduction?.note(response.text);
    context.owner.ready();
    call.report?.answered(response);
    answer.response(response);
    this.#delivery.open();
    this.#reportStart();
  }

  /** The server has refused the session, or its answer cannot be kept. */
  #refuse(answer: OpeningAnswer, call: Call, response: Message): void {
    const { text } = response;
    if (isAnswerTooLarge(text)) {
      call.report?.failed('handshake_too_large');
      answer.fault('handshake_too_large', undefined, call.id);
    } else {
      call.report?.answered(response);
      answer.refused(response);
    }
    this.refusalCode = errorCodeIn(text);
    this.#context.end('refused');
  }

  #reportStart(): void {
    const { parts, name, protocolVersion } = this.#context;
    const startMs = Math.round(performance.now() - this.startedAt);
    parts.telemetry.emit({ type: 'session-started', name, protocolVersion, startMs, pid: this.#supervisor.pid });
  }
}
