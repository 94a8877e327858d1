import type { RequestIds } from '../../backend/backend.ts';
import { type Call, type CallTable, failCall, type StreamTarget } from '../../call/call-table.ts';
import { mayRequestInput } from '../../call/rerun.ts';
import { taskStatus } from '../../call/tasks.ts';
import type { Message } from '../../protocol/message/message.ts';
import { readProgressValue } from '../../protocol/message/progress-value.ts';
import { attributeInGroup } from '../group/attribution.ts';
import type { SessionDropReason } from '../session-events.ts';
import { ServerRequests } from './server-requests.ts';

/** Options of `Attribution`. */
export interface AttributionOptions {
  readonly calls: CallTable;
  readonly serverRequests: ServerRequests;
  readonly maxEventBytes: number;
  /** True if the calls belong to the clients of a group. */
  readonly isGroup: boolean;
  /** Identifies the session's current backend; empty for the very first one. */
  incarnation(): string;
  /** A call is about to be answered with this response. */
  onAnswered(call: Call, response: Message): void;
  /** True if a client listens to the GET stream. */
  hasGetStream(): boolean;
  /** False if nothing more can be kept for the GET stream. */
  hasRoom(): boolean;
  /** Adds a message to the GET stream. */
  toGetStream(text: Buffer): void;
  /** Answers the server in place of its client. */
  toServer(message: Message): void;
  /** The response to `initialize`, which decides the session's fate. */
  onInitialized(call: Call, response: Message): void;
  onDropped(what: SessionDropReason, text?: Buffer): void;
  /** As `EventDelivery.whenStored`. */
  whenStored(onStored: () => void): void;
}

/** Brings each server message to the answer or stream where it belongs (P2), with its text unchanged (P1). */
export class Attribution {
  /** True if the server's transport names the request that a message relates to. */
  identifiesRequests = false;
  readonly #options: AttributionOptions;

  constructor(options: AttributionOptions) {
    this.#options = options;
  }

  /** Receives one message of the server. */
  receive(message: Message, relatedRequests: RequestIds | undefined): void {
    this.identifiesRequests = relatedRequests !== undefined;
    if (message.kind === 'response') this.#routeResponse(message);
    else this.#route(message, relatedRequests);
  }

  /** Sends a server message to its destination. */
  send(destination: StreamTarget, text: Buffer): void {
    if (destination === 'get') this.#options.toGetStream(text);
    else destination.answer.message(text);
  }

  #routeResponse(response: Message): void {
    const { id, text } = response;
    const { calls, onInitialized, onAnswered, onDropped, whenStored } = this.#options;
    const call = id == null ? undefined : calls.take(id);
    call?.report?.responseReceived();
    if (call === undefined) onDropped('unknown_response', text);
    else if (call.method === 'initialize') onInitialized(call, response);
    else if (response.isStandIn) failCall(call, 'response_too_complex');
    else {
      if (call.taskNews !== undefined) calls.tasks.answered(call.taskNews, call.taskId, text);
      onAnswered(call, response);
      call.answer.response(call.id, text);
      // An answer in the log is sent only once it is stored (P5). The wait for that is part of the gateway's time.
      if (call.report !== undefined && call.answer.stream !== undefined)
        whenStored(() => call.report?.answered(response));
      else call.report?.answered(response);
    }
  }

  #route(message: Message, relatedRequests: RequestIds | undefined): void {
    const { calls, serverRequests, isGroup, hasGetStream, toServer, onDropped } = this.#options;
    if (message.isStandIn) {
      onDropped('oversized', message.text);
      toServer(ServerRequests.refusal(message));
      return;
    }
    if (isGroup && message.kind === 'request' && message.method === 'ping') {
      toServer(ServerRequests.pong(message)); // there is no client to ask
      return;
    }
    const cancelled = serverRequests.cancelledBy(message);
    if (cancelled !== undefined) {
      this.send(cancelled.destination, cancelled.text);
      return;
    }
    if (calls.isLate(message)) {
      onDropped('late', message.text);
      return;
    }
    const destination = isGroup
      ? attributeInGroup(message, calls, relatedRequests)
      : calls.attribute(message, hasGetStream(), relatedRequests);
    if (destination === 'unwanted' || destination === 'nobodys') {
      if (destination === 'nobodys') onDropped('unattributable', message.text);
      if (message.kind === 'request') toServer(ServerRequests.refusal(message));
      return;
    }
    if (message.method === taskStatus) calls.tasks.update(message);
    if (message.progressToken !== undefined) calls.noteProgress(message.progressToken);
    const dropReason = this.#findDropReason(message, destination);
    if (dropReason !== undefined) onDropped(dropReason, message.text);
    if (message.kind === 'request')
      this.#forwardRequest(message, dropReason === undefined ? destination : undefined, relatedRequests);
    else if (dropReason === undefined && this.#isNewProgress(message, destination))
      this.send(destination, message.text);
  }

  /** The reason why a message cannot be passed on; undefined if it can. */
  #findDropReason({ text }: Message, destination: StreamTarget): SessionDropReason | undefined {
    if (text.length > this.#options.maxEventBytes) return 'oversized';
    return destination === 'get' && !this.#options.hasRoom() ? 'undeliverable' : undefined;
  }

  /** Passes a request of the server on, or refuses it, so that the server does not wait. */
  #forwardRequest(
    message: Message,
    destination: StreamTarget | undefined,
    relatedRequests: RequestIds | undefined,
  ): void {
    const { serverRequests, incarnation, toServer } = this.#options;
    const text = destination && serverRequests.add(message, incarnation(), destination);
    if (destination === undefined || text === undefined) {
      toServer(ServerRequests.refusal(message));
      return;
    }
    this.#markRequesters(message, destination, relatedRequests);
    this.send(destination, text);
  }

  /**
   * Marks the calls that may have caused a server request: the known call, or every call that can. A marked call is
   * never run again, since it would ask twice.
   */
  #markRequesters(message: Message, destination: StreamTarget, relatedRequests: RequestIds = []): void {
    if (message.method === 'ping') return;
    if (destination !== 'get') destination.hasAsked = true;
    if (destination !== 'get' && relatedRequests.includes(destination.id)) return;
    for (const call of this.#options.calls.all()) if (mayRequestInput(call.method)) call.hasAsked = true;
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
