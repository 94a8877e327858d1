import { Answer } from '../../call/answer.ts';
import type { SessionAnswer } from '../../call/call-answer.ts';
import type { CallOrigin } from '../../call/call-events.ts';
import { CallReport, type CallRequest } from '../../call/call-report.ts';
import { isHarmless } from '../../call/rerun.ts';
import type { Call } from '../../call/session-calls.ts';
import { silenceOf } from '../../call/silent-call.ts';
import { readTaskUpdate, taskStatus } from '../../call/tasks.ts';
import { overdueReason } from '../../multiplex/call-limits.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { mayBeOwnId, nextOwnId } from '../../protocol/ids/own-ids.ts';
import { spliceCancelledId } from '../../protocol/json.ts';
import { changedMessage } from '../../protocol/message/changed-message.ts';
import { cancelled, type Message, requestId } from '../../protocol/message/message.ts';
import { idsOf, type RenumberedIds, renumber } from '../../protocol/modern/renumber.ts';
import type { Principal } from '../../protocol/principal.ts';
import { accepted, faultAnswer, type Reply, type RequestFacts } from '../../reply/reply.ts';
import { getStream } from '../../store/event-log.ts';
import { answerOnStream, LoggedTarget } from '../outbound/logged-target.ts';
import type { Outbound } from '../outbound/outbound.ts';
import type { SessionLog } from '../outbound/session-log.ts';
import type { PendingCallState } from '../record/adoption.ts';
import type { ServerLink } from '../server/server-link.ts';
import type { SessionCore } from '../session-core.ts';
import type { ClientPost, GroupRequestOptions } from '../session-handle.ts';

/** The requests of one POST, as the server gets them. */
interface SentRequests {
  readonly requests: readonly Message[];
  readonly ids: readonly RequestId[];
  /** The client's ids of those that were renumbered, by the server's; undefined for none. */
  readonly renumbered: ReadonlyMap<RequestId, RenumberedIds> | undefined;
}

/** Why a call that nobody reads is cancelled, for the server. */
const abandonedReason = 'The connection to the client was lost.';

const isRequest = ({ kind }: Message): boolean => kind === 'request';

/** The requests among messages. Most POSTs have one message. */
const requestsIn = (messages: readonly Message[]): readonly Message[] =>
  messages.every(isRequest) ? messages : messages.filter(isRequest);

/** The way from the client to its server. Each request gets an entry in the call table and an answer. */
export class Inbound {
  readonly #session: SessionCore;
  readonly #link: ServerLink;
  readonly #log: SessionLog;
  readonly #outbound: Outbound;
  /** Of all calls; undefined until one is reported. */
  #origin: CallOrigin | undefined;

  constructor(session: SessionCore, link: ServerLink, log: SessionLog, outbound: Outbound) {
    this.#session = session;
    this.#link = link;
    this.#log = log;
    this.#outbound = outbound;
    if (!session.client.isGroup) return;
    const { groupRules } = session.limits;
    if (groupRules === undefined) throw new Error('This gateway has no rules for the sessions of groups.');
    session.group = groupRules(session, {
      send: (message) => link.send(message),
      call: (request, answer) => this.call([request], answer),
      ask: (request, call) => outbound.ask(request, call),
      post: (post, reply) => this.post(post, reply),
    });
  }

  /** Passes the messages of one POST on, in order, and answers the POST. */
  post(post: ClientPost, reply: Reply): void {
    const { messages, isBatch, again, group } = post;
    const { calls, maxCalls } = this.#session;
    const { isOneStream } = this.#session.client;
    const requests = requestsIn(messages);
    const ids = requests.map(requestId);
    const second = requests.find(({ method }) => method === 'initialize');
    if (second !== undefined) return reply.answer(faultAnswer('already_initialized', requestId(second)));
    if (again && !isOneStream && this.#rejoin(requests, reply)) return;
    if (again && !messages.every(isHarmless)) return reply.answer(faultAnswer('outcome_unknown', ids[0] ?? null));
    if (ids.length > 1 && new Set(ids).size < ids.length) return reply.answer(faultAnswer('duplicate_id', null));
    if (this.#session.group?.admits(post, reply) === false) return;
    for (const request of requests) {
      const refusal = this.#session.client.refusalOf(request);
      if (refusal !== undefined) return reply.answer(faultAnswer(refusal, requestId(request)));
    }
    if (calls.size + ids.length > maxCalls) return reply.answer(faultAnswer('too_many_calls', ids[0] ?? null));
    for (const message of messages) {
      if (message.kind === 'request') continue;
      const refusal = this.#forward(message, reply.request.forwarded ?? noHeaders);
      if (refusal !== undefined && requests.length === 0) return reply.answer(faultAnswer(refusal, null));
    }
    if (requests.length === 0) reply.answer(accepted);
    else {
      const sent = this.#renumber(requests, ids);
      const answer = isOneStream
        ? answerOnStream(this.#session, this.#log, getStream, sent)
        : this.#createAnswer(sent, isBatch, reply);
      this.call(sent.requests, answer, reply.request, group);
      if (isOneStream) reply.answer(accepted);
    }
  }

  /**
   * The requests as the server gets them. An id that is in use at the server, or that may be one of the gateway's own, is
   * replaced by a number, and so is the progress token beside it.
   */
  #renumber(requests: readonly Message[], ids: readonly RequestId[]): SentRequests {
    const { calls } = this.#session;
    const mustNot = (request: Message): boolean => {
      const id = requestId(request);
      return calls.isInUse(id) || mayBeOwnId(id) || mayBeOwnId(request.progressToken);
    };
    if (!requests.some(mustNot)) return { requests, ids, renumbered: undefined };
    const renumbered = new Map<RequestId, RenumberedIds>();
    const sent = requests.map((original) => {
      if (!mustNot(original)) return original;
      const numbered = renumber(original, this.#newId());
      renumbered.set(requestId(numbered.request), idsOf(numbered));
      return numbered.request;
    });
    return { requests: sent, ids: sent.map(requestId), renumbered };
  }

  /** An earlier owner of the session has counted by itself, so its pending calls may have a number. */
  #newId(): number {
    const id = nextOwnId();
    return this.#session.calls.isInUse(id) ? this.#newId() : id;
  }

  /**
   * Answers requests of an earlier attempt whose connection was lost, if they have a stream: the reply joins it. Its client
   * has no event id, so it could not resume the stream. False if there is no stream.
   */
  #rejoin(requests: readonly Message[], reply: Reply): boolean {
    const running = requests.flatMap((request) => this.#session.calls.ofClient(requestId(request)).slice(-1));
    const stream = running.map(({ answer }) => answer.stream).find((number) => number !== undefined);
    if (stream === undefined) return false;
    this.#log.streams.join(stream, reply);
    return true;
  }

  /** Creates the report of a call; undefined if calls are not observed. The endpoint reports the calls of a group. */
  #createReport(request: CallRequest, facts?: Partial<RequestFacts>): CallReport | undefined {
    const { parts, name, client } = this.#session;
    const { principal, telemetry } = parts;
    if (telemetry.calls === undefined || client.isGroup) return undefined;
    this.#origin ??= { ...name, era: 'legacy', principal };
    return new CallReport(telemetry.calls, this.#origin, request, facts);
  }

  /** Passes on requests that share one answer, with the headers of their POST. */
  call(
    requests: readonly Message[],
    answer: SessionAnswer,
    facts: Partial<RequestFacts> = {},
    group?: GroupRequestOptions,
  ): void {
    const { calls } = this.#session;
    const { forwarded = noHeaders } = facts;
    const added = requests.map((request) => this.#createCall(request, answer, facts, group));
    for (const call of added) calls.add(call);
    for (let at = 0; at < added.length; at += 1)
      this.#sendOrHold(added[at] as Call, requests[at] as Message, forwarded, group?.user);
  }

  /** Sends a request, unless the rules of a group let it wait. */
  #sendOrHold(call: Call, request: Message, forwarded: ForwardedHeaders, user: Principal | undefined): void {
    const { group } = this.#session;
    if (group === undefined) return this.#send(call, request, forwarded);
    const send = (): void => this.#send(call, request, forwarded);
    const isHeld = group.holds(call, request, user, send);
    if (isHeld === 'full') this.#outbound.fail(call, 'server_busy');
    else if (!isHeld) send();
  }

  #send(call: Call, request: Message, forwarded: ForwardedHeaders): void {
    const sent = this.#link.send(request, forwarded);
    call.report?.sent();
    if (this.#link.state !== 'live') call.report?.awaitsStart();
    if (sent === 'full') this.#outbound.fail(call, 'server_busy');
  }

  /** Adopts calls that an earlier owner left unanswered. Their answers go to their streams in the log. */
  adopt(pending: readonly PendingCallState[]): readonly Call[] {
    const answers = new Map<number, Answer>();
    const isRenumbered = ({ renumbered }: PendingCallState): boolean => renumbered !== undefined;
    const answerOn = (number: number): Answer => {
      const all = pending.filter(({ stream }) => stream === number);
      const renumbered = all.filter(isRenumbered).map((each) => [each.id, each.renumbered as RenumberedIds] as const);
      const ids = all.map(({ id }) => id);
      return answerOnStream(this.#session, this.#log, number, { ids, renumbered: new Map(renumbered) });
    };
    return pending.map((state) => {
      const { stream, id, method, name, request, progressToken, taskId, hasAsked, lastProgress, renumbered } = state;
      const answer = answers.get(stream) ?? answerOn(stream);
      answers.set(stream, answer);
      const now = performance.now();
      const call: Call = {
        id,
        renumbered,
        method,
        progressToken,
        taskId,
        request,
        hasAsked,
        isKept: true, // this owner does not know whether its client has a request state
        report: this.#createReport({ method, name, text: request?.text }),
        answer,
        activeAt: now,
        startedAt: now,
      };
      if (lastProgress !== undefined) call.lastProgress = lastProgress;
      this.#session.calls.add(call);
      return call;
    });
  }

  /**
   * Ends calls that the server neither answers nor reports progress of, and those that nobody reads, and tells the server
   * to stop them. In a group, a call keeps its turn for a while: a question that the server has already sent must not go
   * to the next client (P2, P11).
   */
  endOverdue(): void {
    const { calls, limits, group } = this.#session;
    for (const call of calls.overdue(limits)) {
      if (call.method === 'initialize') continue; // it has a limit of its own, and is never cancelled
      if (group !== undefined && call.cancelTimer !== undefined) continue;
      this.#link.send(cancelled(call.id, overdueReason));
      const fail = (): void => this.#outbound.fail(call, 'request_timeout');
      if (group === undefined) fail();
      else {
        call.isOverdue = true;
        call.cancelTimer = setTimeout(fail, limits.graceMs);
      }
    }
    for (const call of group?.endExpired((stream) => this.#log.streams.isRead(stream)) ?? []) {
      if (call.cancelTimer !== undefined) continue;
      this.#link.send(cancelled(call.id, abandonedReason));
      call.cancelTimer = setTimeout(() => this.#outbound.fail(call, 'cancelled'), limits.graceMs);
    }
  }

  #createAnswer({ requests, ids, renumbered }: SentRequests, isBatch: boolean, reply: Reply): Answer {
    const { limits, parts } = this.#session;
    // A refusal of the server has to keep its status, which an open stream would not allow.
    const isPassedOn = parts.server.authorizesClients === true;
    const commitAfterMs = isPassedOn ? Math.max(limits.streamAfterMs, limits.commitAfterMs) : limits.streamAfterMs;
    const target = new LoggedTarget(this.#session, this.#log);
    // The endpoint tells the clients of a group.
    const [request] = requests.length > 1 || this.#session.client.isGroup ? [] : requests;
    const token = (request && renumbered?.get(requestId(request))?.clientToken) ?? request?.progressToken;
    const silence = silenceOf(token, limits.progressMs);
    return new Answer(target, { era: 'legacy', reply, ids, renumbered, isBatch, commitAfterMs, silence });
  }

  #createCall(
    request: Message,
    answer: SessionAnswer,
    facts: Partial<RequestFacts>,
    group: GroupRequestOptions | undefined,
  ): Call {
    const method = request.method as string;
    const now = performance.now();
    const { reruns } = this.#session;
    const { forwarded = noHeaders } = facts;
    return {
      activeAt: now,
      startedAt: now,
      id: requestId(request),
      renumbered: answer.renumberedIds?.(requestId(request)),
      method,
      progressToken: request.progressToken,
      taskId: request.taskId,
      taskNews: readTaskUpdate(request),
      answer,
      request: reruns.mayNeed(request) ? request : undefined,
      forwarded,
      logLevel: group?.logLevel,
      report: this.#createReport(request, facts),
    };
  }

  /** Passes on a notification or response of the client. Returns the reason if it could not be taken. */
  #forward(message: Message, forwarded: ForwardedHeaders): Reason | undefined {
    const { serverRequests, client } = this.#session;
    const answered = message.kind === 'response' ? serverRequests.settle(message) : message;
    if (answered === undefined) {
      this.#session.drop('unknown_client_response');
      return undefined;
    }
    const { cancels } = message;
    const forServer = cancels === undefined ? answered : this.#cancel(message, cancels);
    if (forServer === undefined) return undefined;
    if (message.method === taskStatus) serverRequests.tasks.update(message);
    if (client.noteSent(message)) this.#session.amendRecord();
    const sent = this.#link.send(forServer, forwarded);
    if (message.kind === 'response') this.#session.group?.noteAnswered(forServer);
    return sent === 'full' ? 'server_busy' : undefined;
  }

  /**
   * Notes that the client cancels a call: of two with one id, the newest that is not cancelled yet. Returns the
   * cancellation for the server; undefined if the server must not be told.
   */
  #cancel(cancellation: Message, clientId: RequestId): Message | undefined {
    const { calls, limits, group } = this.#session;
    const open = calls.ofClient(clientId);
    // Answered already. The server ignores an unknown id, if it is not one of the gateway's own.
    if (open.length === 0) return mayBeOwnId(clientId) ? undefined : cancellation;
    const newest = open.findLast(({ cancelTimer }) => cancelTimer === undefined) ?? open.at(-1);
    const call = group === undefined ? newest : group.callOf(clientId);
    // 2025-11-25, basic/utilities/cancellation: `initialize` is never cancelled.
    if (call === undefined || call.method === 'initialize') return undefined;
    call.cancelTimer ??= setTimeout(() => this.#outbound.fail(call, 'cancelled'), limits.graceMs);
    if (call.renumbered === undefined) return cancellation;
    const text = spliceCancelledId(cancellation.text, JSON.stringify(call.id));
    return changedMessage(cancellation, text, { cancels: call.id });
  }
}
