import type { RequestIds } from '../backend/backend.ts';
import type { Reason, RequestId } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import type { LogLevel } from '../protocol/modern/log-levels.ts';
import { SparseMap } from '../util/sparse-map.ts';
import type { CallReport } from './call-report.ts';
import type { LegacyCallAnswer } from './legacy-answer.ts';
import { isPoll, Tasks, type TaskUpdate } from './tasks.ts';

/** A client's request that its backend has not answered yet. */
export interface Call {
  readonly id: RequestId;
  readonly method: string;
  readonly progressToken: RequestId | undefined;
  /** The task that the request asks about (`tasks/result` and its siblings). */
  readonly taskId: string | undefined;
  /** What its answer can tell of tasks. */
  readonly taskNews?: TaskUpdate | undefined;
  answer: LegacyCallAnswer;
  /** The request as it was sent, where that may be needed again. */
  readonly text: Buffer | undefined;
  /** What its client's request brought for the server; undefined if an earlier owner had it. */
  readonly forwarded?: ForwardedHeaders;
  /** The least level of log messages that its client wants, of a group's clients; undefined for none. */
  readonly logLevel?: LogLevel | undefined;
  /** The gateway itself asks, and nobody waits for the answer. */
  readonly isGatewayRequest?: boolean;
  /** Set if somebody is to be told how the call ends. */
  readonly report?: CallReport | undefined;
  /** The server has asked its client something on behalf of the call. */
  hasAsked?: boolean;
  /** The newest progress that the client was told. */
  lastProgress?: number;
  /** Why it was run again, if it was: its POST broke while its server went on, or the server was lost. */
  rerunAfter?: 'broken_post' | 'loss';
  /** When the call was sent or last reported progress, and when it was sent, on the monotonic clock in milliseconds. */
  activeAt: number;
  readonly startedAt: number;
  /** Runs after the client cancelled the call. */
  cancelTimer?: NodeJS.Timeout;
}

/** Where a message of the server goes: with a call's answer, or to the standalone GET stream. */
export type StreamTarget = Call | 'get';

/** So many tokens of calls that the gateway has ended are remembered. */
const maxRetiredTokens = 100;

/** The calls in flight of one session, by id, in the order in which they came, and the tasks that they have begun. */
export class CallTable {
  readonly tasks = new Tasks();
  readonly #byId = new SparseMap<RequestId, Call>();
  readonly #byToken = new SparseMap<RequestId, Call>();
  /** Progress tokens of calls that the gateway has ended, oldest first: what still comes for them is late. */
  readonly #retiredTokens = new SparseMap<RequestId, true>();
  #waiting: (() => void)[] = [];
  /** The session ends: there are no calls any more, and all progress is late. */
  #areOver = false;
  /** When the last call was answered, on the monotonic clock in milliseconds. */
  emptySince = performance.now();
  /** Is told of each call that was taken out. */
  onTaken: ((call: Call) => void) | undefined;

  get size(): number {
    return this.#byId.size;
  }

  has(id: RequestId): boolean {
    return this.#byId.has(id);
  }

  get(id: RequestId): Call | undefined {
    return this.#byId.get(id);
  }

  add(call: Call): void {
    this.#byId.set(call.id, call);
    if (call.progressToken !== undefined) this.#byToken.set(call.progressToken, call);
  }

  /** Takes a call out: it is being answered. Undefined if there is none with this id. */
  take(id: RequestId): Call | undefined {
    const call = this.#byId.get(id);
    if (call === undefined) return undefined;
    this.#byId.delete(id);
    if (call.progressToken !== undefined && this.#byToken.get(call.progressToken) === call) {
      this.#byToken.delete(call.progressToken);
    }
    clearTimeout(call.cancelTimer);
    if (this.#byId.size === 0) this.#tellEmpty();
    this.onTaken?.(call);
    return call;
  }

  /** Resolves when no call is in flight. */
  whenEmpty(): Promise<void> {
    if (this.#byId.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Takes out a call that its server has not answered; late progress of it is known from now on. */
  retire(id: RequestId): Call | undefined {
    const call = this.take(id);
    if (call?.progressToken === undefined) return call;
    this.#retiredTokens.set(call.progressToken, true);
    const [oldest] = this.#retiredTokens.keys();
    if (this.#retiredTokens.size > maxRetiredTokens && oldest !== undefined) this.#retiredTokens.delete(oldest);
    return call;
  }

  /** The call with this token goes on: its time starts again. */
  noteProgress(progressToken: RequestId): void {
    const call = this.#byToken.get(progressToken);
    if (call !== undefined) call.activeAt = performance.now();
  }

  /** True for progress of a call that the gateway has ended, whose server goes on: it is nobody's any more. */
  isLate({ progressToken }: Message): boolean {
    if (progressToken === undefined || this.#byToken.has(progressToken)) return false;
    return this.#areOver || this.#retiredTokens.has(progressToken);
  }

  /** All calls, oldest first. */
  all(): Call[] {
    return [...this.#byId.values()];
  }

  /** The calls that have been silent, or have taken, for too long. Who waits for an unfinished task may be silent. */
  overdue({ requestIdleMs, requestMaxMs }: { readonly requestIdleMs: number; readonly requestMaxMs: number }): Call[] {
    const now = performance.now();
    this.tasks.areUnfinished(requestMaxMs); // forgets those that have had their time
    const isWaiting = ({ taskNews, taskId }: Call) => taskNews === 'result' && this.tasks.has(taskId);
    return this.all().filter(
      (call) => (now - call.activeAt >= requestIdleMs && !isWaiting(call)) || now - call.startedAt >= requestMaxMs,
    );
  }

  /** Takes all calls out, oldest first: the session ends. */
  takeAll(): Call[] {
    this.#areOver = true;
    const ids = [...this.#byId.keys()];
    return ids.map((id) => this.take(id)).filter((call) => call !== undefined);
  }

  /**
   * Where a request or notification of the server belongs (P2). Known by progress token, task or the stream on which the
   * server sent it: there. Else, one call in flight: its stream. Several: the GET stream if open, else the newest call's.
   * None: the GET stream, which keeps it for the next GET. A call whose client accepts only JSON, or is gone, counts as
   * having no stream; with a GET stream, so does one that asks how a task is and would not wait, and, for a question, one whose
   * client may never come for it.
   * @param of as `BackendEvents.onMessages` has it: what the server sent beside no request goes to the GET stream if that
   *   is open
   */
  attribute(message: Message, hasGetStream: boolean, of?: RequestIds): StreamTarget {
    const known = this.known(message, of);
    const mayBeUnheard = ({ answer }: Call) => message.kind === 'request' && answer.isDetached === true;
    const hasStream = (call: Call) =>
      call.answer.hasStream && !(hasGetStream && (isPoll(call.method) || mayBeUnheard(call)));
    if (known !== undefined) return hasStream(known) ? known : 'get';
    if (of?.length === 0 && hasGetStream) return 'get';
    let newest: Call | undefined;
    let count = 0;
    for (const call of this.#byId.values()) {
      if (!hasStream(call)) continue;
      if (newest === undefined || mayBeUnheard(newest) || !mayBeUnheard(call)) newest = call;
      count += 1;
    }
    return newest === undefined || (count > 1 && hasGetStream) ? 'get' : newest;
  }

  /** The call that a message of the server names, or beside which it came; `of` as in `attribute`. */
  known(message: Message, of?: RequestIds): Call | undefined {
    return this.#named(message) ?? this.#newestOf(of);
  }

  #tellEmpty(): void {
    this.emptySince = performance.now();
    for (const tell of this.#waiting.splice(0)) tell();
  }

  /** Of a batch the newest, which is as good as any: they have one stream. */
  #newestOf(of: RequestIds = []): Call | undefined {
    return of.map((id) => this.#byId.get(id)).findLast((call) => call !== undefined);
  }

  #named(message: Message): Call | undefined {
    const byToken = message.progressToken === undefined ? undefined : this.#byToken.get(message.progressToken);
    if (byToken !== undefined || message.taskId === undefined) return byToken;
    const asking = this.all().filter(({ taskId }) => taskId === message.taskId);
    return asking.find(({ method }) => !isPoll(method)) ?? asking[0];
  }
}

/** Answers a call that was taken out with an error of the gateway's own. */
export function failCall({ answer, id, report: watch }: Call, reason: Reason): void {
  const isRefusal = answer.fail(id, reason);
  if (!isRefusal) watch?.failed(reason);
}
