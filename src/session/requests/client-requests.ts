import { Answer, legacyPolicy } from '../../call/answer.ts';
import type { SessionAnswer } from '../../call/call-answer.ts';
import { type ArrivalInfo, CallReport, type CallRequest } from '../../call/call-report.ts';
import { overdueReason } from '../../call/call-table.ts';
import { isHarmless } from '../../call/rerun.ts';
import { type Call, failCall } from '../../call/session-calls.ts';
import { readTaskUpdate, taskStatus } from '../../call/tasks.ts';
import { faultMessage, type Reason, type RequestId } from '../../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { cancelled, type Message } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import type { Reply } from '../../reply/reply.ts';
import type { BackendSupervisor } from '../backend/supervisor.ts';
import { faultBeforeStart, type SessionEndReason } from '../end-reason.ts';
import { getStream } from '../events/cursor.ts';
import type { EventDelivery } from '../events/delivery.ts';
import { answerOnStream, LoggedTarget, pendingCalls } from '../events/logged-target.ts';
import type { OneStream } from '../events/one-stream.ts';
import { EarlyRoots } from '../group/early-roots.ts';
import { discardingAnswer, GatewayAnswer, logLevelRequest, pingRequest } from '../group/gateway-requests.ts';
import { InputGate } from '../group/input-gate.ts';
import { InputRounds } from '../group/input-rounds.ts';
import { SubscriptionLeases } from '../group/subscription-leases.ts';
import type { PendingCallState } from '../record/adoption.ts';
import type { SessionContext } from '../session-context.ts';
import type { ClientPost, GroupRequestOptions } from '../session-handle.ts';
import { ListenerGate } from './listener-gate.ts';

/** What a request brings beside its message. */
type CallContext = Pick<Reply, 'forwarded'> & ArrivalInfo;

/** The way of messages from the client to its server. Each request gets an entry in the call table and an answer. */
export class ClientRequests {
  readonly #context: SessionContext;
  readonly #supervisor: BackendSupervisor;
  readonly #delivery: EventDelivery;
  /** Set for a client that gets everything on one stream. */
  readonly #oneStream: OneStream | undefined;
  /** Set for such a client. */
  readonly #listenerGate: ListenerGate | undefined;
  /** Set for a group whose clients accept server requests. */
  readonly #inputGate: InputGate | undefined;
  /** Set for a group: the rounds of input that it has received. */
  readonly #rounds: InputRounds | undefined;
  /** Set for a group: the leases on resource subscriptions. */
  readonly #leases: SubscriptionLeases | undefined;
  /** True once this owner has asked the server for its log messages, on behalf of a group. */
  #hasRequestedLogs = false;
  #pingCount = 0;

  constructor(context: SessionContext, supervisor: BackendSupervisor, delivery: EventDelivery, oneStream?: OneStream) {
    const { client, calls, policy } = context;
    this.#context = context;
    this.#supervisor = supervisor;
    this.#delivery = delivery;
    this.#oneStream = oneStream;
    if (oneStream !== undefined)
      this.#listenerGate = new ListenerGate({
        streams: delivery.streams,
        maxWaiting: policy.maxCalls,
        onAdmitted: (post, reply) => this.post(post, reply),
      });
    if (!policy.isShared) return;
    this.#rounds = new InputRounds();
    this.#leases = new SubscriptionLeases(client);
    calls.onTaken = (call) => this.#handleTaken(call);
    if (client.hasRoots)
      context.earlyRoots = new EarlyRoots({
        calls,
        ping: (onOver) => this.call([pingRequest(++this.#pingCount)], new GatewayAnswer(onOver)),
      });
    if (!client.acceptsServerRequests) return;
    this.#inputGate = new InputGate({
      calls,
      maxWaiting: policy.maxCalls,
      onAdmitted: (post, reply) => this.post(post, reply),
    });
  }

  /** A call of a group is over. No client can answer the questions that the server has asked for it. */
  #handleTaken(call: Call): void {
    const { serverRequests, earlyRoots, endReason } = this.#context;
    if (endReason !== undefined) return; // the next owner of the session may go on with the questions
    const refused = serverRequests.refuseFor(call, (id) => earlyRoots?.isAsked(id) === true);
    for (const refusal of refused) this.#supervisor.send(refusal);
    earlyRoots?.noteTaken(call);
    this.#inputGate?.noteTaken(call);
  }

  /** Passes the messages of one POST on, in order, and answers the POST. */
  post(post: ClientPost, reply: Reply): void {
    const { messages, isBatch, again, group } = post;
    const { calls, policy } = this.#context;
    const oneStream = this.#oneStream;
    const requests = messages.filter((message) => message.kind === 'request');
    const ids = requests.map(requestId);
    if (group?.endsUnused) {
      if (calls.size === 0) this.#context.end('idle');
      return reply.accepted();
    }
    if (again && oneStream?.hasAccepted(ids)) return oneStream.confirm(ids, reply);
    if (this.#listenerGate?.admits(post, reply) === false) return;
    const modern = oneStream && messages.find(({ isModern }) => isModern);
    if (modern !== undefined) {
      if (modern.kind === 'request') this.#createReport(modern as CallRequest, reply)?.failed('modern_not_served');
      return oneStream?.refuseModern(modern, reply);
    }
    const second = requests.find(({ method }) => method === 'initialize');
    if (second !== undefined) return reply.fault('already_initialized', requestId(second));
    if (again && !oneStream && this.#rejoin(requests, isBatch, reply)) return;
    if (again && !messages.every(isHarmless)) return reply.fault('outcome_unknown', ids[0] ?? null);
    const repeated = ids.find((id) => calls.has(id));
    if (repeated !== undefined) return reply.fault('duplicate_id', repeated);
    if (ids.length > 1 && new Set(ids).size < ids.length) return reply.fault('duplicate_id', null);
    if (this.#inputGate?.admits(post, reply) === false) return;
    if (group !== undefined && this.#leases?.settles(requests[0], group, reply)) return;
    for (const request of requests) {
      const refusal = this.#context.client.refusalOf(request);
      if (refusal !== undefined) return reply.fault(refusal, requestId(request));
    }
    if (calls.size + ids.length > policy.maxCalls) return reply.fault('too_many_calls', ids[0] ?? null);
    if (group?.round !== undefined && this.#rounds?.admits(group.round) === false)
      return reply.fault('bad_request_state', null);
    const continued = calls.get(group?.round?.call);
    if (continued !== undefined) continued.logLevel = group?.logLevel;
    for (const message of messages) {
      if (message.kind === 'request') continue;
      const refusal = this.#forward(message, reply.forwarded ?? noHeaders);
      if (refusal !== undefined && requests.length === 0) return reply.fault(refusal, null);
    }
    if (group?.logLevel !== undefined) this.#requestLogs();
    if (requests.length === 0) reply.accepted();
    else if (oneStream === undefined) this.call(requests, this.#createAnswer(ids, isBatch, reply), reply, group);
    else {
      this.call(requests, oneStream.answer(ids), reply);
      oneStream.accept(ids, pendingCalls(calls, getStream, ids), reply);
    }
  }

  /**
   * Answers requests of an earlier attempt whose connection was lost. If they have a stream, the reply joins it.
   * Otherwise running requests get a new answer. Requests that no longer run were answered on the lost connection, and
   * run again if that is harmless. False if nothing is known of them.
   */
  #rejoin(requests: readonly Message[], isBatch: boolean, reply: Reply): boolean {
    const { calls, attemptStreams } = this.#context;
    const delivery = this.#delivery;
    const ids = requests.map(requestId);
    const running = ids.map((id) => calls.get(id)).filter((call) => call !== undefined);
    for (const { answer } of running) answer.supersede?.();
    const stream =
      running.map(({ answer }) => answer.stream).find((number) => number !== undefined) ??
      attemptStreams.streamOf(reply.attempt);
    if (stream !== undefined) delivery.streams.join(stream, reply);
    if (stream !== undefined || running.length === 0) return stream !== undefined;
    const answer = this.#createAnswer(ids, isBatch, reply);
    for (const call of running) call.answer = answer;
    const others = requests.filter((request) => !running.some(({ id }) => id === requestId(request)));
    for (const request of others)
      if (!isHarmless(request)) answer.fault('outcome_unknown', undefined, requestId(request));
    this.call(others.filter(isHarmless), answer, reply);
    return true;
  }

  /** Creates the report of a call; undefined if calls are not observed. The endpoint reports the calls of a group. */
  #createReport(request: CallRequest, arrival?: ArrivalInfo): CallReport | undefined {
    const { parts, name, policy } = this.#context;
    const { principal, telemetry } = parts;
    if (telemetry.calls === undefined || policy.isShared) return undefined;
    return new CallReport(telemetry.calls, { ...name, era: 'legacy', principal }, request, arrival);
  }

  /** Passes on requests that share one answer, with the headers of their POST. */
  call(
    requests: readonly Message[],
    answer: SessionAnswer,
    context: CallContext = {},
    group?: GroupRequestOptions,
  ): void {
    const { calls } = this.#context;
    const { forwarded = noHeaders } = context;
    const added = requests.map((request) => this.#createCall(request, answer, context, group));
    for (const call of added) calls.add(call);
    const { earlyRoots } = this.#context;
    for (const [index, request] of requests.entries()) {
      const call = added[index] as Call;
      const send = (): void => this.#send(call, request, forwarded);
      const mayWait = earlyRoots !== undefined && methodOf(call.method).mayAsk;
      if (!mayWait || !earlyRoots.holds(call, send)) send();
    }
  }

  #send(call: Call, request: Message, forwarded: ForwardedHeaders): void {
    const sent = this.#supervisor.send(request, forwarded);
    call.report?.sent();
    if (this.#supervisor.state !== 'live') call.report?.awaitsStart();
    if (sent === 'full') this.fail(call, 'server_busy');
  }

  /** Adopts calls that an earlier owner left unanswered. Their answers go to their streams in the log. */
  adopt(pending: readonly PendingCallState[]): readonly Call[] {
    this.#oneStream?.rememberAccepted(pending.map(({ id }) => id));
    const answers = new Map<number, Answer>();
    const idsOn = (number: number) => pending.filter(({ stream }) => stream === number).map(({ id }) => id);
    return pending.map(({ stream, id, method, name, request, progressToken, taskId, hasAsked, lastProgress }) => {
      const answer = answers.get(stream) ?? answerOnStream(this.#context, this.#delivery, stream, idsOn(stream));
      answers.set(stream, answer);
      const now = performance.now();
      const call: Call = {
        id,
        method,
        progressToken,
        taskId,
        request,
        hasAsked,
        report: this.#createReport({ method, name, text: request?.text }),
        answer,
        activeAt: now,
        startedAt: now,
      };
      if (lastProgress !== undefined) call.lastProgress = lastProgress;
      this.#context.calls.add(call);
      return call;
    });
  }

  /** Ends a call with an error of the gateway, unless it was answered meanwhile. */
  fail(call: Call, reason: Reason): void {
    const { calls } = this.#context;
    const delivery = this.#delivery;
    if (!calls.holds(call)) return;
    calls.retire(call.id);
    failCall(call, reason);
    delivery.flush();
    if (call.answer.stream !== undefined) delivery.sendUnlogged(call.answer.stream, faultMessage(reason, call.id));
  }

  /** The session ends. Requests that wait at a gate have not reached its server. */
  close(reason: SessionEndReason): void {
    this.#inputGate?.close();
    this.#listenerGate?.close(faultBeforeStart(reason));
    this.#context.earlyRoots?.close();
  }

  /**
   * Ends calls that the server neither answers nor reports progress of, and tells the server to stop them. Also ends
   * answers that the log does not take. In a group, a call keeps its turn for a while: a question that the server has
   * already sent must not go to the next client (P2, P11).
   */
  endOverdue(): void {
    const { calls, limits, policy } = this.#context;
    this.#delivery.failUnstored(limits.requestIdleMs);
    for (const request of this.#leases?.expired() ?? []) this.call([request], discardingAnswer);
    for (const call of calls.overdue(limits)) {
      if (call.method === 'initialize') continue; // it has a limit of its own, and is never cancelled
      if (policy.isShared && call.cancelTimer !== undefined) continue;
      this.#supervisor.send(cancelled(call.id, overdueReason));
      const fail = (): void => this.fail(call, 'request_timeout');
      if (!policy.isShared) fail();
      else {
        call.isOverdue = true;
        call.cancelTimer = setTimeout(fail, limits.cancelGraceMs);
      }
    }
  }

  #createAnswer(ids: readonly RequestId[], isBatch: boolean, reply: Reply): Answer {
    const { limits, parts } = this.#context;
    // A refusal of the server has to keep its status, which an open stream would not allow.
    const isPassedOn = parts.server.authorizesClients === true;
    const commitAfterMs = isPassedOn ? Math.max(limits.upgradeAfterMs, limits.commitAfterMs) : limits.upgradeAfterMs;
    const target = new LoggedTarget(this.#context, this.#delivery);
    return new Answer(target, { policy: legacyPolicy, reply, ids, isBatch, commitAfterMs });
  }

  /**
   * A server sends only the log messages that a client has asked for. They are then filtered by request. A server that
   * does not declare `logging` may send some all the same, and knows no level.
   */
  #requestLogs(): void {
    const { client, handshake } = this.#context;
    if (this.#hasRequestedLogs || client.hasLogLevel) return;
    this.#hasRequestedLogs = true;
    if (!Object.hasOwn(Object(handshake?.capabilities), 'logging')) return;
    this.call([logLevelRequest], discardingAnswer);
  }

  #createCall(request: Message, answer: SessionAnswer, context: CallContext, group?: GroupRequestOptions): Call {
    const method = request.method as string;
    const now = performance.now();
    const isGatewayRequest = answer instanceof GatewayAnswer;
    const { reruns } = this.#context;
    const { forwarded = noHeaders } = context;
    return {
      activeAt: now,
      startedAt: now,
      id: requestId(request),
      method,
      progressToken: request.progressToken,
      taskId: request.taskId,
      taskNews: readTaskUpdate(request),
      answer,
      request: reruns.mayNeed(request) ? request : undefined,
      forwarded,
      logLevel: group?.logLevel,
      isGatewayRequest,
      report: isGatewayRequest ? undefined : this.#createReport(request, context),
    };
  }

  /** Passes on a notification or response of the client. Returns the reason if it could not be taken. */
  #forward(message: Message, forwarded: ForwardedHeaders): Reason | undefined {
    const { serverRequests, client, record } = this.#context;
    const forServer = message.kind === 'response' ? serverRequests.settle(message) : message;
    if (forServer === undefined) {
      this.#context.drop('unknown_client_response');
      return undefined;
    }
    if (message.cancels !== undefined && !this.#cancel(message.cancels)) return undefined;
    if (message.method === taskStatus) serverRequests.tasks.update(message);
    if (client.noteSent(message)) record.amend();
    const sent = this.#supervisor.send(forServer, forwarded);
    if (message.kind === 'response') this.#context.earlyRoots?.noteAnswered(forServer);
    return sent === 'full' ? 'server_busy' : undefined;
  }

  /** Notes that the client cancels a call. False if the server must not be told. */
  #cancel(id: RequestId): boolean {
    const call = this.#context.calls.get(id);
    if (call === undefined) return true; // answered already; the server ignores an unknown id
    if (call.method === 'initialize') return false; // 2025-11-25, basic/utilities/cancellation: never
    call.cancelTimer ??= setTimeout(() => this.fail(call, 'cancelled'), this.#context.limits.cancelGraceMs);
    return true;
  }
}

/** The id of a request. */
export const requestId = (request: Message): RequestId => request.id as RequestId;
