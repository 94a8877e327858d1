import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { RequestNumbers } from '../../protocol/ids/own-ids.ts';
import { spliceCancelledId } from '../../protocol/json/splice.ts';
import { cancelled, changedMessage, createMessage, type Message } from '../../protocol/message/message.ts';
import { progressMethod } from '../../protocol/message/progress-fast-path.ts';
import { restoreId, restoreToken } from '../../protocol/modern/renumber.ts';
import { anonymous, type Principal, UsersOfProcess } from '../../protocol/principal.ts';
import { methodNotFound } from '../../protocol/revisions.ts';
import { detach } from '../../util/boundary.ts';
import type { Backend, BackendEnd, BackendEvents, CloseOptions, RequestIds } from '../backend.ts';
import { isResponse, type OwnAnswer, OwnRequests } from '../own-requests.ts';
import { InputTurns } from './input-turns.ts';
import { MemberCalls } from './member-calls.ts';
import { type MemberCall, type MemberHost, ProcessMember } from './process-member.ts';
import { ProcessRouting } from './process-routing.ts';
import { ProcessSettings } from './process-settings.ts';
import { ProcessStart } from './process-start.ts';
import { ServerQuestions } from './server-questions.ts';

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

/** The members that get a message, each with the message under its ids. */
type Deliveries = readonly (readonly [ProcessMember, Message])[];

const noDelivery: Deliveries = [];

/** Notifications that only the session may send that the named request or token belongs to. */
const ownersOnly: ReadonlySet<string | undefined> = new Set(['notifications/cancelled', progressMethod]);

/**
 * A process that sessions use one after another, or at the same time. The ids of its first session stay unchanged. Each
 * request of another session gets a number that is never used again, so no message of one session reaches another
 * (P2, P11). If the server may send requests to its clients, only one session at a time has calls that it may ask about.
 */
export class InitializedProcess implements BackendEvents, MemberHost {
  readonly options: ProcessOptions;
  /** Called when the process ends by itself while no session uses it. */
  onUnusedEnd: (() => void) | undefined;
  readonly #backend: Backend;
  readonly #members = new Set<ProcessMember>();
  readonly #calls = new MemberCalls();
  /** Requests from the server that its session has not answered. */
  readonly #questions = new ServerQuestions();
  readonly #routing = new ProcessRouting(this.#members, this.#calls.byId);
  readonly #settings = new ProcessSettings(this.#members);
  readonly #turns = new InputTurns(this.#calls.byId);
  readonly #start = new ProcessStart();
  readonly #ownRequests = new OwnRequests();
  /** By `performance.now()`. */
  readonly startedAt = performance.now();
  #hasEnded = false;
  #closed: Promise<void> | undefined;
  /** True once a session asked for a task (2025-11-25), which outlives the session. */
  #hasBegunTask = false;
  /** True once the server has not accepted a message of its session. */
  #isStuck = false;
  #isPaused = false;
  readonly #users = new UsersOfProcess();

  /** @param open opens the backend, with these events */
  constructor(open: (events: BackendEvents) => Backend, options: ProcessOptions) {
    this.options = options;
    this.#backend = open(this);
  }

  get pid(): number | undefined {
    return this.#backend.pid;
  }

  /** The number of sessions that use the process. */
  get size(): number {
    return this.#members.size;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Resolves when nothing of the process is left; undefined while it is not being ended. */
  get closed(): Promise<void> | undefined {
    return this.#closed;
  }

  /**
   * True if a session can use the process although it would get one of its own. Only one process of the server can run.
   */
  get isOnlyChoice(): boolean {
    return this.answer !== undefined && !this.#hasEnded && !this.#isStuck && this.#closed === undefined;
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
    return this.#isUsable && this.#calls.size === 0 && this.#questions.size === 0;
  }

  /** True if another session can use the process at the same time. */
  get isJoinable(): boolean {
    return this.#isUsable && !this.#start.hasTasks;
  }

  /** True while it is not known whether the start succeeds. */
  get isStarting(): boolean {
    const { isConfirmed, hasFailed } = this.#start;
    return !this.#hasEnded && !this.#isStuck && !isConfirmed && !hasFailed && this.#members.size > 0;
  }

  /** The number of calls that are under way or wait for their turn. */
  get openCalls(): number {
    return this.#calls.size + this.#turns.size;
  }

  /**
   * The only member; undefined while a message of the server may be for another one, or for one that has left. After
   * another user, it may be for that user at any time: a message then reaches a session only through a call of its own.
   */
  get #only(): ProcessMember | undefined {
    if (this.#members.size !== 1 || this.#calls.hasAbandoned || this.#users.areSeveral) return undefined;
    const [first] = this.#members;
    return first;
  }

  get #isUsable(): boolean {
    return this.#start.isDone && !this.#hasEnded && !this.#isStuck;
  }

  /** Resolves when the process can be joined, or when its start has failed. */
  whenStarted(): Promise<void> {
    return this.#start.whenSettled();
  }

  /** A session of a user begins to use the process. Returns undefined if the process has ended. */
  join(receiver: BackendEvents, user: Principal = anonymous): ProcessMember | undefined {
    if (this.#hasEnded) return undefined;
    this.#users.note(user);
    const isFirst = this.#members.size === 0 && this.answer === undefined;
    const member = new ProcessMember(this, receiver, isFirst);
    this.#members.add(member);
    this.updatePause();
    return member;
  }

  /**
   * As `Backend.send`, for a member. The server gets `notifications/initialized` only once, and a notification about a
   * request or a token only from the member that it belongs to.
   */
  send(member: ProcessMember, message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    const { kind, id, method, cancels, progressToken } = message;
    if (this.#hasEnded) return 'ended';
    if (kind === 'response') return this.#sendResponse(member, message, headers);
    if (kind === 'request' && id !== undefined && id !== null) return this.#sendRequest(member, message, headers);
    if (cancels !== undefined) return this.#sendCancel(member, message, cancels, headers);
    if (progressToken !== undefined && !this.#questions.hasToken(member, progressToken)) return 'sent';
    // What names a request or a token in no valid way is nobody's.
    if (this.#only === undefined && progressToken === undefined && ownersOnly.has(method)) return 'sent';
    if (message.taskId !== undefined && this.#users.areSeveral) return 'sent';
    if (method !== 'notifications/initialized') return this.#write(message, headers);
    if (this.#start.isConfirmed) return 'sent';
    const sent = this.#write(message, headers);
    this.#start.confirm();
    return sent;
  }

  /** A session cannot answer for another session. */
  #sendResponse(member: ProcessMember, response: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    const { id } = response;
    if (id === undefined || id === null) return 'sent';
    if (!this.#questions.settle(member, id) && this.#only === undefined) return 'sent';
    return this.#write(response, headers);
  }

  #sendRequest(member: ProcessMember, request: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    if (!this.options.asksClients || this.#only !== undefined) return this.#forward(member, request, headers);
    const turn = this.#turns.admit(member, request, headers);
    if (turn === 'now') return this.#forward(member, request, headers);
    return turn === 'later' ? 'sent' : 'full';
  }

  #forward(member: ProcessMember, request: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    const answer = this.#settings.note(member, request);
    if (answer !== undefined) {
      for (const { method, params } of this.#settings.levelRequests()) detach('backend', this.#request(method, params));
      queueMicrotask(() => member.deliver([answer], undefined, false));
      return 'sent';
    }
    if (request.asksForTask) this.#hasBegunTask = true;
    const numbered = this.#calls.add(member, request);
    const id = numbered.id as RequestId;
    if (request.method === 'initialize') this.#start.requestId = id;
    const sent = this.#write(numbered, headers);
    if (sent !== 'sent') this.#calls.take(id);
    return sent;
  }

  #sendCancel(
    member: ProcessMember,
    notification: Message,
    clientId: RequestId,
    headers?: ForwardedHeaders,
  ): ReturnType<Backend['send']> {
    if (this.#turns.remove(member, clientId)) return 'sent';
    const found = this.#calls.openOf(member, clientId);
    // The server has answered it, or the id is that of another member's request.
    if (found === undefined) return 'sent';
    const [id, call] = found;
    this.#retire(id, call);
    if (call.renumbered === undefined) return this.#write(notification, headers);
    const text = spliceCancelledId(notification.text, JSON.stringify(id));
    return this.#write(changedMessage(notification, text, { cancels: id }), headers);
  }

  /** A session waits no more for a request. The server may still write about it for a while. */
  #retire(id: RequestId, call: MemberCall): void {
    const drop = (): void => {
      if (this.#calls.take(id) !== undefined) this.#continueTurns();
    };
    call.graceTimer ??= setTimeout(drop, this.options.cancelGraceMs).unref();
  }

  #continueTurns(): void {
    for (let next = this.#turns.next(); next !== undefined; next = this.#turns.next()) {
      const { member, request, headers } = next;
      const sent = this.#forward(member, request, headers);
      if (sent !== 'sent') member.receiver.onUnanswered([request.id as RequestId], 'server_busy', true);
    }
  }

  #write(message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    const sent = this.#backend.send(message, headers);
    // The server does not read: its process does not serve another session.
    if (sent !== 'sent') this.#isStuck = true;
    return sent;
  }

  /** Stops reading while all of the output would wait, or while a session has left too much unread. */
  updatePause(): void {
    const [first] = this.#members;
    const isAlone = this.#members.size === 1;
    const isPaused = isAlone ? first?.isPaused === true : [...this.#members].some(({ holdsUp }) => holdsUp);
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#backend.pause();
    else this.#backend.resume();
  }

  close(how?: CloseOptions): Promise<void> {
    this.#calls.clearTimers();
    this.#start.fail();
    this.#closed = this.#backend.close(how);
    return this.#closed;
  }

  /** A session leaves the process. Its subscriptions end, and later output for it goes to nobody. */
  leave(member: ProcessMember): void {
    this.#calls.abandon(member);
    this.#members.delete(member);
    this.#routing.elicitations.release(member);
    this.updatePause();
    if (!this.#start.isDone) this.#start.fail();
    if (this.#hasEnded) return;
    for (const { method, params } of this.#settings.requestsAfter(member))
      detach('backend', this.#request(method, params));
    if (this.#members.size === 0) return;
    this.#turns.removeAll(member);
    for (const [id, call] of this.#calls.of(member)) {
      if (call.graceTimer === undefined) this.#write(cancelled(id, 'The session has ended.'));
      this.#retire(id, call);
    }
    for (const id of this.#questions.of(member)) {
      this.#questions.settle(member, id);
      this.#refuse(id);
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

  /** Sends a request of the gateway itself. */
  #request(method: string, params?: object, limitMs?: number): Promise<OwnAnswer> {
    const request = createMessage({ id: this.#calls.numbers.next(), method, ...(params && { params }) });
    return this.#ownRequests.send(request, (message) => this.#write(message), limitMs);
  }

  /** True if every message of the server is for this session, under the ids that the server uses. */
  #passesUnchanged(only: ProcessMember): boolean {
    return only.keepsIds && !this.#calls.hasRenumbered && this.#ownRequests.areNone;
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    const only = this.#only;
    if (only !== undefined && this.#passesUnchanged(only)) {
      for (const message of messages) this.#receive(message, only);
      return only.deliver(messages, relatedRequests, true);
    }
    let receiver: ProcessMember | undefined;
    let batch: Message[] = [];
    for (const message of messages) {
      // An answer can be the last message for a member that has left.
      for (const [member, forMember] of this.#receive(message, this.#only)) {
        if (member !== receiver) {
          receiver?.deliver(batch, relatedRequests, this.#members.size === 1);
          batch = [];
        }
        receiver = member;
        batch.push(forMember);
      }
    }
    receiver?.deliver(batch, relatedRequests, this.#members.size === 1);
  }

  /** Finds the members that get a message; `only` if there is one member alone. */
  #receive(message: Message, only: ProcessMember | undefined): Deliveries {
    if (message.kind === 'response') return this.#receiveResponse(message, only);
    if (message.kind === 'request') return this.#receiveRequest(message, only);
    const { progressToken, cancels } = message;
    if (cancels !== undefined) {
      const asked = this.#questions.askedBy(cancels) ?? only;
      if (asked !== undefined) this.#questions.settle(asked, cancels);
      return asked === undefined || asked.hasLeft ? this.#drop() : [[asked, message]];
    }
    if (progressToken !== undefined) return this.#receiveProgress(message, progressToken);
    if (only !== undefined) return [[only, message]];
    const members = this.#routing.membersFor(message, this.#users.areSeveral);
    return members.length === 0 ? this.#drop() : members.map((member) => [member, message] as const);
  }

  #receiveResponse(response: Message, only: ProcessMember | undefined): Deliveries {
    const { id, isError, text } = response;
    if (id === undefined || id === null) return only === undefined ? this.#drop() : [[only, response]];
    if (this.#ownRequests.answer(response)) return noDelivery;
    const call = this.#calls.settle(id);
    // The answer to a request that the session no longer knows: the session reports it. Numbers are of other sessions.
    if (call === undefined)
      return only?.keepsIds === true && !RequestNumbers.mayBe(id) ? [[only, response]] : this.#drop();
    this.#settings.noteAnswer(call, isError);
    if (id === this.#start.requestId) {
      this.#start.noteAnswer(text, isError);
      if (!isError) this.options.onOpened?.();
    }
    if (this.#turns.size > 0) queueMicrotask(() => this.#continueTurns());
    const { member, renumbered } = call;
    if (member.hasLeft) return noDelivery;
    if (isError) this.#routing.elicitations.note(member, response);
    return [[member, renumbered === undefined ? response : restoreId(response, renumbered)]];
  }

  #receiveProgress(notification: Message, token: RequestId): Deliveries {
    if (RequestNumbers.mayBe(token)) {
      const owner = this.#calls.ownerOf(token);
      if (owner?.tokenText === undefined || owner.member.hasLeft) return this.#drop();
      return [[owner.member, restoreToken(notification, owner.clientToken, owner.tokenText)]];
    }
    // Only the ids of the first session are unchanged.
    for (const member of this.#members) if (member.keepsIds) return [[member, notification]];
    return this.#drop();
  }

  /** Only one session can get a request from the server. If there is none, the gateway answers: no server must wait. */
  #receiveRequest(request: Message, only: ProcessMember | undefined): Deliveries {
    const { id, method } = request;
    if (id === undefined || id === null) return noDelivery;
    if (only === undefined && method === 'ping') {
      this.#backend.send(createMessage({ id, result: {} }));
      return noDelivery;
    }
    const member = only ?? this.#routing.memberAsked();
    if (member === undefined || member.hasLeft || (only === undefined && this.#questions.isFull)) {
      // Another session may still answer a request with this id. A refusal would answer that one.
      if (this.#questions.askedBy(id) === undefined) this.#refuse(id);
      return noDelivery;
    }
    if (!this.#questions.add(member, request)) return this.#drop();
    this.#routing.elicitations.note(member, request);
    return [[member, request]];
  }

  #refuse(id: RequestId): void {
    this.#backend.send(createMessage({ id, error: { code: methodNotFound, message: 'No client is connected.' } }));
  }

  #drop(): Deliveries {
    if (this.#members.size > 0) this.options.onDropped?.();
    return noDelivery;
  }

  onNoise(text: Buffer, more?: number): void {
    const [first] = this.#members;
    first?.receiver.onNoise(text, more);
  }

  onUnanswered(ids: RequestIds, reason: Parameters<BackendEvents['onUnanswered']>[1], isFinal?: boolean): void {
    for (const id of ids) {
      const call = this.#calls.take(id);
      if (call?.member.hasLeft === false) call.member.receiver.onUnanswered([call.clientId], reason, isFinal);
    }
    this.#continueTurns();
  }

  onState(state: string): void {
    for (const { receiver } of this.#members) receiver.onState?.(state);
  }

  onEnd(end: BackendEnd): void {
    this.#hasEnded = true;
    this.options.onEnded?.();
    this.#calls.clearTimers();
    this.#ownRequests.end(end);
    const members = [...this.#members];
    this.#members.clear();
    if (members.length === 0) this.onUnusedEnd?.();
    for (const member of members) member.end(end);
    this.#start.fail();
  }
}
