import type {
  Backend,
  BackendEnd,
  BackendEvents,
  CloseOptions,
  OpenBackend,
  OpenOptions,
  RequestIds,
} from '../../core/backend/backend.ts';
import { Connection } from '../../core/backend/starting/connection.ts';
import { WaitingList } from '../../core/backend/waiting-budget.ts';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import { type Handshake, readHandshake } from '../../core/protocol/handshake.ts';
import { type ForwardedHeaders, noHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { changedMessage } from '../../core/protocol/message/changed-message.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { type ListMethod, listMethods, methodOf } from '../../core/protocol/methods/methods.ts';
import type { UiUris } from '../../core/protocol/ui-uris.ts';
import { contain } from '../../core/util/boundary.ts';
import { isObject } from '../../core/util/is-object.ts';
import { type CallsOfView, type MemberCall, MemberCalls, memberCallOf, type OnOutcome } from './member-calls.ts';

/** Receives what a server of a view does. All methods are called outside of calls into the view. */
export interface MemberListener {
  /** The server has answered `initialize`; `isReplacement` if an earlier backend of it was lost. */
  onReady(member: Member, isReplacement: boolean): void;
  /** The server has ended, or did not start (`isAtStart`). */
  onDown(member: Member, end: BackendEnd, isAtStart: boolean): void;
  /** The server is lost again and again. It is not started for this time, and then only for a request. */
  onCrashLoop(member: Member, pauseMs: number): void;
  /**
   * A message that answers none of the view's own requests. A response to no request of this server has no id.
   * @param call the client's request, if the message answers one
   */
  onMessage(
    member: Member,
    message: Message,
    relatedRequests: RequestIds | undefined,
    call: MemberCall | undefined,
  ): void;
  onNoise(text: Buffer, more?: number): void;
  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void;
}

/** A server of a view, as its own sessions use it. */
export interface MemberServer {
  readonly open: OpenBackend;
  /** See `RestartPolicyOptions`. */
  readonly isRemote: boolean;
}

/** Options of a member. */
export interface MemberOptions {
  readonly name: string;
  readonly index: number;
  readonly server: MemberServer;
  readonly opening: OpenOptions | undefined;
  /** The client's `initialize`. */
  readonly initialize: Message;
  readonly startTimeoutMs: number;
  readonly calls: CallsOfView;
  /** A server need not answer a cancelled request. After this time, the request counts as ended. */
  readonly cancelGraceMs: number;
  /** The server's `ui://` URIs, as clients have them; undefined if they stay as they are. */
  readonly pages: UiUris | undefined;
  readonly listener: MemberListener;
}

/** The capabilities of lists that a careless server may have without declaring anything. */
const baseLists: ReadonlySet<string> = new Set(
  listMethods.filter(({ extension }) => extension === undefined).map(({ capability }) => capability),
);

/** Output of a server before its answer to `initialize` (P8). */
const maxEarlyBytes = 1024 * 1024;
/** A request does not start a server again before this time is over: the lists of the view would wait for it each time. */
const retryMs = 5_000;

/** One server of a view, in one session: its backend, and its requests. */
export class Member implements BackendEvents {
  readonly name: string;
  readonly index: number;
  readonly #options: MemberOptions;
  readonly calls: MemberCalls;
  /** The answer to `initialize`; undefined before it, and kept after a loss. */
  handshake: Handshake | undefined;
  /** The text of that answer. */
  greeting: Buffer | undefined;
  /** Bytes received since the view was last resumed. */
  receivedBytes = 0;
  /** The keys of lists that the server was asked for in vain, although it does not declare them. */
  readonly #lacking = new Set<string>();
  #state: 'starting' | 'ready' | 'down' | 'closed' = 'starting';
  #backend: Backend | undefined;
  /** The requests that wait for the start of the server. */
  readonly #waiting = new WaitingList<MemberCall>(({ request }) => request?.text.length ?? 0);
  readonly #connection: Connection;
  /** A request starts the server again after this time. */
  #retryAt = 0;

  constructor(options: MemberOptions) {
    this.name = options.name;
    this.index = options.index;
    this.#options = options;
    this.calls = new MemberCalls(options.calls);
    this.#connection = new Connection(options.server);
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  get isStarting(): boolean {
    return this.#state === 'starting';
  }

  /** As `RestartPolicy.failedStarts`. */
  get failedStarts(): number {
    return this.#connection.failedStarts;
  }

  get pid(): number | undefined {
    return this.#backend?.pid;
  }

  /** True if the server declares this capability, or this extension. The names of extensions have a slash. */
  declares(capability: string): boolean {
    const { capabilities } = this.handshake ?? {};
    const declared = capability.includes('/') && isObject(capabilities) ? capabilities['extensions'] : capabilities;
    return isObject(declared) && Object.hasOwn(declared, capability);
  }

  /** True if the server declares this list, or declares no list at all: such a server may have one all the same. */
  mayHave({ list: { key }, capability }: ListMethod): boolean {
    if (this.declares(capability)) return true;
    return baseLists.has(capability) && ![...baseLists].some((each) => this.declares(each)) && !this.#lacking.has(key);
  }

  /** The server does not have a list that it does not declare. */
  noteLacking({ list: { key } }: ListMethod): void {
    this.#lacking.add(key);
  }

  /** Starts the server. */
  start(): void {
    this.#state = 'starting';
    const { server, opening, initialize, startTimeoutMs } = this.#options;
    const isReplacement = this.handshake !== undefined;
    const backend = this.#connection.open((events) => server.open(events, opening), {
      request: initialize,
      timeoutMs: startTimeoutMs,
      maxEarlyBytes,
      events: this,
      onAnswer: (response) => this.#handleAnswer(response, isReplacement),
      onFailed: (end) => this.#handleEnd(end),
    });
    this.#backend = backend;
    backend.send(initialize, opening?.headers?.() ?? noHeaders);
  }

  /**
   * Sends a message of the client, or a request of the view.
   * @param onOutcome set for a request of the view itself
   * @returns `down` if the server is not there, and does not start again now
   */
  send(message: Message, headers: ForwardedHeaders | undefined, onOutcome?: OnOutcome): 'sent' | 'full' | 'down' {
    if (message.kind !== 'request') {
      const own = this.#forServer(message);
      if (this.#state === 'ready' && own !== undefined) this.#backend?.send(own, headers);
      return 'sent';
    }
    const call = memberCallOf(message, headers, onOutcome);
    if (this.#state === 'ready') return this.#pass(call);
    // A request waits for the start that is due.
    const isLost = this.#state === 'down' && !this.#connection.isPausing;
    if (this.#state === 'closed' || (isLost && performance.now() < this.#retryAt)) return 'down';
    if (!this.#waiting.hasRoomFor(message.text.length)) return 'full';
    this.#waiting.push(call);
    if (isLost) this.start();
    return 'sent';
  }

  /** True if the server may report progress with this token: a request that it got has the token, or had it just now. */
  mayReport(token: RequestId): boolean {
    return this.calls.byToken(token) !== undefined;
  }

  /** Ends a request, whose answer nobody waits for any more. Returns true if the server had it. */
  drop(id: RequestId): boolean {
    this.#waiting.remove((waiting) => waiting.id === id);
    this.calls.gate.remove(id, id);
    return this.calls.take(id) !== undefined;
  }

  /** Passes on that the client has cancelled a request of this server. */
  cancel(cancellation: Message, headers: ForwardedHeaders | undefined): void {
    const call = this.calls.get(cancellation.cancels);
    this.send(cancellation, headers);
    const passNext = (): void => contain('backend', () => this.#passNext());
    if (call !== undefined) this.calls.cancel(call, this.#options.cancelGraceMs, passNext);
  }

  pause(): void {
    this.#backend?.pause();
  }

  resume(): void {
    this.receivedBytes = 0;
    this.#backend?.resume();
  }

  async close(how?: CloseOptions): Promise<void> {
    this.#state = 'closed';
    this.#connection.stop();
    for (const { onOutcome } of this.calls.values()) onOutcome?.(undefined);
    this.calls.forgetCancelled();
    await this.#backend?.close(how);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    for (const received of messages) {
      this.receivedBytes += received.text.length;
      const message = this.#forClient(received);
      if (message === undefined) continue;
      const call = message.kind === 'response' ? this.calls.settle(message.id) : undefined;
      if (call !== undefined) this.#connection.hasWorked = true;
      if (call?.onOutcome !== undefined) call.onOutcome(message);
      else {
        const passed = call === undefined ? withoutStrayId(message) : message;
        this.#options.listener.onMessage(this, passed, relatedRequests, call);
      }
      if (call !== undefined) this.#passNext();
    }
  }

  onNoise(text: Buffer, more?: number): void {
    this.#options.listener.onNoise(text, more);
  }

  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    for (const id of ids) {
      const call = this.calls.take(id);
      if (call?.onOutcome !== undefined) call.onOutcome(undefined);
      else this.#options.listener.onUnanswered([id], reason, isFinal);
    }
    this.#passNext();
  }

  onEnd(end: BackendEnd): void {
    this.#handleEnd(end);
  }

  #handleAnswer({ isError, text }: Message, isReplacement: boolean): boolean {
    const handshake = isError ? undefined : readHandshake(text);
    if (handshake === undefined) return false;
    this.handshake = handshake;
    this.greeting = Buffer.from(text);
    this.#state = 'ready';
    this.#options.listener.onReady(this, isReplacement);
    for (const call of this.#waiting.takeAll()) if (this.#pass(call) === 'full') this.#leave(call, 'server_busy');
    return true;
  }

  /** A message of the server, as clients get it. One with too many URIs is not passed on. */
  #forClient(message: Message): Message | undefined {
    const { pages } = this.#options;
    const forClient = pages === undefined ? message : pages.forClient(message);
    if (forClient !== undefined || message.kind === 'notification' || message.id == null) return forClient;
    const fault = createFaultResponse('response_too_complex', message.id);
    if (message.kind === 'response') return fault;
    this.#backend?.send(fault);
    return undefined;
  }

  #forServer(message: Message): Message | undefined {
    const { pages } = this.#options;
    return pages === undefined ? message : pages.forServer(message);
  }

  #pass(call: MemberCall): 'sent' | 'full' {
    const admitted = this.calls.gate.admit(call);
    if (admitted !== 'now') return admitted === 'later' ? 'sent' : 'full';
    const message = call.request && this.#forServer(call.request);
    if (message === undefined) {
      queueMicrotask(() => contain('backend', () => this.#leave(call, 'too_many_values')));
      return 'sent';
    }
    const sent = this.#backend?.send(message, call.headers);
    if (sent === 'full') return 'full';
    this.calls.add(call); // `ended`: the end is about to be reported
    return 'sent';
  }

  /** Sends the calls that may pass the gate now. */
  #passNext(): void {
    for (let next = this.calls.gate.next(); next !== undefined; next = this.calls.gate.next())
      if (this.#pass(next) === 'full') this.#leave(next, 'server_busy');
  }

  /** A request gets no answer of the server. */
  #leave({ id, onOutcome }: MemberCall, reason: Reason): void {
    if (onOutcome !== undefined) onOutcome(undefined);
    else this.#options.listener.onUnanswered([id], reason, true);
  }

  /** The server is gone. Requests that do no harm twice run again once (docs/design.md, D5); the others end now (P3). */
  #handleEnd(end: BackendEnd): void {
    if (this.#state === 'closed') return;
    const wasReady = this.#state === 'ready';
    const isCrashLoop = wasReady ? this.#connection.countLoss() : this.#connection.countFailedStart();
    const { pauseMs } = this.#connection;
    this.#state = 'down';
    this.#retryAt = performance.now() + Math.max(pauseMs, retryMs);
    // One that has never started, or is in a crash loop, starts for a request.
    const startsAgain = this.handshake !== undefined && !isCrashLoop;
    const runsAgain = wasReady && startsAgain;
    const undelivered = new Set(end.undelivered?.map(({ message }) => message.id));
    const lost: MemberCall[] = runsAgain ? [] : [...this.#waiting.takeAll()];
    for (const call of this.calls.all()) {
      this.calls.take(call.id);
      const mayRunAgain = undelivered.has(call.id) || methodOf(call.method).effect !== 'acts';
      if (!runsAgain || call.isRerun || !mayRunAgain) lost.push(call);
      else this.#waiting.push(Object.assign(call, { isRerun: true }));
    }
    this.calls.forgetCancelled();
    // The server has not had the calls at its gate.
    for (const call of this.calls.gate.takeAll()) {
      if (startsAgain) this.#waiting.push(call);
      else lost.push(call);
    }
    const reason = end.reason === 'line_too_long' || end.reason === 'memory_limit' ? end.reason : 'server_exited';
    for (const call of lost) this.#leave(call, reason);
    this.#options.listener.onDown(this, end, !wasReady);
    if (isCrashLoop) this.#options.listener.onCrashLoop(this, Math.round(pauseMs));
    if (!startsAgain) return;
    this.#connection.afterPause(() => contain('backend', () => this.start()));
  }
}

/** A response to no request of the server. Without its id, it cannot answer a request at another server (P2). */
const withoutStrayId = (message: Message): Message =>
  message.kind === 'response' ? changedMessage(message, message.text, { id: undefined }) : message;
