// src/core/call: client requests in flight: their table, their answers, reruns, tasks and reports.
import type { RequestIds } from '../backend/backend.ts';
import { type BookedCall, CallBook } from '../multiplex/call-book.ts';
import { type CallTimeLimits, overdueOf, type TimedCall } from '../multiplex/call-limits.ts';
import type { Reason, RequestId } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import { reasonWithChallenge } from '../protocol/http/upstream-challenge.ts';
import type { Message } from '../protocol/message/message.ts';
import type { LogLevel } from '../protocol/modern/log-levels.ts';
import { type RenumberedIds, restoreToken } from '../protocol/modern/renumber.ts';
import { BoundedMap } from '../util/bounded-map.ts';
import type { FaultData, SessionAnswer } from './call-answer.ts';
import type { CallReport } from './call-report.ts';
import { isPoll, Tasks, type TaskUpdate } from './tasks.ts';

/** A client's request that its backend has not answered yet. */
export interface Call extends BookedCall, TimedCall {
  /** The id and the progress token of the client, if the server got other ones. */
  readonly renumbered?: RenumberedIds | undefined;
  readonly method: string;
  readonly progressToken: RequestId | undefined;
  /** The task that the request asks about (`tasks/result` and its siblings). */
  readonly taskId: string | undefined;
  /** The kind of information about tasks that the answer may contain. */
  readonly taskNews?: TaskUpdate | undefined;
  answer: SessionAnswer;
  /** The request as it was sent; undefined if it cannot be needed again. */
  readonly request: Message | undefined;
  /** The headers of the client's request for the server; undefined if an earlier owner had the request. */
  readonly forwarded?: ForwardedHeaders;
  /** The least level of log messages that the client in a group wants; undefined for none. */
  logLevel?: LogLevel | undefined;
  /** True for a call of a group that needs no reader; see `GroupRequestOptions.keeps`. */
  isKept?: boolean;
  /** Since when nobody reads the answer, as far as was checked, on the monotonic clock in milliseconds. */
  unreadSince?: number | undefined;
  /** The report of the call; set if somebody wants reports. */
  readonly report?: CallReport | undefined;
  /** True if the server has sent the client a request on behalf of the call. */
  hasAsked?: boolean;
  /** The newest progress that the client got. */
  lastProgress?: number;
  /** The reason of the call's rerun, if any: its POST broke while the server went on, or the server was lost. */
  rerunAfter?: 'broken_post' | 'loss';
  /** Runs after the call was cancelled at the server: by its client, or because it is overdue. */
  cancelTimer?: NodeJS.Timeout;
  /** True if the call was cancelled because it is overdue. Its client still waits. */
  isOverdue?: boolean;
}

/** The destination of a server message: the answer of a call, or the standalone GET stream. */
export type StreamTarget = Call | 'get';

/** How many ids and progress tokens of calls that the gateway has ended are remembered (P8). */
const maxRetired = 100;

/** How many progress tokens of answered calls that were renumbered are remembered (P8): servers report progress late. */
const maxLateTokens = 64;

/** The calls in flight of one session, and the tasks that they have started. */
export class SessionCalls extends CallBook<Call> {
  readonly tasks = new Tasks();
  /** True if the server's messages name the request that they relate to. */
  areIdentified = false;
  /** Progress tokens of calls that the gateway has ended, oldest first. Any further progress with them is late. */
  #retiredTokens: BoundedMap<RequestId, true> | undefined;
  /** The ids of these calls, oldest first, so that a late answer reaches no other call. Undefined for none. */
  #retiredIds: BoundedMap<RequestId, true> | undefined;
  /** True once a call was renumbered, which is rare (docs/decisions/0156). */
  #hasRenumbered = false;
  /** The ids of answered calls that were renumbered, by the tokens that the server has. Undefined for none. */
  #lateTokens: BoundedMap<RequestId, RenumberedIds> | undefined;
  /** True once the session ends: there are no more calls, and all progress is late. */
  #isClosed = false;
  /** Called for each call that was removed. */
  onTaken: ((call: Call) => void) | undefined;

  override add(call: Call): void {
    super.add(call);
    this.#hasRenumbered ||= call.renumbered !== undefined;
  }

  /** True if the server may take this id for that of another request. */
  isInUse(id: RequestId): boolean {
    return this.has(id) || this.#retiredIds?.has(id) === true;
  }

  /** The calls with this id of the client, oldest first. There are several if the client uses an id twice. */
  ofClient(clientId: RequestId): readonly Call[] {
    if (this.#hasRenumbered) return this.all().filter((call) => clientIdOf(call) === clientId);
    const call = this.get(clientId);
    return call === undefined ? [] : [call];
  }

  /** A progress notification of the server as its client gets it: under the client's token. */
  underClientToken(message: Message): Message {
    const { progressToken } = message;
    if (progressToken === undefined || !this.#hasRenumbered) return message;
    const ids = this.byToken(progressToken)?.renumbered ?? this.#lateTokens?.get(progressToken);
    return ids?.tokenText === undefined ? message : restoreToken(message, ids.clientToken, ids.tokenText);
  }

  override take(id: RequestId | null | undefined): Call | undefined {
    const call = super.take(id);
    if (call === undefined) return undefined;
    const { cancelTimer, progressToken, renumbered } = call;
    clearTimeout(cancelTimer);
    if (renumbered !== undefined && progressToken !== undefined) {
      this.#lateTokens ??= new BoundedMap(maxLateTokens);
      this.#lateTokens.set(progressToken, renumbered);
    }
    this.onTaken?.(call);
    return call;
  }

  /** Removes a call that its server has not answered. Its id and its progress token are remembered: both may come late. */
  retire(id: RequestId): Call | undefined {
    const call = this.take(id);
    if (call === undefined) return undefined;
    this.#retiredIds ??= new BoundedMap(maxRetired);
    this.#retiredIds.set(id, true);
    if (call.progressToken === undefined) return call;
    this.#retiredTokens ??= new BoundedMap(maxRetired);
    this.#retiredTokens.set(call.progressToken, true);
    return call;
  }

  /** Restarts the idle time of the call with this token. */
  noteProgress(progressToken: RequestId): void {
    const call = this.byToken(progressToken);
    if (call !== undefined) call.activeAt = performance.now();
  }

  /**
   * True for progress of a call that the gateway has ended while its server went on. Nobody waits for such progress.
   */
  isLate({ progressToken }: Message): boolean {
    if (progressToken === undefined || this.byToken(progressToken) !== undefined) return false;
    return this.#isClosed || this.#retiredTokens?.has(progressToken) === true;
  }

  /** The calls that were silent or in flight for too long, but a call that waits for an unfinished task may be silent. */
  overdue(limits: CallTimeLimits): Call[] {
    this.tasks.areUnfinished(limits.requestTotalMs); // removes expired tasks
    const latest = performance.now() - limits.requestTotalMs;
    const isWaiting = ({ taskNews, taskId }: Call) => taskNews === 'result' && this.tasks.has(taskId);
    return overdueOf(this.values(), limits).filter((call) => call.startedAt <= latest || !isWaiting(call));
  }

  /** Removes and returns all calls, oldest first, because the session ends. */
  takeAll(): Call[] {
    this.#isClosed = true;
    const calls = this.all();
    for (const { id } of calls) this.take(id);
    return calls;
  }

  /**
   * Finds the stream for a request or notification of the server (P2):
   *
   * - A message whose progress token, task or source stream names a call goes to the stream of that call.
   * - With one call in flight, the message goes to the stream of that call.
   * - With several calls, the message goes to the GET stream if it is open, else to the newest call's stream.
   * - Without a call, the message goes to the GET stream, which keeps it for the next GET.
   *
   * A call whose client accepts only JSON, or has left, has no stream. If there is a GET stream, a poll of a task counts as
   * without one, since it should be answered at once.
   * @param relatedRequests as in `BackendEvents.onMessages`. With an empty list the message belongs to no request, and
   *   goes to the GET stream if that is open.
   */
  attribute(message: Message, hasGetStream: boolean, relatedRequests?: RequestIds): StreamTarget {
    const known = this.known(message, relatedRequests);
    const hasStream = (call: Call) => call.answer.hasStream && !(hasGetStream && isPoll(call.method));
    if (known !== undefined) return hasStream(known) ? known : 'get';
    if (relatedRequests?.length === 0 && hasGetStream) return 'get';
    let newest: Call | undefined;
    let count = 0;
    for (const call of this.values()) {
      if (!hasStream(call)) continue;
      newest = call;
      count += 1;
    }
    return newest === undefined || (count > 1 && hasGetStream) ? 'get' : newest;
  }

  /** Finds the call that a server message names or relates to; `relatedRequests` as in `attribute`. */
  known(message: Message, relatedRequests: RequestIds = []): Call | undefined {
    const named = this.#findNamed(message);
    // Any call of a batch would do, since they share one stream.
    return named ?? relatedRequests.map((id) => this.get(id)).findLast((call) => call !== undefined);
  }

  #findNamed(message: Message): Call | undefined {
    const byToken = message.progressToken === undefined ? undefined : this.byToken(message.progressToken);
    if (byToken !== undefined || message.taskId === undefined) return byToken;
    const taskCalls = this.all().filter(({ taskId }) => taskId === message.taskId);
    return taskCalls.find(({ method }) => !isPoll(method)) ?? taskCalls[0];
  }
}

/** The id under which the client knows a call. */
export const clientIdOf = ({ id, renumbered }: Pick<Call, 'id' | 'renumbered'>): RequestId =>
  renumbered?.clientId ?? id;

/** Answers a removed call with an error of the gateway. A client of one stream has no reply that knows its challenge. */
export function failCall(call: Call, cause: Reason, data?: FaultData): void {
  const { answer, id, report, forwarded } = call;
  const reason = reasonWithChallenge(cause, forwarded);
  report?.failed(reason, clientIdOf(call));
  answer.fault(reason, data, id);
}
