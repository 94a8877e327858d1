import type { BackendEnd, RequestIds } from '../../../../core/backend/backend.ts';
import { WaitingList } from '../../../../core/backend/waiting-budget.ts';
import type { CallAnswer } from '../../../../core/call/call-answer.ts';
import type { RerunPolicy } from '../../../../core/call/rerun.ts';
import { type CallTimeLimits, overdueReason } from '../../../../core/multiplex/call-limits.ts';
import type { DropCounts, ModernDropReason, SharedServerEvent } from '../../../../core/ops/shared-server-events.ts';
import type { Reason } from '../../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import { noHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import { RequestNumbers } from '../../../../core/protocol/ids/own-ids.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import { type BadAnswer, cancelled } from '../../../../core/protocol/message/message.ts';
import { revisionOf } from '../../../../core/protocol/modern/envelope.ts';
import type { LogLevel } from '../../../../core/protocol/modern/log-levels.ts';
import { listenResult, renumber } from '../../../../core/protocol/modern/renumber.ts';
import { differsByClient, isClientRefused, type Server } from '../../../../core/server/server.ts';
import { lossReason } from '../../../../core/session/end-reason.ts';
import { contain } from '../../../../core/util/boundary.ts';
import type { Emit } from '../../../../core/util/telemetry/emit.ts';
import { afterCatchUp } from '../../../../core/util/timing/time-limit.ts';
import { settlesWithin } from '../../../../core/util/timing/within.ts';
import { ProcessAttribution } from './attribution.ts';
import { type CancelRequest, type RequestOrigin, type SharedCall, SharedCalls } from './shared-calls.ts';
import { SharedProcess } from './shared-process.ts';
import { knowsTasks, TaskOwners } from './task-owners.ts';

/** A notification of a client. */
interface HeldNotification {
  readonly message: Message;
  readonly headers: ForwardedHeaders;
  /** The number of the newest call when the notification came. */
  readonly after: number;
}

/** Times and sizes for every shared server; `docs/reference/configuration.md` explains each. */
export interface SharedProcessLimits extends CallTimeLimits {
  readonly maxSharedCalls: number;
  readonly maxQueuedBytes: number;
  readonly graceMs: number;
}

export interface SharedServerOptions {
  readonly server: Server;
  readonly version: string;
  readonly limits: SharedProcessLimits;
  readonly emit: Emit<SharedServerEvent>;
  /** True while all clients are known to be one user. */
  readonly isOfOneUser: () => boolean;
  /** No process is started before this settles: an earlier process of the same clients is still ending. */
  readonly after?: Promise<unknown> | undefined;
  /** A process is ready that serves these revisions. No request was sent to it yet. */
  onReady(revisions: readonly string[]): void;
  /** A ready process has ended by itself. */
  onLost(): void;
  /** A process did not answer like a modern server. */
  onNotModern(): void;
}

const listen = 'subscriptions/listen';

/** The longest interval between two searches for overdue requests. */
const maxSweepMs = 30_000;

/**
 * A modern server with one process for many clients (docs/design.md, D7). Each request goes to the process under a
 * number of the gateway. Each instance has its own process, since such a server keeps no state between requests.
 *
 * A lost process is replaced as soon as something waits for it. Requests that only read run again and subscriptions are
 * opened again. All other requests end with an error at once (P3).
 */
export class SharedServer {
  readonly #options: SharedServerOptions;
  readonly #calls: SharedCalls;
  /** Client notifications that wait for a process to start, in the order in which they came. */
  readonly #heldNotifications = new WaitingList<HeldNotification>(({ message }) => message.text.length);
  readonly #attribution: ProcessAttribution;
  readonly #process: SharedProcess;
  readonly #reruns: RerunPolicy;
  /** The owners of the tasks that the server has begun. */
  readonly tasks = new TaskOwners();
  readonly #sweep: NodeJS.Timeout;
  /** The capabilities that the current process declares; undefined if its answer has no `capabilities`. */
  #capabilities: ReadonlySet<string> | undefined;
  readonly #numbers = new RequestNumbers();
  #isDraining = false;
  #dropped = new Map<ModernDropReason, number>();

  constructor(options: SharedServerOptions) {
    this.#options = options;
    const { server, version, limits } = options;
    this.#calls = new SharedCalls(options.isOfOneUser);
    this.#reruns = server.reruns;
    this.#attribution = new ProcessAttribution({
      calls: this.#calls,
      declares: (capability) => this.#capabilities?.has(capability) ?? true,
      onAnswered: (call, text) => this.#handleAnswer(call, text),
      maySeeTask: ({ requester }, notification) =>
        requester === undefined || this.tasks.ownsNamedTask(notification, requester),
      onDropped: (what, text, answer) => this.#drop(what, text, 1, answer),
      sendToServer: (message, headers) => {
        this.#process.send(message, headers);
      },
    });
    this.#process = new SharedProcess({
      server,
      version,
      after: options.after,
      nextNumber: () => this.#numbers.next(),
      onMessages: (messages, requestIds) => this.#attribution.deliver(messages, requestIds),
      onNoise: (text, more = 0) => this.#drop('noise', text, 1 + more),
      onReady: ({ revisions, capabilities, startMs }) => {
        this.#capabilities = capabilities;
        this.#handleReady(revisions, startMs);
      },
      onUnanswered: (ids, reason, isFinal) => this.#handleUnanswered(ids, reason, isFinal),
      onLost: (end) => this.#handleLoss(end),
      onStartFailed: (reason, end, headers) => this.#handleFailedStart(reason, end, headers),
      onCrashLoop: (pauseMs) => this.#enterCrashLoop(pauseMs),
    });
    const shortestMs = Math.min(limits.requestIdleMs, limits.requestTotalMs);
    const sweepMs = Math.min(maxSweepMs, Math.ceil(shortestMs / 4));
    const sweep = afterCatchUp(() => contain('shared_process', () => this.#endOverdue()), sweepMs);
    this.#sweep = setInterval(sweep, sweepMs).unref();
  }

  /** Starts the process ahead of the first request. */
  start(): void {
    this.#process.start(noHeaders);
  }

  /**
   * Sends a request to the server, or answers it with the reason why not.
   * @returns the function that cancels the request
   */
  request(
    original: Message,
    logLevel: LogLevel | undefined,
    answer: CallAnswer,
    { headers = noHeaders, requester: sender, isOfSession = false, isOfProbe = false }: RequestOrigin = {},
  ): CancelRequest {
    const refused = this.#refusal(original, isOfSession) ?? (sender && this.tasks.refusal(original, sender));
    if (refused !== undefined) {
      answer.fault(refused);
      return () => undefined;
    }
    const id = this.#numbers.next();
    const { request: renumbered, ...ids } = renumber(original, id);
    const method = original.method as string;
    const isListen = method === listen;
    const request = isListen && sender !== undefined ? this.tasks.withOwnTasks(renumbered, sender) : renumbered;
    const requester = sender !== undefined && (isListen || knowsTasks(original)) ? sender : undefined;
    const now = performance.now();
    const call: SharedCall = {
      id,
      method,
      revision: revisionOf(original),
      ...ids,
      logLevel,
      isListen,
      answer,
      headers,
      requester,
      isOfSession,
      isOfProbe,
      request,
      isSent: false,
      isAcknowledged: false,
      isRerun: false,
      lastProgress: Number.NEGATIVE_INFINITY,
      activeAt: now,
      startedAt: now,
    };
    this.#calls.users.note(sender?.principal);
    this.#calls.add(call);
    if (this.#process.isReady) this.#send(call);
    else this.#startFor([call]);
    return (reason) => this.#cancel(call, reason);
  }

  /** Passes on a client's notification. Returns the reason if it was not taken. */
  notify(notification: Message, headers: ForwardedHeaders = noHeaders): Reason | undefined {
    if (notification.cancels !== undefined || notification.method === 'notifications/cancelled') {
      // Clients use the same request ids, so the notification could name anybody's request. Closing the stream is what
      // cancels.
      this.#drop('cancellation', notification.text);
      return undefined;
    }
    if (this.#isDraining) return 'draining';
    if (this.#process.isCrashLoop) return 'server_crash_loop';
    if (!this.#process.isReady) return this.#holdNotification(notification, headers);
    return this.#process.send(notification, headers) === 'sent' ? undefined : 'server_busy';
  }

  /** Keeps a notification for the process that is being started. Returns the reason if there is no room. */
  #holdNotification(message: Message, headers: ForwardedHeaders): Reason | undefined {
    if (this.#heldBytes + message.text.length > this.#options.limits.maxQueuedBytes) return 'server_busy';
    this.#heldNotifications.push({ message, headers, after: this.#numbers.last });
    this.#process.start(headers);
    return undefined;
  }

  /** Sends the process the notifications that came before a call. */
  #sendHeld(call: number): void {
    const held = this.#heldNotifications;
    for (let { first } = held; first !== undefined && first.after < call; { first } = held) {
      held.shift();
      if (this.#process.send(first.message, first.headers) !== 'sent') this.#drop('unplaced', first.message.text);
    }
  }

  /** The bytes that wait for a process, or may have to be sent to the next one. */
  get #heldBytes(): number {
    return this.#calls.heldBytes + this.#heldNotifications.bytes;
  }

  /** True if a process runs or is being started. */
  get isRunning(): boolean {
    return this.#process.isRunning;
  }

  /** True if a client waits for an answer, or the server may still work on a task. */
  get isBusy(): boolean {
    return this.#calls.all().some(({ isOfProbe }) => !isOfProbe) || this.tasks.areUnfinished(performance.now());
  }

  /** The calls in flight, without subscriptions. */
  get callsInFlight(): number {
    return this.#calls.all().filter(({ isListen }) => !isListen).length;
  }

  /**
   * Ends the server in order (P9). Subscriptions end at once, with the result that says so. Requests end when they are
   * answered or the grace is over; those of sessions when the sessions have ended. Resolves when no process is left.
   */
  async drain(graceMs: number, sessionsEnded: Promise<unknown> = Promise.resolve()): Promise<void> {
    this.#isDraining = true;
    clearInterval(this.#sweep);
    for (const call of this.#calls.all()) {
      if (!call.isListen || call.isOfSession) continue;
      this.#calls.take(call.id);
      if (call.isAcknowledged) call.answer.response(listenResult(call.idText), 200);
      else call.answer.fault('draining');
    }
    const answered = sessionsEnded.then(() => this.#calls.whenEmpty());
    await settlesWithin(answered, graceMs);
    for (const call of this.#calls.all()) this.#fail(call, this.#mayHaveRun(call) ? 'outcome_unknown' : 'draining');
    this.#calls.forgetCancelled();
    await this.#process.close();
    this.#sendHeld(Number.POSITIVE_INFINITY);
    const { server, emit } = this.#options;
    emit({ type: 'shared-server-closed', server: server.name, dropped: this.#takeCounts() });
  }

  /** True if another instance must not be asked to run the call: its server has got it, and it may change something (P3). */
  #mayHaveRun(call: SharedCall): boolean {
    return call.isSent && !call.isListen && !this.#mayRunAgain(call);
  }

  #refusal({ method, text }: Message, isOfSession: boolean): Reason | undefined {
    const { maxSharedCalls, maxQueuedBytes } = this.#options.limits;
    if (this.#isDraining && !isOfSession) return 'draining';
    if (this.#process.isCrashLoop) return 'server_crash_loop';
    if (this.#calls.size >= maxSharedCalls) return 'server_full';
    const isHeld = !this.#process.isReady || method === listen;
    return isHeld && this.#heldBytes + text.length > maxQueuedBytes ? 'server_busy' : undefined;
  }

  #send(call: SharedCall): void {
    const { request, headers } = call;
    if (request === undefined) return;
    const outcome = this.#process.send(request, headers);
    if (outcome === 'full') return this.#fail(call, 'server_busy');
    if (outcome === 'ended') return; // the end is about to be reported, and the call is sent to the next process
    call.isSent = true;
    const mayRunAgain = !call.isRerun && this.#reruns.mayNeed(request);
    const hasRoom = this.#calls.heldBytes <= this.#options.limits.maxQueuedBytes;
    if (!call.isListen && !(mayRunAgain && hasRoom)) this.#calls.forgetRequest(call);
  }

  /** Cancels a call whose client no longer waits, and tells the server to stop. */
  #cancel(call: SharedCall, reason = 'The client no longer waits for the answer.'): void {
    if (!this.#calls.holds(call)) return;
    this.#calls.retire(call, this.#options.limits.graceMs);
    if (call.isSent && this.#process.send(cancelled(call.id, reason)) === 'full') this.#drop('cancellation');
  }

  #handleReady(revisions: readonly string[], startMs: number): void {
    const { server, emit, onReady } = this.#options;
    emit({ type: 'shared-server-ready', server: server.name, revisions, startMs, pid: this.#process.pid });
    onReady(revisions);
    for (const call of this.#calls.all()) {
      if (call.isSent) continue;
      this.#sendHeld(call.id);
      call.answer.report?.started();
      this.#send(call);
    }
    this.#sendHeld(Number.POSITIVE_INFINITY);
  }

  #handleAnswer({ requester, isListen }: SharedCall, text: Buffer): void {
    if (requester !== undefined && !isListen)
      this.tasks.recordTask(text, requester, this.#options.limits.requestTotalMs);
    this.#process.noteAnswer();
  }

  #handleUnanswered(ids: RequestIds, reason: Reason, isFinal = false): void {
    for (const id of ids) {
      const call = this.#calls.get(id);
      if (call === undefined) continue;
      const isLost = !isFinal && reason === 'server_unreachable';
      if (isLost && this.#mayRunAgain(call)) {
        call.isRerun = true;
        call.isSent = false;
        this.#send(call);
      } else this.#fail(call, reason);
    }
  }

  #handleLoss(end: BackendEnd): void {
    const { server, emit, onLost } = this.#options;
    onLost();
    if (!server.isRemote) this.tasks.clear(); // the tasks have ended with the process
    const calls = this.#calls.all();
    const rerunnable = calls.filter((call) => !call.isSent || call.isListen || this.#mayRunAgain(call));
    const runAgain = rerunnable.filter(({ isSent }) => isSent).length;
    const [inFlight, dropped] = [calls.length, this.#takeCounts()];
    emit({ type: 'shared-server-ended', server: server.name, end, inFlight, runAgain, dropped });
    this.#calls.forgetCancelled();
    for (const call of rerunnable) {
      call.isRerun ||= call.isSent && !call.isListen;
      call.isSent = false;
    }
    const lost = new Set(rerunnable);
    for (const call of calls) {
      if (!lost.has(call)) this.#fail(call, lossReason(end));
    }
    this.#startFor(rerunnable);
  }

  #mayRunAgain({ method, request, isRerun }: SharedCall): boolean {
    return this.#reruns.allows({ method, request, ...(isRerun && { rerunAfter: 'loss' }) }, 'loss');
  }

  #handleFailedStart(reason: Reason, end: BackendEnd, headers: ForwardedHeaders): void {
    const { server, emit, onNotModern } = this.#options;
    this.#sendHeld(Number.POSITIVE_INFINITY); // no process runs, so they are counted as dropped
    if (!isClientRefused(end, server))
      emit({ type: 'shared-start-failed', server: server.name, end, isByProbe: this.#calls.areAllProbes });
    // A server that authenticates clients may have refused only this one.
    const refusesOne = differsByClient(server);
    for (const call of this.#calls.all()) {
      if (!call.isAcknowledged && (!refusesOne || call.headers === headers)) this.#fail(call, reason);
    }
    if (reason === 'server_not_modern') onNotModern();
    this.#startFor(this.#calls.all());
  }

  #startFor(calls: readonly SharedCall[]): void {
    const [first] = calls;
    for (const { answer } of calls) answer.report?.awaitsStart();
    if (first !== undefined) this.#process.start(first.headers);
  }

  #enterCrashLoop(pauseMs: number): void {
    const { server, emit } = this.#options;
    emit({ type: 'shared-crash-loop', server: server.name, pauseMs });
    for (const call of this.#calls.all()) this.#fail(call, 'server_crash_loop');
  }

  #fail(call: SharedCall, reason: Reason): void {
    this.#calls.take(call.id);
    call.answer.fault(reason);
  }

  /** Ends requests that the server neither answers nor reports progress of, and tells the server to stop them. */
  #endOverdue(): void {
    for (const call of this.#calls.overdue(this.#options.limits)) {
      this.#cancel(call, overdueReason);
      call.answer.fault('request_timeout');
    }
  }

  #drop(reason: ModernDropReason, text?: Buffer, count = 1, answer?: BadAnswer): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + count);
    const { server, emit } = this.#options;
    emit({ type: 'shared-message-dropped', server: server.name, reason, count, text, answer });
  }

  #takeCounts(): DropCounts {
    const counts = Object.fromEntries(this.#dropped);
    this.#dropped = new Map();
    return counts;
  }
}
