import type { ArrivalInfo, CallReport, CallRequest } from '../../call/call-report.ts';
import { type Call, type CallTable, failCall } from '../../call/call-table.ts';
import { LegacyAnswer, type LegacyAnswerHost, type LegacyCallAnswer } from '../../call/legacy-answer.ts';
import { isHarmless, type RerunPolicy } from '../../call/rerun.ts';
import { readTaskUpdate, taskStatus } from '../../call/tasks.ts';
import { faultMessage, type Reason, type RequestId } from '../../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Reply } from '../../reply/reply.ts';
import type { PendingCall } from '../../store/event-log.ts';
import type { BackendSupervisor } from '../backend/supervisor.ts';
import type { EventDelivery } from '../events/delivery.ts';
import { LoggedAnswer } from '../events/logged-answer.ts';
import type { OneStream } from '../events/one-stream.ts';
import { getStream } from '../events/streams.ts';
import { discardingAnswer, logLevelRequest } from '../group/gateway-requests.ts';
import { InputGate } from '../group/input-gate.ts';
import { InputRounds } from '../group/input-rounds.ts';
import { SubscriptionLeases } from '../group/subscription-leases.ts';
import type { PendingCallState } from '../record/adoption.ts';
import type { ClientState } from '../record/client-state.ts';
import type { ClientPost, GroupRequestOptions } from '../session-handle.ts';
import type { SessionDropReason } from '../session-observer.ts';
import type { SessionOptions } from '../session-options.ts';
import { AttemptStreams } from './attempt-streams.ts';
import type { ServerRequests } from './server-requests.ts';

/** What the way of messages from the client to its server needs of the session. */
export interface ClientRequestsOptions {
  readonly calls: CallTable;
  readonly serverRequests: ServerRequests;
  readonly upstream: BackendSupervisor;
  readonly outbound: EventDelivery;
  readonly reruns: RerunPolicy;
  readonly client: ClientState;
  /** Set for a client that hears everything on one stream. */
  readonly oneStream: OneStream | undefined;
  readonly limits: SessionOptions;
  /** Who is to be told how a call ends; absent for nobody. */
  readonly watch?: ((request: CallRequest, came?: ArrivalInfo) => CallReport) | undefined;
  /** True if streams begin with a priming event. */
  primes(): boolean;
  /** True if the server tells for which request it asks something. */
  tellsRequests(): boolean;
  onDropped(what: SessionDropReason): void;
  /** What the client has told its server is no longer what it was. */
  onClientChanged(): void;
}

/** What came with requests. */
type Brought = Pick<Reply, 'forwarded'> & ArrivalInfo;

/** The way of messages from the client to its server: requests get a place in the table of calls and an answer. */
export class ClientRequests {
  readonly #options: ClientRequestsOptions;
  /** What the answers of all calls need. */
  readonly #host: LegacyAnswerHost;
  readonly #maxCalls: number;
  /** Set for a group whose clients can be asked something. */
  readonly #turns: InputGate | undefined;
  readonly #rounds = new InputRounds();
  readonly #askings = new AttemptStreams();
  /** Set for a group: who listens to what. */
  readonly #holds: SubscriptionLeases | undefined;
  /** This owner has asked the server for its log messages, on behalf of a group. */
  #hasAskedForLogs = false;

  constructor(options: ClientRequestsOptions) {
    this.#options = options;
    const { client, calls, limits, outbound, tellsRequests, onDropped } = options;
    this.#host = {
      openStream: (sink, ids, asking) => {
        const stream = outbound.streams.open(sink, ids);
        if (asking !== undefined) this.#askings.remember(asking, stream);
        return stream;
      },
      emit: (stream, text, last, settles, ids) => {
        if (ids === undefined && settles === undefined) return outbound.add(stream, text, last);
        const opens = ids && this.#pendingOn(stream, ids);
        outbound.add(stream, text, last, { opens: opens?.length === 0 ? undefined : opens, settles });
      },
      flush: () => outbound.flush(),
      onUndeliverable: () => onDropped('undeliverable'),
    };
    this.#maxCalls = client.isGroup ? limits.maxSharedCalls : limits.maxCalls;
    if (!client.isGroup) return;
    this.#holds = new SubscriptionLeases(client);
    if (!client.acceptsServerRequests) return;
    const onTurn = (post: ClientPost, reply: Reply): void => this.post(post, reply);
    this.#turns = new InputGate({
      calls,
      maxWaiting: this.#maxCalls,
      identifiesRequests: tellsRequests,
      onAdmitted: onTurn,
    });
  }

  /** Passes the messages of one POST on, in order, and answers the POST. */
  post(post: ClientPost, reply: Reply): void {
    const { messages, isBatch, again, group } = post;
    const { calls, oneStream } = this.#options;
    const requests = messages.filter((message) => message.kind === 'request');
    const ids = requests.map(requestId);
    if (again && oneStream?.knows(ids)) return oneStream.confirm(ids, reply);
    if (again && !oneStream && this.#rejoins(requests, isBatch, reply)) return;
    if (again && !messages.every(isHarmless)) return reply.fault('outcome_unknown', ids[0] ?? null);
    const repeated = ids.find((id) => calls.has(id));
    if (repeated !== undefined) return reply.fault('duplicate_id', repeated);
    if (ids.length > 1 && new Set(ids).size < ids.length) return reply.fault('duplicate_id', null);
    if (this.#turns?.admits(post, reply) === false) return;
    if (group !== undefined && this.#holds?.settles(requests[0], group, reply)) return;
    if (calls.size + ids.length > this.#maxCalls) return reply.fault('too_many_calls', ids[0] ?? null);
    if (group?.round !== undefined && !this.#rounds.admits(group.round)) return reply.fault('bad_request_state', null);
    for (const message of messages) {
      if (message.kind === 'request') continue;
      const refused = this.#forward(message, reply.forwarded ?? noHeaders);
      if (refused !== undefined && requests.length === 0) return reply.fault(refused, null);
    }
    if (group?.logLevel !== undefined) this.#askForLogs();
    if (requests.length === 0) reply.accepted();
    else if (oneStream === undefined) this.call(requests, this.#createAnswer(ids, isBatch, reply), reply, group);
    else {
      this.call(requests, oneStream.answer(ids.length), reply);
      oneStream.accept(ids, this.#pendingOn(getStream, ids), reply);
    }
  }

  /**
   * Answers requests that were asked for before, for a client whose way to them was lost: on the stream that they have, if there
   * is one, else with another answer where some are running. What is not running was answered on the lost way, and is run again
   * if that is harmless. False if nothing is known of them.
   */
  #rejoins(requests: readonly Message[], isBatch: boolean, reply: Reply): boolean {
    const { calls, outbound } = this.#options;
    const ids = requests.map(requestId);
    const running = ids.map((id) => calls.get(id)).filter((call) => call !== undefined);
    for (const { answer } of running) answer.supersede?.();
    const stream =
      running.map(({ answer }) => answer.stream).find((number) => number !== undefined) ??
      this.#askings.streamOf(reply.attempt);
    if (stream !== undefined) outbound.streams.join(stream, reply);
    if (stream !== undefined || running.length === 0) return stream !== undefined;
    const answer = this.#createAnswer(ids, isBatch, reply);
    for (const call of running) call.answer = answer;
    const others = requests.filter((request) => !running.some(({ id }) => id === requestId(request)));
    for (const request of others) if (!isHarmless(request)) answer.fail(requestId(request), 'outcome_unknown');
    this.call(others.filter(isHarmless), answer, reply);
    return true;
  }

  /** Passes requests on that one answer answers, with the headers that came with them. */
  call(
    requests: readonly Message[],
    answer: LegacyCallAnswer,
    brought: Brought = {},
    group?: GroupRequestOptions,
  ): void {
    const { calls, upstream } = this.#options;
    const { forwarded = noHeaders } = brought;
    const added = requests.map((request) => this.#toCall(request, answer, brought, group));
    for (const call of added) calls.add(call);
    for (const [index, request] of requests.entries()) {
      const sent = upstream.send(request.text, forwarded);
      const call = added[index] as Call;
      call.report?.sent();
      if (upstream.state !== 'live') call.report?.awaitsStart();
      // `ended`: the backend is about to report its end, which decides about the call with what is known then.
      if (sent === 'full') this.fail(call, 'server_busy');
    }
  }

  /** Takes calls that an earlier owner left unanswered: their answers go to their streams in the log. */
  adopt(left: readonly PendingCallState[]): readonly Call[] {
    const missing = new Map<number, number>();
    for (const { stream } of left) missing.set(stream, (missing.get(stream) ?? 0) + 1);
    this.#options.oneStream?.note(left.map(({ id }) => id));
    const answers = new Map<number, LoggedAnswer>();
    return left.map(({ stream, id, method, name, text, progressToken, taskId, hasAsked, lastProgress }) => {
      const answer =
        answers.get(stream) ??
        new LoggedAnswer(this.#host, stream, missing.get(stream) as number, this.#options.limits.maxEventBytes);
      answers.set(stream, answer);
      const now = performance.now();
      const watch = this.#options.watch?.({ method, name, text });
      const of = { id, method, progressToken, taskId, text, hasAsked, watch };
      const call: Call = { ...of, answer, activeAt: now, startedAt: now };
      if (lastProgress !== undefined) call.lastProgress = lastProgress;
      this.#options.calls.add(call);
      return call;
    });
  }

  /** Ends a call with an error of the gateway, unless it was answered meanwhile. */
  fail(call: Call, reason: Reason): void {
    const { calls, outbound } = this.#options;
    if (calls.get(call.id) !== call) return;
    calls.retire(call.id);
    failCall(call, reason);
    outbound.flush();
    if (call.answer.stream !== undefined) outbound.sendUnlogged(call.answer.stream, faultMessage(reason, call.id));
  }

  /** The session ends: what waits for its turn has to go elsewhere. */
  close(): void {
    this.#turns?.close();
  }

  /** Ends calls that the server neither answers nor reports progress of, and tells it to stop them; and whose answers the log does not take. */
  endOverdue(): void {
    const { calls, upstream, outbound, limits } = this.#options;
    outbound.failUnstored(limits.requestIdleMs);
    for (const request of this.#holds?.expired() ?? []) this.call([request], discardingAnswer);
    for (const call of calls.overdue(limits)) {
      if (call.method === 'initialize') continue; // it has a limit of its own, and is never cancelled
      const params = { requestId: call.id, reason: 'The request took too long.' };
      upstream.send(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })));
      this.fail(call, 'request_timeout');
    }
  }

  #createAnswer(ids: readonly RequestId[], isBatch: boolean, reply: Reply): LegacyAnswer {
    const { limits, primes } = this.#options;
    const { upgradeAfterMs, maxEventBytes } = limits;
    return new LegacyAnswer(this.#host, { reply, ids, isBatch, primes: primes(), upgradeAfterMs, maxEventBytes });
  }

  /** The calls that a stream has yet to answer: whoever takes the session over finds them in its log. */
  #pendingOn(stream: number, ids: readonly RequestId[]): readonly PendingCall[] {
    const calls = ids.map((id) => this.#options.calls.get(id)).filter((call) => call !== undefined);
    return calls.map(({ id, method, text, report: watch }) => ({
      ...{ stream, id, method, text },
      ...(watch?.name !== undefined && { name: watch.name }),
    }));
  }

  /** A server says nothing of what no client has asked for; what it says then is chosen for each request. */
  #askForLogs(): void {
    if (this.#hasAskedForLogs || this.#options.client.hasLogLevel) return;
    this.#hasAskedForLogs = true;
    this.call([logLevelRequest], discardingAnswer);
  }

  #toCall(request: Message, answer: LegacyCallAnswer, brought: Brought, group?: GroupRequestOptions): Call {
    const method = request.method as string;
    const now = performance.now();
    const isOwn = answer === discardingAnswer;
    const { reruns, watch } = this.#options;
    const { forwarded = noHeaders } = brought;
    return {
      activeAt: now,
      startedAt: now,
      id: requestId(request),
      method,
      progressToken: request.progressToken,
      taskId: request.taskId,
      taskNews: readTaskUpdate(request),
      answer,
      text: reruns.mayNeed(method, request.text) ? request.text : undefined,
      forwarded,
      logLevel: group?.logLevel,
      isGatewayRequest: isOwn,
      report: isOwn ? undefined : watch?.(request, brought),
    };
  }

  /** Passes on a notification or response of the client. Returns why it could not be taken. */
  #forward(message: Message, forwarded: ForwardedHeaders): Reason | undefined {
    const { serverRequests, upstream, client, onClientChanged, onDropped } = this.#options;
    const text = message.kind === 'response' ? serverRequests.settle(message) : message.text;
    if (text === undefined) {
      onDropped('unknown_client_response');
      return undefined;
    }
    if (message.cancels !== undefined && !this.#cancel(message.cancels)) return undefined;
    if (message.method === taskStatus) serverRequests.tasks.update(message);
    if (client.sent(message)) onClientChanged();
    return upstream.send(text, forwarded) === 'full' ? 'server_busy' : undefined;
  }

  /** Notes that the client cancels a call. False if the server must not hear of it. */
  #cancel(id: RequestId): boolean {
    const call = this.#options.calls.get(id);
    if (call === undefined) return true; // answered already; the server ignores what it does not know
    if (call.method === 'initialize') return false; // 2025-11-25, basic/utilities/cancellation: never
    call.cancelTimer ??= setTimeout(() => this.fail(call, 'cancelled'), this.#options.limits.cancelGraceMs);
    return true;
  }
}

/** The id of a request. */
export const requestId = (request: Message): RequestId => request.id as RequestId;
