import type { Continuation } from '../../core/call/answer.ts';
import type { FaultData } from '../../core/call/call-answer.ts';
import { type Reason, reasonOfRunning } from '../../core/protocol/faults.ts';
import { scalarAt, scanObject, valueAt } from '../../core/protocol/json.ts';
import { formatObject, putMembers } from '../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import { type Message, readGatewayMessage } from '../../core/protocol/message/message.ts';
import { detach } from '../../core/util/boundary.ts';
import { inStatus, type TaskFacts, type TaskRecord } from './task-record.ts';

/** The call of a task, as the instance that runs it sees it. */
export interface TaskCall {
  /** The request. It is sent again with answers, or by another instance. */
  readonly request: Message;
  /** True if the client of the call can be asked for input. */
  readonly mayAsk: boolean;
  /** True if the call may run twice; see `RerunPolicy`. */
  readonly isHarmless: boolean;
  /** True if `point` is defined soon. */
  readonly hasPoint: boolean;
  /** Sends the request, or sends it again with the input that the server asked for. */
  send(request: Message): void;
  /** Where another instance can read on; undefined while the call depends on this one. */
  point(): string | undefined;
  /** Reads on at a point that another instance has stored. */
  follow(point: string): void;
  /** Cancels the call at the server. */
  cancel(): void;
}

/** What a running task asks of the tasks of its gateway. */
export interface RunningTaskHost {
  /** Stores the state, which has changed. Resolves with false if the store is away for long. */
  store(): Promise<boolean>;
  /** The task has ended. The end that is stored first counts. */
  end(record: TaskRecord): void;
  /** The call was lost here. Sends it again if it may be, leaves the task to another instance, or ends it. */
  lost(reason: Reason, maySendAgain: boolean): void;
  /** Answers of the client that any instance has stored. */
  answersFor(keys: readonly string[]): Promise<ReadonlyMap<string, Buffer>>;
  readonly maxTextBytes: number;
}

const nothing = Buffer.alloc(0);

/** News of a call are stored at most this often, in milliseconds. */
const newsMs = 1_000;

/** How often a call is asked for its point until it has one, in milliseconds. */
const pointMs = 200;

/** The longest message about the state of a task (P8). */
const maxStatusLength = 1_000;

/**
 * A call that has become a task, at the instance that runs it. What its server sends goes into the record of the task:
 * the message of progress, questions as input that is required, and the response as its end.
 */
export class RunningTask implements Continuation {
  readonly id: string;
  isOver = false;
  readonly #host: RunningTaskHost;
  #call: TaskCall | undefined;
  #facts: TaskFacts;
  readonly #answers = new Map<string, Buffer>();
  /** The texts of the questions without an answer. */
  #open = new Map<string, string>();
  #questionsText: Buffer = nothing;
  #newsTimer: NodeJS.Timeout | undefined;
  /** The point that the store has. */
  #storedPoint: string | undefined;
  /** True if another instance has sent the call. */
  #isFollowed = false;

  constructor(id: string, facts: TaskFacts, host: RunningTaskHost) {
    this.id = id;
    this.#facts = facts;
    this.#host = host;
  }

  /** The state as it is to be stored. */
  get record(): TaskRecord {
    const point = this.#call?.point();
    // Whoever reads on there needs no answers any more: the server has them.
    if (point !== undefined && point !== this.#facts.point) this.#facts = { ...this.#facts, point, round: undefined };
    return { facts: this.#facts, text: this.#questionsText };
  }

  /** The length of the request and of the open questions. */
  get textBytes(): number {
    return (this.#call?.request.text.length ?? 0) + this.#questionsText.length;
  }

  /** The store has this state. */
  noteStored({ facts }: TaskRecord): void {
    this.#storedPoint = facts.point;
  }

  /** The call that has become this task. */
  attach(call: TaskCall): void {
    this.#call = call;
    this.#awaitPoint();
  }

  /** Goes on with the call of a task that another instance has begun. */
  async goOn(call: TaskCall, { facts, text }: TaskRecord): Promise<void> {
    this.attach(call);
    this.#isFollowed = true;
    const { point, round } = facts;
    this.#storedPoint = point;
    if (round !== undefined) {
      const members = text.length === 0 ? undefined : scanObject(text);
      const { keys, starts, ends } = typeof members === 'object' ? members : noMembers;
      this.#open = new Map(round.keys.map(([name]) => [name, '']));
      for (const [index, name] of keys.entries())
        if (this.#open.has(name)) this.#open.set(name, text.toString('utf8', starts[index], ends[index]));
      this.#questionsText = text;
      this.answer(await this.#host.answersFor(round.keys.map(([name]) => name)));
      // The client has answered, and its answer is gone.
      if ([...this.#open.values()].includes('')) this.failLost('outcome_unknown');
    } else if (point !== undefined) call.follow(point);
    else this.fault('outcome_unknown');
  }

  /** Sends the request again from its beginning, once. */
  async restart(): Promise<void> {
    const { request } = this.#call as TaskCall;
    this.#isFollowed = false;
    this.#facts = { ...this.#facts, isRerun: true, mayRunAgain: false, point: undefined };
    // Stored first: an instance that takes the task over must not send the call once more.
    if (!(await this.#host.store())) return this.failLost('outcome_unknown');
    if (this.isOver) return;
    this.#call?.send(request);
    this.#awaitPoint();
  }

  message(message: Message): boolean {
    if (message.method !== 'notifications/progress' || this.isOver) return true;
    const text = scalarAt(message.text, ['params', 'message']);
    if (typeof text === 'string')
      this.#facts = { ...this.#facts, statusMessage: text.slice(0, maxStatusLength), updatedAt: Date.now() };
    else if (this.#call?.hasPoint !== true) return true;
    this.#storeSoon();
    return true;
  }

  response(response: Message): void {
    if (this.isOver) return;
    if (response.isError) return this.#end('failed', valueAt(response.text, ['error']));
    const resultType = scalarAt(response.text, ['result', 'resultType']);
    if (resultType === 'input_required') return this.#ask(response.text);
    // The server was not to make a task of its own, and nobody could collect it.
    if (resultType === 'task') return this.fault('bad_response');
    this.#end('completed', valueAt(response.text, ['result']));
  }

  fault(cause: Reason, data?: FaultData): void {
    if (this.isOver) return;
    // Whoever could not read on knows nothing of what another instance has sent.
    const reason = this.#isFollowed && cause !== 'draining' ? reasonOfRunning(cause) : cause;
    const { mayRunAgain, isKept, rounds = 0, isRerun } = this.#facts;
    if (reason !== 'outcome_unknown' && reason !== 'draining') return this.#end('failed', errorOf(reason, data));
    // A session that ends says so of a request that its server has not got.
    const isUnsent = reason === 'draining' && this.#call?.hasPoint === true;
    const maySendAgain = isKept === true && rounds === 0 && isRerun === undefined && (mayRunAgain === true || isUnsent);
    if (maySendAgain) this.#facts = { ...this.#facts, mayRunAgain: true };
    this.#host.lost(reason, maySendAgain);
  }

  /** The call was lost, and is not sent again. */
  failLost(reason: Reason): void {
    if (this.isOver) return;
    this.#end('failed', errorOf(reason));
    // It may still run, and ask.
    this.#call?.cancel();
  }

  /** Leaves the task to another instance. What its server sends here counts no more. */
  leave(): TaskRecord {
    this.isOver = true;
    clearTimeout(this.#newsTimer);
    const { facts, text } = this.record;
    return { facts: { ...facts, owner: '' }, text };
  }

  /** Takes answers to questions by their key. Others than the open ones are ignored. */
  answer(answers: ReadonlyMap<string, Buffer>): void {
    if (this.isOver || this.#open.size === 0) return;
    const before = this.#open.size;
    for (const [key, answer] of answers) if (this.#open.delete(key)) this.#answers.set(key, answer);
    if (this.#open.size === 0) return detach('request', this.#resume());
    if (this.#open.size === before) return;
    this.#questionsText = Buffer.from(formatObject([...this.#open]));
    this.#change('input_required');
  }

  /** The client cancels the task. */
  cancel(): void {
    if (this.isOver) return;
    this.#end('cancelled');
    this.#call?.cancel();
  }

  /** Stores questions under keys that no other round of the task has. */
  #ask(text: Buffer): void {
    const questions = valueAt(text, ['result', 'inputRequests']);
    const members = questions && scanObject(questions);
    if (questions === undefined || members === undefined || members === 'duplicate_key' || !this.#call?.mayAsk)
      return this.fault('bad_response');
    const rounds = (this.#facts.rounds ?? 0) + 1;
    const { keys, starts, ends } = members;
    const named = keys.map((key, index) => [`${rounds}-${key}`, key, index] as const);
    this.#answers.clear();
    const state = valueAt(text, ['result', 'requestState'])?.toString();
    this.#open = new Map(
      named.map(([name, , index]) => [name, questions.toString('utf8', starts[index], ends[index])]),
    );
    this.#questionsText = Buffer.from(formatObject([...this.#open]));
    if (this.#questionsText.length > this.#host.maxTextBytes) return this.fault('event_too_large');
    const round = { keys: named.map(([name, key]) => [name, key] as const), state };
    // A server that has asked would ask again.
    this.#facts = { ...this.#facts, rounds, round, mayRunAgain: false, point: undefined };
    this.#change('input_required');
  }

  /** All questions are answered: the call goes on. */
  async #resume(): Promise<void> {
    const { keys = [], state } = this.#facts.round ?? {};
    const answers = keys.map(([name, key]) => [key, (this.#answers.get(name) as Buffer).toString()] as const);
    const members = [
      ['inputResponses', formatObject(answers)] as const,
      ...(state === undefined ? [] : [['requestState', state] as const]),
    ];
    const { request, hasPoint, send } = this.#call as TaskCall;
    this.#answers.clear();
    this.#questionsText = nothing;
    // Only a call in a session takes the answers of a round once, however often they are sent.
    if (!hasPoint) this.#facts = { ...this.#facts, round: undefined };
    this.#facts = inStatus(this.#facts, 'working');
    if (!(await this.#host.store())) return this.failLost('outcome_unknown');
    if (this.isOver) return;
    send(readGatewayMessage(putMembers(request, 'params', members)));
    this.#awaitPoint();
  }

  #change(status: TaskFacts['status']): void {
    this.#facts = inStatus(this.#facts, status);
    this.#store();
  }

  #store(): void {
    if (!this.isOver) detach('request', this.#host.store());
  }

  #storeSoon(): void {
    this.#newsTimer ??= setTimeout(() => {
      this.#newsTimer = undefined;
      this.#store();
    }, newsMs).unref();
  }

  /** Stores the point at which others can read on as soon as there is one. */
  #awaitPoint(): void {
    if (this.#call?.hasPoint !== true) return;
    const look = (): void => {
      if (this.isOver || this.#facts.status === 'input_required') return;
      const point = this.#call?.point();
      if (point === undefined) this.#awaitPoint();
      // Whoever shows the state has seen the point, too, so the newest facts do not say whether it is stored.
      else if (point !== this.#storedPoint) this.#store();
    };
    setTimeout(look, pointMs).unref();
  }

  #end(status: 'completed' | 'failed' | 'cancelled', text: Buffer = nothing): void {
    if (text.length > this.#host.maxTextBytes) return this.fault('event_too_large');
    this.isOver = true;
    clearTimeout(this.#newsTimer);
    const { point: _, round: __, isKept: ___, ...facts } = this.#facts;
    this.#host.end({ facts: inStatus(facts, status), text });
  }
}

const noMembers = { keys: [], starts: [], ends: [] };

/** The error of a task that ends with a fault of the catalogue, as JSON text. */
export const errorOf = (reason: Reason, data?: FaultData): Buffer =>
  valueAt(createFaultResponse(reason, 0, data, 'modern').text, ['error']) as Buffer;
