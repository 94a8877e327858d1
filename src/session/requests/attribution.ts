import type { RequestIds } from '../../backend/backend.ts';
import { type Call, failCall, type StreamTarget } from '../../call/session-calls.ts';
import { taskStatus } from '../../call/tasks.ts';
import { faultData, type Message } from '../../protocol/message/message.ts';
import { readProgressValue } from '../../protocol/message/progress-value.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import type { BackendSupervisor } from '../backend/supervisor.ts';
import type { UnsolicitedSink } from '../client/client-policy.ts';
import { getStream } from '../events/cursor.ts';
import type { EventDelivery } from '../events/delivery.ts';
import type { SessionContext } from '../session-context.ts';
import type { SessionDropReason } from '../session-events.ts';
import type { OpeningHandler } from './opening-answer.ts';
import { ServerRequests } from './server-requests.ts';

/** Brings each server message to the answer or stream where it belongs (P2), with its text unchanged (P1). */
export class Attribution implements UnsolicitedSink {
  readonly #context: SessionContext;
  readonly #supervisor: BackendSupervisor;
  readonly #delivery: EventDelivery;
  readonly #opening: OpeningHandler;

  constructor(
    context: SessionContext,
    supervisor: BackendSupervisor,
    delivery: EventDelivery,
    opening: OpeningHandler,
  ) {
    this.#context = context;
    this.#supervisor = supervisor;
    this.#delivery = delivery;
    this.#opening = opening;
    const { earlyRoots } = context;
    if (earlyRoots !== undefined) earlyRoots.onAsk = (request, call) => this.#ask(request, call);
  }

  /** Passes a request on that no message of the server causes now. */
  #ask(request: Message, call: Call): void {
    this.#forwardRequest(request, call, undefined);
    this.#delivery.flush();
  }

  /** Receives one message of the server. */
  receive(message: Message, relatedRequests: RequestIds | undefined): void {
    this.#context.calls.areIdentified = relatedRequests !== undefined;
    if (message.kind === 'response') this.#routeResponse(message);
    else this.#route(message, relatedRequests);
  }

  /** Sends a server message to its destination. */
  send(destination: StreamTarget, message: Message): void {
    if (destination === 'get') this.#context.policy.deliverUnsolicited(message, this);
    else destination.answer.message(message);
  }

  addToGetStream(text: Buffer): void {
    this.#delivery.add(getStream, text, false);
  }

  drop(reason: SessionDropReason, text: Buffer): void {
    this.#context.drop(reason, text);
  }

  /** The server was replaced: its clients are told to refresh their lists. */
  reportReplacement(changes: readonly Buffer[]): void {
    this.#context.policy.reportReplacement(changes, this);
  }

  #routeResponse(response: Message): void {
    const { text } = response;
    const { calls } = this.#context;
    const call = calls.take(response.id);
    call?.report?.responseReceived();
    const { standIn } = response;
    if (call !== undefined && standIn?.reason === 'bad_response')
      this.#context.drop('bad_response', standIn.written, 1, { method: call.method, problem: standIn.problem });
    if (call === undefined) this.drop('unknown_response', text);
    else if (call.method === 'initialize') this.#opening.answered(call, response);
    else if (standIn !== undefined) failCall(call, standIn.reason, faultData(standIn));
    else {
      if (call.taskNews !== undefined) calls.tasks.answered(call.taskNews, call.taskId, text);
      this.#noteAnswer(call, response);
      call.answer.response(response);
      // An answer in the log is sent only once it is stored (P5). The wait for that is part of the gateway's time.
      if (call.report !== undefined && call.answer.stream !== undefined)
        this.#delivery.whenStored(() => call.report?.answered(response));
      else call.report?.answered(response);
    }
  }

  /** A call has its answer. The state that the call changed is kept for a restore. */
  #noteAnswer({ method, request }: Call, response: Message): void {
    const { client, proof, record, reruns } = this.#context;
    if (method !== 'ping') this.#context.answeredCalls += 1;
    proof?.confirm();
    if (request !== undefined && client.noteAnswered(method, request.text, response)) record.amend();
    reruns.answered(method, response.text);
  }

  #route(message: Message, relatedRequests: RequestIds | undefined): void {
    const { calls, serverRequests, policy } = this.#context;
    if (message.standIn !== undefined) {
      this.drop('oversized', message.text);
      this.#supervisor.send(ServerRequests.refusal(message));
      return;
    }
    const isPing = message.kind === 'request' && message.method === 'ping';
    // There is no client to ask, or one that cannot answer yet: it does not know its session, or the session is hidden.
    if (isPing && (policy.isShared || this.#context.handshake === undefined)) {
      this.#supervisor.send(ServerRequests.pong(message));
      return;
    }
    const cancelled = serverRequests.cancelledBy(message);
    if (cancelled !== undefined) {
      this.send(cancelled.destination, cancelled.cancellation);
      return;
    }
    if (calls.isLate(message)) {
      this.drop('late', message.text);
      return;
    }
    if (message.kind === 'request' && this.#context.earlyRoots?.keeps(message)) return;
    const destination = policy.attribute(message, calls, this.#delivery.streams.hasGet, relatedRequests);
    if (destination === 'unwanted' || destination === 'nobodys') {
      if (destination === 'nobodys') this.drop('unattributable', message.text);
      if (message.kind === 'request') this.#supervisor.send(ServerRequests.refusal(message));
      return;
    }
    // Some servers drop a session whose ping is unanswered, and a client need not listen to a GET stream.
    if (isPing && destination === 'get' && !policy.hasOneStream && !this.#delivery.streams.hasGet) {
      this.#supervisor.send(ServerRequests.pong(message));
      return;
    }
    if (message.method === taskStatus) calls.tasks.update(message);
    if (message.progressToken !== undefined) calls.noteProgress(message.progressToken);
    const dropReason = this.#findDropReason(message, destination);
    if (dropReason !== undefined) this.drop(dropReason, message.text);
    if (message.kind === 'request')
      this.#forwardRequest(message, dropReason === undefined ? destination : undefined, relatedRequests);
    else if (dropReason === undefined && this.#isNewProgress(message, destination))
      this.send(destination, calls.underClientToken(message));
  }

  /** The reason why a message cannot be passed on; undefined if it can. */
  #findDropReason({ text }: Message, destination: StreamTarget): SessionDropReason | undefined {
    const { limits, policy } = this.#context;
    if (text.length > limits.maxEventBytes) return 'oversized';
    const isFull = destination === 'get' && !policy.isShared && !this.#delivery.hasRoom;
    return isFull ? 'undeliverable' : undefined;
  }

  /** Passes a request from the server on, or refuses it, so that the server does not wait. */
  #forwardRequest(
    message: Message,
    destination: StreamTarget | undefined,
    relatedRequests: RequestIds | undefined,
  ): void {
    const { incarnation } = this.#supervisor;
    const forClient = destination && this.#context.serverRequests.add(message, incarnation, destination);
    if (destination === undefined || forClient === undefined) {
      this.#supervisor.send(ServerRequests.refusal(message));
      return;
    }
    this.#markRequesters(message, destination, relatedRequests);
    this.send(destination, forClient);
  }

  /**
   * Marks the calls that may have caused a server request: the known call, or every call that can. A marked call is
   * never run again, since it would ask twice.
   */
  #markRequesters(message: Message, destination: StreamTarget, relatedRequests: RequestIds = []): void {
    if (message.method === 'ping') return;
    if (destination !== 'get') destination.hasAsked = true;
    if (destination !== 'get' && relatedRequests.includes(destination.id)) return;
    for (const call of this.#context.calls.all()) if (methodOf(call.method).mayAsk) call.hasAsked = true;
  }

  /** False for progress of a rerun call, up to the point that its client has seen. */
  #isNewProgress(message: Message, destination: StreamTarget): boolean {
    if (destination === 'get' || message.progressToken === undefined || destination.request === undefined) return true;
    const progress = readProgressValue(message.text);
    const { lastProgress, rerunAfter } = destination;
    if (rerunAfter !== undefined && lastProgress !== undefined && progress <= lastProgress) return false;
    destination.lastProgress = progress;
    return true;
  }
}
