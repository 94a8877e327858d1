import { randomBytes, randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from '../../../core/call/answer.ts';
import type { FaultData } from '../../../core/call/call-answer.ts';
import type { RequestStateContent, RequestStates } from '../../../core/keys/request-state.ts';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import { maxForeignId } from '../../../core/protocol/ids/own-ids.ts';
import { readGatewayFault, requestRefusal } from '../../../core/protocol/message/gateway-fault.ts';
import { cancelled, type Message } from '../../../core/protocol/message/message.ts';
import { isVendorNotification } from '../../../core/protocol/message/vendor-notification.ts';
import { requiredFeature } from '../../../core/protocol/methods/askable.ts';
import { methodOf } from '../../../core/protocol/methods/methods.ts';
import { isWanted, type LogLevel } from '../../../core/protocol/modern/log-levels.ts';
import { type RenumberedRequest, restoreId, restoreToken } from '../../../core/protocol/modern/renumber.ts';
import { compareLogPositions, type EventId } from '../../../core/protocol/wire/event-id.ts';
import type { Server } from '../../../core/server/server.ts';
import type { GroupRequestOptions } from '../../../core/session/session-handle.ts';
import type { Values } from '../../../core/store/shared/shared-data.ts';
import { ifUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import type { InitializedServer } from '../translate/modern-on-legacy/legacy-discovery.ts';
import { ask, CallStream, type EventPosition } from './call-stream.ts';
import type { ResponseForm } from './client-form.ts';
import { type GroupClient, stateBinding } from './group-client.ts';
import type { GroupSession, OpenGroupSession } from './group-session.ts';
import { OpenQuestions } from './rounds/open-questions.ts';
import {
  type FollowedCall,
  formatStreamPosition,
  inputRequiredResult,
  type ParkedCall,
  parseStreamPosition,
  toLegacyAnswers,
  toServerQuestion,
} from './rounds/parked-call.ts';
import { type KeptOutcome, RoundOutcome } from './rounds/round-outcome.ts';

/** How often a session that ends at that moment is opened again. */
const maxReopens = 3;

/** Questions within this time are sent to the client together (2026-07-28, basic/patterns/mrtr). */
const bundleMs = 20;

/** How long a client waits for its question until the owner of the session knows that the call needs no reader. */
const maxKeepMs = 1_000;

/** How long outcomes of rounds are kept after the end of their call: a minute, and an allowance for two clocks. */
const keptMs = 65_000;

/** What the calls of a server's groups have in common. */
export interface GroupCallParts {
  readonly server: Server;
  readonly states: RequestStates;
  /** The outcomes of rounds, for clients that send a round again. */
  readonly values: Values;
  readonly ids: CallIds;
  /** How long a parked call waits for its client, in milliseconds. */
  readonly idleMs: number;
  /** Returns the reason that a client gets for a failure. */
  reasonOf(cause: unknown): Reason;
}

/** A request of a client without a session. */
export interface GroupRequest {
  readonly request: Message;
  readonly client: GroupClient;
  readonly form: ResponseForm;
  readonly logLevel: LogLevel | undefined;
  readonly answer: Answer;
}

/**
 * Gives ids to calls. Calls of several instances meet in one session, so the first id is random, and an id that is in
 * use is renumbered there.
 */
export class CallIds {
  readonly #instance = randomBytes(6).toString('base64url');
  #last = randomInt(maxForeignId);

  next(): number {
    this.#last = (this.#last % maxForeignId) + 1;
    return this.#last;
  }

  /** A name for the request with this id, which no request of any instance shares. */
  nameOf(id: number): string {
    return `${this.#instance}-${id}`;
  }
}

/**
 * One request of a client without a session of its own. It runs in a session of the client's group, under an id of the
 * gateway. The response goes to the client in the form of its era.
 *
 * A question of the server ends the request with `input_required` while the call waits in its session. A retry, on any
 * instance, delivers the answers and resumes the call's stream from the log (docs/design.md, D7).
 */
export class GroupCall {
  readonly #parts: GroupCallParts;
  readonly #groupRequest: GroupRequest;
  #id: number;
  #name: string;
  readonly #sent: RenumberedRequest;
  readonly #questions = new OpenQuestions();
  #session: GroupSession | undefined;
  #opened: InitializedServer | undefined;
  readonly #stream: CallStream;
  /** The newest event that an earlier request delivered to the client. */
  #delivered: EventId | undefined;
  #round = 0;
  /** The outcome of the round whose answers this request carries; undefined for the first request. */
  #outcome: RoundOutcome | undefined;
  #bundle: NodeJS.Timeout | undefined;
  /** True once the owner of the session knows that the call needs no reader. */
  #isKept = false;
  /** True if the call is lost here, and another instance may read on with it. */
  #isLeft = false;

  constructor(parts: GroupCallParts, groupRequest: GroupRequest) {
    this.#parts = parts;
    this.#groupRequest = groupRequest;
    this.#id = parts.ids.next();
    this.#name = parts.ids.nameOf(this.#id);
    const { request, form, answer } = groupRequest;
    const { forwarded } = groupRequest.client;
    this.#sent = form.sent(request, this.#id);
    this.#stream = new CallStream({
      forwarded,
      find: () => (this.#session as GroupSession).find(forwarded),
      message: (message, at) => this.#handleMessage(message, at),
      failed: (reason) => detach('session', this.#handleLoss(reason), () => this.#fail('internal')),
    });
    answer.onCancelled(() => this.#cancel('The client no longer waits for the answer.'));
    answer.pointOf = () => {
      const point = this.#point;
      if (point !== undefined) detach('session', this.#keep());
      return point;
    };
  }

  /**
   * Another request may read on with the call, at any instance. The owner of the session would end it otherwise if this
   * instance was lost.
   */
  async #keep(): Promise<void> {
    if (this.#isKept) return;
    this.#isKept = true;
    await this.#session?.keep(this.#id, this.#groupRequest.client.forwarded);
  }

  /** True once this request has ended here. The call itself may go on. */
  get #isOver(): boolean {
    return this.#stream.isStopped;
  }

  /** Where another instance can read on with this call, as JSON text; undefined if it cannot. */
  get #point(): string | undefined {
    const after = this.#questions.after ?? this.#stream.newest;
    if (this.#isOver || after === undefined || this.#session === undefined) return undefined;
    const { answered } = this.#questions;
    const { key: place } = this.#session;
    const point: FollowedCall = { place, call: this.#name, id: this.#id, after: formatStreamPosition(after), answered };
    return JSON.stringify(point);
  }

  /** Runs the request in a session, which is opened if need be. */
  async run(session: GroupSession): Promise<void> {
    const { answer, client } = this.#groupRequest;
    session.begin(this.#name);
    for (let reopened = 0; !this.#isOver; reopened += 1) {
      if (!session.isOpen) answer.report?.awaitsStart();
      const open = await session.open(client.forwarded);
      answer.report?.started();
      // A session that was opened for this request alone has to be ended here.
      if (answer.isOver) return session.release(this.#name);
      this.#session = session;
      const why = typeof open === 'string' ? open : await this.#post(open);
      if (why === undefined) return;
      if (why === 'unknown_session' && reopened < maxReopens) session.forget();
      else if (why !== 'server_start_failed' || session.refusal === undefined)
        return this.#fail(why, this.#stream.refusalData);
      // The client gets the server's own error: it says what is missing, such as a key.
      else return this.#finish(session.refusal);
    }
  }

  /**
   * Resumes a parked call: delivers the answers, and reads on.
   * @param answers results by key, as JSON text
   */
  async resume(
    session: GroupSession,
    { round, value }: RequestStateContent<ParkedCall>,
    answers: ReadonlyMap<string, Buffer>,
  ): Promise<void> {
    this.#id = value.id;
    this.#name = value.call;
    this.#round = round;
    this.#isKept = true; // since the first round
    this.#delivered = parseStreamPosition(value.told);
    this.#questions.noteAnswered(value.answered);
    const { messages, digest } = toLegacyAnswers(value.open, answers);
    this.#outcome = new RoundOutcome(this.#parts.values, value.call, round, digest);
    // While the store is away no outcome is found. A session that is held here accepts each round only once, without
    // the store.
    if (await this.#repeatOutcome()) return;
    const { forwarded } = this.#groupRequest.client;
    const open = await session.reopen(forwarded);
    if (this.#groupRequest.answer.isOver) return;
    if (typeof open === 'string')
      return this.#handleLoss(open === 'unknown_session' ? 'outcome_unknown' : roundRefusal(open));
    this.#session = session;
    this.#opened = open.opened;
    this.#questions.noteAnswered(messages.map(({ id }) => id as RequestId));
    const group = {
      ...this.#groupOptions,
      round: { call: value.id, name: `${value.call} ${round}`, digest },
    };
    const { handle } = open;
    const refused = await ask((reply) => handle.post({ messages, isBatch: false, group }, reply), forwarded);
    if (refused === 'unknown_session') return this.#handleLoss('outcome_unknown');
    // The call itself goes on, for the client whose answers it got, or until these are sent again.
    if (typeof refused === 'string') return this.#answerOnly({ reason: roundRefusal(refused) });
    if (this.#isOver) return;
    // If all questions are answered, only events after `told` have to be in the log still.
    const isComplete = messages.length === value.open.length;
    this.#stream.listen(handle, parseStreamPosition(isComplete ? value.told : value.after));
  }

  /** Reads on with a call that another instance has begun, and that runs in its session or has ended there. */
  async follow(session: GroupSession, { call, id, after, answered }: FollowedCall): Promise<void> {
    this.#id = id;
    this.#name = call;
    this.#questions.noteAnswered(answered);
    session.begin(call);
    const { forwarded } = this.#groupRequest.client;
    const open = await session.reopen(forwarded);
    if (this.#isOver || this.#groupRequest.answer.isOver) return session.release(call);
    this.#session = session;
    if (typeof open === 'string') return this.#fail(open); // the task knows that the call has begun
    this.#opened = open.opened;
    this.#stream.listen(open.handle, parseStreamPosition(after));
  }

  /**
   * Sends the request to a session. Resolves with the reason if it was refused, or with nothing once it was accepted.
   */
  #post({ handle, opened }: OpenGroupSession): Promise<Reason | undefined> {
    this.#opened = opened;
    const group = this.#groupOptions;
    return this.#stream.post(handle, { messages: [this.#sent.request], isBatch: false, group });
  }

  get #groupOptions(): GroupRequestOptions {
    const { logLevel, client } = this.#groupRequest;
    return {
      ...(client.hasOtherUsers && { user: client.principal }),
      ...(logLevel !== undefined && { logLevel }),
    };
  }

  #handleMessage(message: Message, { before, at }: EventPosition): void {
    const { kind, cancels } = message;
    if (kind === 'response') this.#finish(message);
    else if (kind === 'request') this.#handleQuestion(message, before, at);
    else if (cancels !== undefined) this.#questions.withdraw(cancels);
    else if (at === undefined || this.#delivered === undefined || compareLogPositions(at, this.#delivered) > 0)
      this.#passNotification(message);
  }

  /** Passes on a notification that belongs to the request. */
  #passNotification(message: Message): void {
    const { clientToken, tokenText } = this.#sent;
    const { answer, logLevel } = this.#groupRequest;
    // Messages from before this round can have the level of another request.
    const isLog = message.method === 'notifications/message' && isWanted(message, logLevel);
    if (isLog || isVendorNotification(message)) answer.message(message);
    if (message.method !== 'notifications/progress' || tokenText === undefined) return;
    answer.message(restoreToken(message, clientToken, tokenText));
  }

  #handleQuestion(message: Message, before: EventId | undefined, at: EventId | undefined): void {
    if (this.#questions.isAnswered(message.id as RequestId)) return;
    const { request, client, form } = this.#groupRequest;
    const need = requiredFeature(message);
    const isAskable = need !== undefined && methodOf(request.method).mayAsk && before !== undefined;
    if (!isAskable || at === undefined || this.#questions.isFull) {
      this.#sendToSession(requestRefusal(message));
      return;
    }
    if (!client.askable.has(need.flag)) {
      this.#sendToSession(requestRefusal(message));
      if (!form.namesMissingCapabilities) return;
      this.#cancelAtServer('The client does not support the input that the server requests.');
      this.#conclude({ reason: 'missing_capability', data: { requiredCapabilities: need.required } });
      return;
    }
    this.#questions.add(toServerQuestion(message, at), before);
    this.#bundle ??= setTimeout(() => detach('session', this.#park()), bundleMs);
  }

  /** Ends the request with the server's questions; the call waits for the answers in its session. */
  async #park(): Promise<void> {
    this.#bundle = undefined;
    const { open, answered, after } = this.#questions;
    if (this.#isOver || after === undefined) return;
    const { answer, request, client } = this.#groupRequest;
    const { server, states, idleMs } = this.#parts;
    const session = this.#session as GroupSession;
    const parked: ParkedCall = {
      place: session.key,
      call: this.#name,
      id: this.#id,
      after: formatStreamPosition(after),
      told: formatStreamPosition(this.#stream.newest as EventId),
      open: open.map(({ key, id }) => [key, id]),
      answered,
    };
    this.#stream.stop(); // later events are in the log, and the next round reads them
    try {
      const content = { round: this.#round + 1, expiresAtMs: Date.now() + idleMs, value: parked };
      const state = await states.seal(stateBinding(server, request, client), content);
      if (state === undefined) throw new Error('the ids of the questions are too long');
      const response = inputRequiredResult(this.#sent.idText, open, state, this.#opened?.serverInfoText);
      await this.#keepOutcome({ response, status: 200 }, idleMs + keptMs);
      session.park(this.#name, idleMs);
      // First, so that the state is worth something if this instance is lost as soon as the client has it.
      await Promise.race([this.#keep(), delay(maxKeepMs, undefined, { ref: false })]);
      if (answer.isOver) return this.#abandon(session, 'The client no longer waits for the answer.');
      answer.response(response, 200);
    } catch (cause) {
      this.#abandon(session, 'The gateway cannot send requests to the client.');
      const reason = this.#parts.reasonOf(cause);
      answer.fault(reason === 'store_unavailable' ? 'outcome_unknown' : reason);
    }
  }

  /** Cancels a waiting call that no client will resume. */
  #abandon(session: GroupSession, reason: string): void {
    this.#cancelAtServer(reason);
    session.release(this.#name);
  }

  #finish(response: Message): void {
    const { request, form } = this.#groupRequest;
    const gatewayFault = readGatewayFault(response);
    const { serverInfoText, capabilitiesText = '{}' } = this.#opened ?? {};
    const { clientId, idText } = this.#sent;
    const context = { request, clientId, idText, serverInfoText, capabilitiesText, isRetry: this.#round > 0 };
    this.#conclude(gatewayFault === undefined ? form.answered(response, context) : gatewayFault);
  }

  /** Ends the call. Its outcome is kept for a client that sends the same round again. */
  #conclude(outcome: KeptOutcome): void {
    this.#close();
    const sendEnd = (): void => {
      this.#session?.release(this.#name);
      this.#sendOutcome(outcome);
    };
    if (this.#outcome === undefined) sendEnd();
    else detach('session', this.#keepOutcome(outcome, keptMs).then(sendEnd));
  }

  /** Keeps the outcome of the round. While the store is away, only a repetition of the round is lost. */
  async #keepOutcome(outcome: KeptOutcome, forMs: number): Promise<void> {
    await this.#outcome?.keep(outcome, forMs).catch((cause: unknown) => this.#parts.reasonOf(cause));
  }

  /** Repeats the kept outcome of the round. Resolves with true if the request is over. */
  async #repeatOutcome(): Promise<boolean> {
    const outcome = await this.#outcome?.find().catch(ifUnavailable(undefined));
    if (outcome !== undefined && !this.#isOver) this.#answerOnly(outcome);
    return this.#isOver;
  }

  /** Answers this request only; the call itself goes on. */
  #answerOnly(outcome: KeptOutcome): void {
    this.#close();
    if ('reason' in outcome) return this.#sendOutcome(outcome);
    this.#sendOutcome({ ...outcome, response: restoreId(outcome.response, this.#sent) });
  }

  #sendOutcome(outcome: KeptOutcome): void {
    const { answer } = this.#groupRequest;
    if (answer.isOver) return;
    if ('reason' in outcome) answer.fault(outcome.reason, outcome.data);
    else answer.response(outcome.response, outcome.status);
  }

  /** Ends a call whose stream is lost. An earlier request with the same round may have kept its outcome. */
  async #handleLoss(reason: Reason): Promise<void> {
    const mayBeKept = reason === 'outcome_unknown';
    const why = mayBeKept ? await this.#repeatOutcome().catch((cause: unknown) => this.#parts.reasonOf(cause)) : reason;
    this.#fail(typeof why === 'string' ? why : reason);
  }

  #fail(reason: Reason, data?: FaultData): void {
    if (this.#isOver) return;
    // The client has no request state, so nobody would answer the server's questions. A round can be sent again.
    const mayBeLeft = reason === 'outcome_unknown' && this.#outcome === undefined && this.#stream.hasBegun;
    this.#isLeft = mayBeLeft && this.#groupRequest.answer.isContinued;
    if (mayBeLeft && !this.#isLeft) this.#cancelAtServer('The connection to the client was lost.');
    this.#end();
    this.#groupRequest.answer.fault(reason, data);
  }

  #cancel(reason: string): void {
    if (this.#isOver && !this.#isLeft) return;
    this.#isLeft = false;
    if (this.#stream.hasBegun) this.#cancelAtServer(reason);
    this.#end();
  }

  #cancelAtServer(reason: string): void {
    this.#sendToSession(cancelled(this.#id, reason));
  }

  /** Sends the session a message that needs no answer. */
  #sendToSession(message: Message): void {
    detach('session', this.#session?.deliver(message, this.#groupRequest.client.forwarded));
  }

  #close(): void {
    clearTimeout(this.#bundle);
    this.#stream.stop();
  }

  #end(): void {
    this.#close();
    this.#session?.release(this.#name);
  }
}

/** Returns the reason why the answers of a round were refused. The call has begun, whatever became of the round. */
const roundRefusal = (reason: Reason): Reason => (reason === 'store_unavailable' ? 'input_not_taken' : reason);
