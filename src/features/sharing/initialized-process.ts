import type { Backend, BackendEnd, BackendEvents, CloseOptions, RequestIds, Sent } from '../../core/backend/backend.ts';
import { isResponse, type OwnAnswer, OwnRequests } from '../../core/backend/own-requests.ts';
import { clientIdOf } from '../../core/call/session-calls.ts';
import { AskGate, isAskedBeside } from '../../core/multiplex/ask-gate.ts';
import { CallBook } from '../../core/multiplex/call-book.ts';
import { Route } from '../../core/multiplex/route.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { spliceCancelledId } from '../../core/protocol/json.ts';
import { changedMessage } from '../../core/protocol/message/changed-message.ts';
import { cancelled, createMessage, emptyResult, type Message } from '../../core/protocol/message/message.ts';
import { progressMethod } from '../../core/protocol/message/progress-fast-path.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';
import { anonymous, type Principal } from '../../core/protocol/principal.ts';
import { methodNotFound } from '../../core/protocol/revisions.ts';
import { detach } from '../../core/util/boundary.ts';
import { type ProcessCall, ProcessIds, type WaitingRequest } from './process-call.ts';
import { ProcessOutput } from './process-output.ts';
import { ProcessStart } from './process-start.ts';
import { Seat, type SeatHost } from './seat.ts';
import { Wishes, type WishRequest } from './wishes.ts';

/** The longest wait for the answer that shows that a kept process still works. */
const maxPingMs = 2_000;

/** The owner of a process, and how it deals with requests. */
export interface ProcessOptions {
  /** The user whose sessions may use the process; undefined for all users. */
  readonly owner: Principal | undefined;
  /** True if the clients declare that the server may send them requests. */
  readonly asksClients: boolean;
  /** How long the server may still write about a cancelled request. */
  readonly cancelGraceMs: number;
  /** True if the gateway knows its users. A process with a task is then not handed over: its tasks have owners. */
  readonly ownsTasks?: boolean;
  /** A message belongs to none of several sessions, or to a session that has left. */
  onDropped?: (() => void) | undefined;
  /** The server has accepted `initialize`. */
  onOpened?: (() => void) | undefined;
  /** The process has ended, by itself or not. Called before its sessions know. */
  onEnded?: (() => void) | undefined;
}

const noClient = { code: methodNotFound, message: 'No client is connected.' };

/** Notifications that only the session may send that the named request or token belongs to. */
const ownersOnly: ReadonlySet<string | undefined> = new Set(['notifications/cancelled', progressMethod]);

/**
 * A process that sessions use one after another, or at the same time. The ids of its first session stay unchanged. Each
 * request of another session gets a number that is never used again, so no message of one session reaches another
 * (P2, P11). If the server may send requests to its clients, only one session at a time has calls that it may ask about.
 */
export class InitializedProcess implements BackendEvents, SeatHost {
  readonly options: ProcessOptions;
  /** Called when the process ends by itself while no session uses it. */
  onUnusedEnd: (() => void) | undefined;
  readonly #backend: Backend;
  readonly #seats = new Set<Seat>();
  readonly #book = new CallBook<ProcessCall>();
  readonly #ids = new ProcessIds(this.#book);
  readonly #route = new Route(this.#book, ({ owner }) => owner);
  readonly #gate: AskGate<WaitingRequest>;
  readonly #wishes = new Wishes(this.#seats);
  readonly #output: ProcessOutput;
  readonly #start = new ProcessStart();
  readonly #ownRequests = new OwnRequests();
  /** By `performance.now()`. */
  readonly startedAt = performance.now();
  #hasEnded = false;
  /** Resolves when nothing of the process is left; undefined while it is not being ended. */
  closed: Promise<void> | undefined;
  /** True once a session asked for a task (2025-11-25), which outlives the session. */
  #hasBegunTask = false;
  /** True once the server has not accepted a message of its session. */
  #isStuck = false;
  #isPaused = false;

  /** @param open opens the backend, with these events */
  constructor(open: (events: BackendEvents) => Backend, options: ProcessOptions) {
    this.options = options;
    this.#gate = new AskGate(({ owner }) => options.asksClients && isAskedBeside(this.#book, owner));
    this.#output = new ProcessOutput({
      seats: this.#seats,
      book: this.#book,
      route: this.#route,
      wishes: this.#wishes,
      onAnswered: (call, response) => this.#handleAnswer(call, response),
      takeOwn: (response) => this.#ownRequests.answer(response),
      answer: (id, isKnown) => this.#answer(id, isKnown),
      onDropped: () => {
        if (this.#seats.size > 0) options.onDropped?.();
      },
    });
    this.#backend = open(this);
  }

  get pid(): number | undefined {
    return this.#backend.pid;
  }

  /** The number of sessions that use the process. */
  get size(): number {
    return this.#seats.size;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * True if a session can use the process although it would get one of its own. Only one process of the server can run.
   */
  get isOnlyChoice(): boolean {
    return this.answer !== undefined && !this.#hasEnded && !this.#isStuck && this.closed === undefined;
  }

  /** True until the process has been initialized for so long. */
  isNew(ms: number): boolean {
    const { answeredAt } = this.#start;
    return !this.#hasEnded && (answeredAt === undefined || performance.now() - answeredAt < ms);
  }

  /** The server's answer to the first `initialize`; undefined before, or if the server refused it. */
  get answer(): Buffer | undefined {
    return this.#start.answer;
  }

  /**
   * True if a session can hand the process over: nothing of the session is under way. The next session may belong to
   * another user or have fewer scopes, so it must not find the tasks of this one.
   */
  get isReusable(): boolean {
    if (this.#hasBegunTask && this.options.ownsTasks === true) return false;
    return this.#isUsable && this.#book.isClear && this.#output.questions.size === 0;
  }

  /** True if another session can use the process at the same time. */
  get isJoinable(): boolean {
    return this.#isUsable && !this.#start.hasTasks;
  }

  /** True while it is not known whether the start succeeds. */
  get isStarting(): boolean {
    const { isConfirmed, hasFailed } = this.#start;
    return !this.#hasEnded && !this.#isStuck && !isConfirmed && !hasFailed && this.#seats.size > 0;
  }

  /** The number of calls that are under way or wait at the gate. */
  get openCalls(): number {
    return this.#book.size + this.#gate.size;
  }

  /**
   * The only session; undefined while a message of the server may be for another one, or for one that has left. After
   * another user, it may be for that user at any time: a message then reaches a session only through a call of its own.
   */
  get #only(): Seat | undefined {
    if (this.#seats.size !== 1 || this.#route.users.areSeveral || this.#hasLeftCalls) return undefined;
    const [first] = this.#seats;
    return first;
  }

  /** True while the server may write for a session that has left. */
  get #hasLeftCalls(): boolean {
    if (!this.#book.hasCancelled) return false;
    return this.#book.isInDoubt || [...this.#book.speakable()].some(({ owner }) => owner.hasLeft);
  }

  get #isUsable(): boolean {
    return this.#start.isDone && !this.#hasEnded && !this.#isStuck;
  }

  /** Resolves when the process can be joined, or when its start has failed. */
  whenStarted(): Promise<void> {
    return this.#start.whenSettled();
  }

  /** A session of a user begins to use the process. Returns undefined if the process has ended. */
  join(receiver: BackendEvents, user: Principal = anonymous): Seat | undefined {
    if (this.#hasEnded) return undefined;
    this.#route.users.note(user);
    const isFirst = this.#seats.size === 0 && this.answer === undefined;
    const seat = new Seat(this, receiver, isFirst);
    this.#seats.add(seat);
    this.updatePause();
    return seat;
  }

  /**
   * As `Backend.send`, for a session. The server gets `notifications/initialized` only once, and a notification about a
   * request or a token only from the session that it belongs to.
   */
  send(seat: Seat, message: Message, headers?: ForwardedHeaders): Sent {
    const { kind, id, method, cancels, progressToken } = message;
    if (this.#hasEnded) return 'ended';
    if (kind === 'response') return this.#sendResponse(seat, message, headers);
    if (kind === 'request' && id !== undefined && id !== null) return this.#sendRequest(seat, message, headers);
    if (cancels !== undefined) return this.#sendCancel(seat, message, cancels, headers);
    if (progressToken !== undefined && !this.#output.questions.hasToken(seat, progressToken)) return 'sent';
    // What names a request or a token in no valid way is nobody's.
    if (this.#only === undefined && progressToken === undefined && ownersOnly.has(method)) return 'sent';
    if (message.taskId !== undefined && this.#route.users.areSeveral) return 'sent';
    if (method !== 'notifications/initialized') return this.#write(message, headers);
    if (this.#start.isConfirmed) return 'sent';
    const sent = this.#write(message, headers);
    this.#start.confirm();
    return sent;
  }

  /** A session cannot answer for another session. */
  #sendResponse(seat: Seat, response: Message, headers?: ForwardedHeaders): Sent {
    const { id } = response;
    if (id === undefined || id === null) return 'sent';
    if (!this.#output.questions.settle(seat, id) && this.#only === undefined) return 'sent';
    return this.#write(response, headers);
  }

  #sendRequest(seat: Seat, request: Message, headers?: ForwardedHeaders): Sent {
    const { mayAsk } = methodOf(request.method);
    const admitted = this.#only === undefined ? this.#gate.admit({ owner: seat, mayAsk, request, headers }) : 'now';
    if (admitted === 'now') return this.#forward(seat, request, headers);
    return admitted === 'later' ? 'sent' : 'full';
  }

  #forward(seat: Seat, request: Message, headers?: ForwardedHeaders): Sent {
    const answer = this.#wishes.note(seat, request);
    if (answer !== undefined) {
      this.#sendWishes(this.#wishes.levelRequests());
      queueMicrotask(() => seat.deliver([answer], undefined, false));
      return 'sent';
    }
    if (request.asksForTask) this.#hasBegunTask = true;
    const { call, sent: numbered } = this.#ids.number(seat, request);
    this.#book.add(call);
    if (request.method === 'initialize') this.#start.requestId = call.id;
    const sent = this.#write(numbered, headers);
    if (sent !== 'sent') this.#book.take(call.id);
    return sent;
  }

  #sendCancel(seat: Seat, notification: Message, clientId: RequestId, headers?: ForwardedHeaders): Sent {
    if (this.#gate.remove(seat, clientId)) return 'sent';
    const call = this.#book.all().find((each) => each.owner === seat && clientIdOf(each) === clientId);
    // The server has answered it, or the id is that of another session's request.
    if (call === undefined) return 'sent';
    this.#cancel(call);
    if (call.renumbered === undefined) return this.#write(notification, headers);
    const text = spliceCancelledId(notification.text, JSON.stringify(call.id));
    return this.#write(changedMessage(notification, text, { cancels: call.id }), headers);
  }

  /** A session waits no more for a request. The server may still write about it for a while. */
  #cancel(call: ProcessCall): void {
    this.#book.cancel(call, this.options.cancelGraceMs, () => this.#passGate());
  }

  /** Sends the requests that may pass the gate now. */
  #passGate(): void {
    for (let next = this.#gate.next(); next !== undefined; next = this.#gate.next()) {
      const { owner, request, headers } = next;
      const sent = this.#forward(owner, request, headers);
      if (sent !== 'sent') owner.noteUnanswered([request.id as RequestId], 'server_busy', true);
    }
  }

  #write(message: Message, headers?: ForwardedHeaders): Sent {
    const sent = this.#backend.send(message, headers);
    // The server does not read: its process does not serve another session.
    if (sent !== 'sent') this.#isStuck = true;
    return sent;
  }

  /** Stops reading while all of the output would wait, or while a session has left too much unread. */
  updatePause(): void {
    const [first] = this.#seats;
    const isAlone = this.#seats.size === 1;
    const isPaused = isAlone ? first?.isPaused === true : [...this.#seats].some(({ holdsUp }) => holdsUp);
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#backend.pause();
    else this.#backend.resume();
  }

  close(how?: CloseOptions): Promise<void> {
    this.#book.forgetCancelled();
    this.#start.fail();
    this.closed = this.#backend.close(how);
    return this.closed;
  }

  /** A session leaves the process. Its subscriptions end, and later output for it goes to nobody. */
  leave(seat: Seat): void {
    this.#seats.delete(seat);
    this.#output.elicitations.release(seat);
    this.updatePause();
    if (!this.#start.isDone) this.#start.fail();
    if (this.#hasEnded) return;
    this.#sendWishes(this.#wishes.requestsAfter(seat));
    if (this.#seats.size === 0) return;
    this.#gate.removeAll(seat);
    for (const call of this.#book.all()) {
      if (call.owner !== seat) continue;
      this.#write(cancelled(call.id, 'The session has ended.'));
      this.#cancel(call);
    }
    for (const id of this.#output.questions.of(seat)) {
      this.#output.questions.settle(seat, id);
      this.#answer(id, false);
    }
  }

  /**
   * Waits until the server has written everything that belongs to the session before, and shows that it works.
   * @returns false if the server does not answer in time, or has ended
   */
  async isReady(): Promise<boolean> {
    if (this.#hasEnded) return false;
    return isResponse(await this.#request('ping', undefined, maxPingMs));
  }

  /** Tells the server what the sessions want together. */
  #sendWishes(requests: readonly WishRequest[]): void {
    for (const { method, params } of requests) detach('backend', this.#request(method, params));
  }

  /** Sends a request of the gateway itself. */
  #request(method: string, params?: object, limitMs?: number): Promise<OwnAnswer> {
    const request = createMessage({ id: this.#ids.next(), method, ...(params && { params }) });
    return this.#ownRequests.send(request, (message) => this.#write(message), limitMs);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    const only = this.#only;
    // Mostly every message is for this session, under the ids that the server uses.
    if (only?.keepsIds === true && !this.#ids.hasRenumbered && this.#ownRequests.areNone) {
      for (const message of messages) this.#output.deliveriesOf(message, only);
      return only.deliver(messages, relatedRequests, true);
    }
    let receiver: Seat | undefined;
    let batch: Message[] = [];
    for (const message of messages) {
      // An answer can be the last message for a session that has left.
      for (const [seat, forSeat] of this.#output.deliveriesOf(message, this.#only)) {
        if (seat !== receiver) {
          receiver?.deliver(batch, relatedRequests, this.#seats.size === 1);
          batch = [];
        }
        receiver = seat;
        batch.push(forSeat);
      }
    }
    receiver?.deliver(batch, relatedRequests, this.#seats.size === 1);
  }

  #handleAnswer({ id, owner, subscription }: ProcessCall, { text, isError }: Message): void {
    this.#wishes.noteAnswer(owner, subscription, isError);
    if (id === this.#start.requestId) {
      this.#start.noteAnswer(text, isError);
      if (!isError) this.options.onOpened?.();
    }
    if (this.#gate.size > 0) queueMicrotask(() => this.#passGate());
  }

  /** Answers a request of the server that no client can answer. */
  #answer(id: RequestId, isKnown: boolean): void {
    this.#backend.send(isKnown ? emptyResult({ id }) : createMessage({ id, error: noClient }));
  }

  onNoise(text: Buffer, more?: number): void {
    const [first] = this.#seats;
    first?.receiver.onNoise(text, more);
  }

  onUnanswered(ids: RequestIds, reason: Parameters<BackendEvents['onUnanswered']>[1], isFinal?: boolean): void {
    for (const id of ids) {
      const call = this.#book.take(id);
      call?.owner.noteUnanswered([clientIdOf(call)], reason, isFinal);
    }
    this.#passGate();
  }

  onState(state: string): void {
    for (const { receiver } of this.#seats) receiver.onState?.(state);
  }

  onEnd(end: BackendEnd): void {
    this.#hasEnded = true;
    this.options.onEnded?.();
    this.#book.forgetCancelled();
    this.#ownRequests.end(end);
    const seats = [...this.#seats];
    this.#seats.clear();
    if (seats.length === 0) this.onUnusedEnd?.();
    for (const seat of seats) seat.end(end);
    this.#start.fail();
  }
}
