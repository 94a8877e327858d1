import type { RequestIds } from '../../backend/backend.ts';
import { type Call, type CallTable, failCall, type StreamTarget } from '../../call/call-table.ts';
import { mayRequestInput } from '../../call/rerun.ts';
import { taskStatus } from '../../call/tasks.ts';
import { type Message, maxServerDepth, readBody } from '../../protocol/message/message.ts';
import { readProgressValue } from '../../protocol/message/progress-value.ts';
import type { ServerLine } from '../events/backpressure.ts';
import { attributeInGroup } from '../group/attribution.ts';
import type { SessionDropReason } from '../session-observer.ts';
import { ServerRequests } from './server-requests.ts';

/** What routing needs of its session. */
export interface AttributionOptions {
  readonly calls: CallTable;
  readonly serverRequests: ServerRequests;
  readonly maxEventBytes: number;
  /** The calls are those of a group's clients. */
  readonly isGroup: boolean;
  /** Which of the session's backends speaks; empty for the very first one. */
  incarnation(): string;
  /** A call is about to be answered with this response. */
  onAnswered(call: Call, response: Message): void;
  /** True if a client listens to the GET stream. */
  hasGetStream(): boolean;
  /** False if nothing more can be kept for the GET stream. */
  hasRoom(): boolean;
  /** Adds a message to the GET stream. */
  toGetStream(text: Buffer): void;
  /** Answers the server itself, in place of its client. */
  toServer(text: Buffer): void;
  /** The response to `initialize`, which decides what becomes of the session. */
  onInitialized(call: Call, response: Message): void;
  onDropped(what: SessionDropReason, text?: Buffer): void;
  /** As `Outbound.whenStored`. */
  whenStored(tell: () => void): void;
}

/** Brings each message of the server to the answer or stream where it belongs (P2), as the text that it is (P1). */
export class Attribution {
  /** The server's transport tells for which request a message is. */
  identifiesRequests = false;
  readonly #options: AttributionOptions;

  constructor(options: AttributionOptions) {
    this.#options = options;
  }

  /**
   * Takes one line of the server. An array is taken apart: only 2025-03-26 has batches, but in any revision dropping one
   * would leave its requests without an answer.
   */
  receive({ text: line, relatedRequests: of }: ServerLine): void {
    this.identifiesRequests = of !== undefined;
    const body = readBody(line, maxServerDepth);
    const messages = body.ok ? body.messages : [];
    if (messages.length === 0) this.#options.onDropped('noise', line);
    for (const read of messages) {
      if (!read.ok) this.#options.onDropped('noise', line);
      else if (read.message.kind === 'response') this.#routeResponse(read.message);
      else this.#route(read.message, of);
    }
  }

  /** Sends what the server has said to where it belongs. */
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
      // What goes to the log is not on its way before it is there (P5), and the wait for that is the gateway's.
      if (call.report !== undefined && call.answer.stream !== undefined)
        whenStored(() => call.report?.answered(response));
      else call.report?.answered(response);
    }
  }

  #route(message: Message, of: RequestIds | undefined): void {
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
    const destination = isGroup ? attributeInGroup(message, calls, of) : calls.attribute(message, hasGetStream(), of);
    if (destination === 'unwanted' || destination === 'nobodys') {
      if (destination === 'nobodys') onDropped('unattributable', message.text);
      if (message.kind === 'request') toServer(ServerRequests.refusal(message));
      return;
    }
    if (message.method === taskStatus) calls.tasks.update(message);
    if (message.progressToken !== undefined) calls.noteProgress(message.progressToken);
    const fault = this.#faultOf(message, destination);
    if (fault !== undefined) onDropped(fault, message.text);
    if (message.kind === 'request') this.#ask(message, fault === undefined ? destination : undefined, of);
    else if (fault === undefined && this.#isNews(message, destination)) this.send(destination, message.text);
  }

  /** Why a message cannot be passed on, if it cannot. */
  #faultOf({ text }: Message, destination: StreamTarget): SessionDropReason | undefined {
    if (text.length > this.#options.maxEventBytes) return 'oversized';
    return destination === 'get' && !this.#options.hasRoom() ? 'undeliverable' : undefined;
  }

  /** Passes a request of the server on, or refuses it, so that the server does not wait. */
  #ask(message: Message, destination: StreamTarget | undefined, of: RequestIds | undefined): void {
    const { serverRequests, incarnation, toServer } = this.#options;
    const text = destination && serverRequests.add(message, incarnation(), destination);
    if (destination === undefined || text === undefined) {
      toServer(ServerRequests.refusal(message));
      return;
    }
    this.#noteAsked(message, destination, of);
    this.send(destination, text);
  }

  /** Notes who may have asked: where that is not known, all calls that can ask. One that did must not ask twice. */
  #noteAsked(message: Message, destination: StreamTarget, of: RequestIds = []): void {
    if (message.method === 'ping') return;
    if (destination !== 'get') destination.hasAsked = true;
    if (destination !== 'get' && of.includes(destination.id)) return;
    for (const call of this.#options.calls.all()) if (mayRequestInput(call.method)) call.hasAsked = true;
  }

  /** False for progress of a call that is run again, up to where its client was told before. */
  #isNews(message: Message, destination: StreamTarget): boolean {
    if (destination === 'get' || message.progressToken === undefined || destination.text === undefined) return true;
    const progress = readProgressValue(message.text);
    const { lastProgress, rerunAfter } = destination;
    if (rerunAfter !== undefined && lastProgress !== undefined && progress <= lastProgress) return false;
    destination.lastProgress = progress;
    return true;
  }
}
