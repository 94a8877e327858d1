import type { BackendEnd, QueuedMessage, RequestIds } from '../../backend/backend.ts';
import { type Call, failCall, type StreamTarget } from '../../call/session-calls.ts';
import { taskStatus } from '../../call/tasks.ts';
import type { Reason } from '../../protocol/faults.ts';
import { declaredListChanges, type Handshake } from '../../protocol/handshake.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { requestRefusal } from '../../protocol/message/gateway-fault.ts';
import { emptyResult, faultData, type Message, requestId } from '../../protocol/message/message.ts';
import { readProgressValue } from '../../protocol/message/progress-value.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { isClientRefused } from '../../server/server.ts';
import { getStream } from '../../store/event-log.ts';
import { detach } from '../../util/boundary.ts';
import { failedStartReason, lossReason } from '../end-reason.ts';
import type { ServerEvents, ServerLink, UnsentReason } from '../server/server-link.ts';
import type { SessionCore } from '../session-core.ts';
import type { SessionDropReason } from '../session-events.ts';
import type { SessionLog } from './session-log.ts';

/** What the server has sent and is not handled yet: messages from the next one on, or a state of the backend behind them. */
type Arrival =
  | { readonly messages: readonly Message[]; readonly relatedRequests: RequestIds | undefined; next: number }
  | { readonly state: string };

/**
 * The delay before a call with a broken POST is sent again. A server that stops breaks its connections one after the
 * other. If the backend is lost with them, its replacement gets the call.
 */
const resendDelayMs = 500;

/**
 * The way from the server to its client. Messages are handled in portions, in order: each goes to the answer or stream
 * where it belongs (P2), with its text unchanged (P1), and is stored before it is sent (P5). A portion is stored before
 * the next one is handled, and the server is paused while that is ahead (P8). A burst thus never reaches the log at once,
 * where it would evict events that a connected client has not been sent. At most the messages of one read of the pipe
 * wait here.
 *
 * Calls that the server will not answer run again, or end with the known outcome (P3).
 */
export class Outbound implements ServerEvents {
  readonly #session: SessionCore;
  readonly #link: ServerLink;
  readonly #log: SessionLog;
  /** Undefined for none. */
  #arrived: Arrival[] | undefined;
  /** True while a client lags too far behind. */
  #isHeld = false;
  #isRunning = false;
  #isPaused = false;
  #isFaulty = false;

  constructor(session: SessionCore, link: ServerLink, log: SessionLog) {
    this.#session = session;
    this.#link = link;
    this.#log = log;
    link.events = this;
    log.streams.onPressure = (isHigh) => this.#setHeld(isHigh);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    this.#take({ messages, relatedRequests, next: 0 });
  }

  onState(state: string): void {
    this.#take({ state });
  }

  onNoise(text: Buffer, more = 0): void {
    this.#session.drop('noise', text, 1 + more);
  }

  /** The backend goes on without answering these requests. */
  onUnanswered(ids: RequestIds, reason: Reason, isFinal = false): void {
    this.finish(); // earlier messages of the server come first
    const { calls, reruns } = this.#session;
    const mayRunAgain = !isFinal && (reason === 'server_unreachable' || reason === 'outcome_unknown');
    for (const call of ids.map((id) => calls.get(id)).filter((found) => found !== undefined)) {
      if (mayRunAgain && reruns.allows(call, 'broken_post')) this.#rerunSoon(call);
      else this.#failSent(call, reason);
    }
  }

  /** The server, or the store, was away for too long for this message. A call that runs again may have run before. */
  onUnsent(message: Message, reason: UnsentReason): void {
    const call = message.kind === 'request' ? this.#session.calls.get(requestId(message)) : undefined;
    if (call !== undefined) this.fail(call, call.rerunAfter === undefined ? reason : 'server_unreachable');
    else this.#session.drop('undeliverable');
  }

  /**
   * The backend has ended by itself. Calls that can be run again wait for the next backend. The others end now with the
   * known outcome (P3).
   */
  onLost(end: BackendEnd): void {
    const session = this.#session;
    const { parts, name, handshake, calls, serverRequests } = session;
    const isRefused = handshake === undefined && isClientRefused(end, parts.server);
    if (!isRefused) parts.telemetry.emit({ type: 'backend-ended', name, end, isAtStart: handshake === undefined });
    this.finish();
    calls.tasks.clear();
    this.#forgetCheckpoint();
    const reason = lossReason(end);
    if (isRefused) session.endFor('client_unauthorized');
    else if (handshake === undefined) session.endFor(failedStartReason(end));
    else if (parts.server.onBackendExit === 'end') session.endFor(reason);
    else {
      // Cancellations come first, while the stream of each server request can still be found.
      for (const { destination, cancellation } of serverRequests.cancelAll()) this.#send(destination, cancellation);
      const { undelivered = [] } = end;
      session.group?.noteLost();
      this.#endLostCalls(reason, undelivered);
      this.#log.flush();
      this.restore(undelivered);
    }
  }

  /** The new backend has replaced the lost one. The client is told to refresh its lists. */
  onRestored(): void {
    const { parts, name, calls, handshake, group } = this.#session;
    for (const { report } of calls.all()) report?.started();
    if (group !== undefined) group.noteRestored();
    else for (const change of declaredListChanges(handshake as Handshake)) this.#log.add(getStream, change, false);
    this.#log.flush();
    const { pid, restoration } = this.#link;
    parts.telemetry.emit({ type: 'backend-restored', name, pid, restoration });
  }

  /**
   * Starts the server again. Undelivered messages and calls that run again are queued before new messages of the client.
   * Responses of the client are dropped, since they belong to the lost backend.
   */
  restore(undelivered: readonly QueuedMessage[]): void {
    const { calls } = this.#session;
    this.#link.restore();
    for (const { report } of calls.all()) report?.awaitsStart();
    for (const { message, headers } of undelivered) {
      const { kind, id } = message;
      const call = calls.get(id);
      // The restore replays `initialized` itself.
      const isNotification = kind === 'notification' && message.method !== 'notifications/initialized';
      if (kind === 'request' ? call !== undefined : isNotification) this.#sendAgain(message, headers, call);
    }
    for (const call of calls.all())
      if (!undelivered.some(({ message }) => message.id === call.id)) this.#rerun(call, 'loss');
  }

  /** Ends a call with an error of the gateway, unless it was answered meanwhile. */
  fail(call: Call, reason: Reason): void {
    const { calls } = this.#session;
    if (!calls.holds(call)) return;
    calls.retire(call.id);
    failCall(call, reason);
    this.#log.flush();
  }

  /** Asks the client of a call what no message of the server causes now. */
  ask(request: Message, call: Call): void {
    this.#passRequest(request, call, undefined);
    this.#log.flush();
  }

  /** Stops handling the server's messages while a client lags too far behind, and continues when it has caught up. */
  #setHeld(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld) this.#pause(true);
    else if (!this.#isRunning) this.#run();
  }

  /** Handles the rest of the server's output, regardless of lagging clients: the server has ended, so no more will come. */
  finish(): void {
    if (this.#isFaulty) return;
    try {
      this.#handle(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
      detach('session', this.#log.storePortion());
    } catch (cause) {
      this.#stopFor(cause);
    }
  }

  #take(arrival: Arrival): void {
    if (this.#isFaulty) return;
    this.#arrived ??= [];
    this.#arrived.push(arrival);
    if (!this.#isRunning) this.#run();
  }

  #run(): void {
    this.#isRunning = true;
    try {
      while (this.#arrived !== undefined && !this.#isHeld) {
        const { messages, bytes } = this.#log.portion;
        this.#handle(messages, bytes);
        const stored = this.#log.storePortion();
        if (stored === undefined) continue;
        this.#pause(true);
        detach(
          'session',
          stored.then(() => this.#run()),
        );
        return;
      }
    } catch (cause) {
      this.#stopFor(cause);
    }
    this.#isRunning = false;
    this.#pause(this.#isHeld);
  }

  /** Handles what has arrived, in order: one message at least, and more until there were so many messages or bytes. */
  #handle(maxMessages: number, maxBytes: number): void {
    let count = 0;
    let bytes = 0;
    for (let arrival = this.#arrived?.[0]; arrival !== undefined; arrival = this.#arrived?.[0]) {
      if (count > 0 && (count >= maxMessages || bytes >= maxBytes)) return;
      count += 1;
      if ('state' in arrival) {
        this.#dropFirst();
        this.#noteCheckpoint(arrival.state);
        continue;
      }
      const message = arrival.messages[arrival.next] as Message;
      arrival.next += 1;
      if (arrival.next >= arrival.messages.length) this.#dropFirst();
      bytes += message.text.length;
      this.#receive(message, arrival.relatedRequests);
    }
  }

  /** The first arrival is handled completely with its message that is about to be. */
  #dropFirst(): void {
    this.#arrived?.shift();
    if (this.#arrived?.length === 0) this.#arrived = undefined;
  }

  #pause(isPaused: boolean): void {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#link.pause();
    else this.#link.resume();
  }

  /** Limits a fault in a server's message to its session. Nothing more is handled. */
  #stopFor(cause: unknown): void {
    if (this.#isFaulty) return;
    this.#isFaulty = true;
    this.#arrived = undefined;
    this.#session.fail(cause);
  }

  /**
   * Notes the state of the backend, with which another owner can resume the server's session (docs/design.md, D5). The
   * record gets it once the log has all earlier messages.
   */
  #noteCheckpoint(state: string): void {
    const { client } = this.#session;
    const { incarnation } = this.#link;
    const at = this.#log.position;
    this.#log.whenStored((isStored) => {
      if (!isStored || incarnation !== this.#link.incarnation) return; // another backend has replaced it
      client.backend = { state, at, isFirst: incarnation === '' };
      this.#session.amendRecord();
    });
  }

  #forgetCheckpoint(): void {
    const { client } = this.#session;
    if (client.backend === undefined) return;
    client.backend = undefined;
    this.#session.amendRecord();
  }

  #receive(message: Message, relatedRequests: RequestIds | undefined): void {
    this.#session.calls.areIdentified = relatedRequests !== undefined;
    if (message.kind === 'response') this.#routeResponse(message);
    else this.#route(message, relatedRequests);
  }

  #routeResponse(response: Message): void {
    const { calls } = this.#session;
    const call = calls.take(response.id);
    call?.report?.responseReceived();
    const { text, standIn } = response;
    if (call !== undefined && standIn?.reason === 'bad_response')
      this.#session.drop('bad_response', standIn.written, 1, { method: call.method, problem: standIn.problem });
    if (call === undefined) this.#session.drop('unknown_response', text);
    else if (call.method === 'initialize') this.#session.answerOpening(call, response);
    else if (standIn !== undefined) failCall(call, standIn.reason, faultData(standIn));
    else {
      if (call.taskNews !== undefined) calls.tasks.answered(call.taskNews, call.taskId, text);
      this.#noteAnswer(call, response);
      call.answer.response(response);
      // An answer in the log is sent only once it is stored (P5). The wait for that is part of the gateway's time.
      if (call.report !== undefined && call.answer.stream !== undefined)
        this.#log.whenStored(() => call.report?.answered(response));
      else call.report?.answered(response);
    }
  }

  /** A call has its answer. The state that the call changed is kept for a restore. */
  #noteAnswer({ method, request }: Call, response: Message): void {
    const session = this.#session;
    if (method !== 'ping') session.answeredCalls += 1;
    session.confirmProgress();
    if (request !== undefined && session.client.noteAnswered(method, request.text, response)) session.amendRecord();
  }

  #route(message: Message, relatedRequests: RequestIds | undefined): void {
    const { calls, serverRequests, client, group } = this.#session;
    if (message.standIn !== undefined) {
      this.#session.drop('oversized', message.text);
      return this.#answer(requestRefusal(message));
    }
    const isPing = message.kind === 'request' && message.method === 'ping';
    // There is no client to ask, or one that cannot answer yet: it does not know its session, or the session is hidden.
    if (isPing && (group !== undefined || this.#session.handshake === undefined))
      return this.#answer(emptyResult(message));
    const cancelled = serverRequests.cancelledBy(message);
    if (cancelled !== undefined) return this.#send(cancelled.destination, cancelled.cancellation);
    if (calls.isLate(message)) return this.#session.drop('late', message.text);
    const { hasGet } = this.#log.streams;
    const destination =
      group === undefined
        ? calls.attribute(message, hasGet, relatedRequests)
        : group.attribute(message, relatedRequests);
    if (destination === 'kept') return;
    if (destination === 'unwanted' || destination === 'nobodys') {
      if (destination === 'nobodys') this.#session.drop('unattributable', message.text);
      if (message.kind === 'request') this.#answer(requestRefusal(message));
      return;
    }
    // Some servers drop a session whose ping is unanswered, and a client need not listen to a GET stream.
    if (isPing && destination === 'get' && !client.isOneStream && !hasGet) return this.#answer(emptyResult(message));
    if (message.method === taskStatus) calls.tasks.update(message);
    if (message.progressToken !== undefined) calls.noteProgress(message.progressToken);
    const dropReason = this.#findDropReason(message, destination);
    if (dropReason !== undefined) this.#session.drop(dropReason, message.text);
    if (message.kind === 'request')
      this.#passRequest(message, dropReason === undefined ? destination : undefined, relatedRequests);
    else if (dropReason === undefined && this.#isNewProgress(message, destination))
      this.#send(destination, calls.underClientToken(message));
  }

  /** Sends a server message to its destination. */
  #send(destination: StreamTarget, message: Message): void {
    const { group } = this.#session;
    if (destination !== 'get') destination.answer.message(message);
    else if (group === undefined) this.#log.add(getStream, message.text, false);
    else if (!group.announce(message)) this.#session.drop('undeliverable', message.text);
  }

  /** The reason why a message cannot be passed on; undefined if it can. */
  #findDropReason({ text }: Message, destination: StreamTarget): SessionDropReason | undefined {
    const { limits, group } = this.#session;
    if (text.length > limits.maxEventBytes) return 'oversized';
    return destination === 'get' && group === undefined && !this.#log.hasRoom ? 'undeliverable' : undefined;
  }

  /** Passes a request from the server on, or refuses it, so that the server does not wait. */
  #passRequest(message: Message, destination: StreamTarget | undefined, relatedRequests: RequestIds | undefined): void {
    const { incarnation } = this.#link;
    const forClient = destination && this.#session.serverRequests.add(message, incarnation, destination);
    if (destination === undefined || forClient === undefined) return this.#answer(requestRefusal(message));
    this.#markRequesters(message, destination, relatedRequests);
    this.#send(destination, forClient);
  }

  /** Answers a server's message in place of its client. */
  #answer(response: Message): void {
    this.#link.send(response);
  }

  /**
   * Marks the calls that may have caused a server request: the known call, or every call that can. A marked call is
   * never run again, since it would ask twice.
   */
  #markRequesters(message: Message, destination: StreamTarget, relatedRequests: RequestIds = []): void {
    if (message.method === 'ping') return;
    if (destination !== 'get') destination.hasAsked = true;
    if (destination !== 'get' && relatedRequests.includes(destination.id)) return;
    for (const call of this.#session.calls.all()) if (methodOf(call.method).mayAsk) call.hasAsked = true;
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

  /** Ends the calls of a lost backend with the known outcome, except those that its replacement gets. */
  #endLostCalls(reason: Reason, undelivered: readonly QueuedMessage[]): void {
    const { calls, reruns } = this.#session;
    const undeliveredIds = new Set(undelivered.map(({ message }) => message.id));
    // The call with the overlong answer is unknown and would fail again, so no call is run again.
    const isSafe = reason !== 'line_too_long';
    for (const call of calls.all()) {
      if (!undeliveredIds.has(call.id) && !(isSafe && reruns.allows(call, 'loss'))) this.fail(call, reason);
    }
  }

  #rerunSoon(call: Call): void {
    call.rerunAfter = 'broken_post';
    setTimeout(() => {
      const isStillDue = call.rerunAfter === 'broken_post' && call.cancelTimer === undefined;
      if (isStillDue && this.#session.calls.holds(call)) this.#rerun(call, 'broken_post');
    }, resendDelayMs).unref();
  }

  #rerun(call: Call, after: NonNullable<Call['rerunAfter']>): void {
    call.rerunAfter = after;
    this.#sendAgain(call.request as Message, call.forwarded, call);
  }

  #sendAgain(message: Message, headers: ForwardedHeaders | undefined, call: Call | undefined): void {
    if (this.#link.send(message, headers) === 'full' && call !== undefined) this.#failSent(call, 'server_busy');
  }

  /** Ends a call that was sent. A server that takes no more messages may have received the call before. */
  #failSent(call: Call, reason: Reason): void {
    const before = call.rerunAfter === 'loss' ? 'server_exited' : 'server_unreachable';
    const mayHaveRun = call.rerunAfter !== undefined && reason === 'server_busy';
    this.fail(call, mayHaveRun ? before : reason);
  }
}
