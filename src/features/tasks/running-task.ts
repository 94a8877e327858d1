import type { Continuation } from '../../core/call/answer.ts';
import type { FaultData } from '../../core/call/call-answer.ts';
import type { Reason } from '../../core/protocol/faults.ts';
import { scanObject } from '../../core/protocol/json/scan.ts';
import { scalarAt, valueAt } from '../../core/protocol/json/splice.ts';
import { formatObject, putMembers } from '../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import { type Message, readGatewayMessage } from '../../core/protocol/message/message.ts';
import { inStatus, type TaskFacts, type TaskRecord } from './task-record.ts';

/** How the call of a task goes on. */
export interface TaskCall {
  /** The request, for the case that the server asks for input; undefined if its client can give none. */
  readonly request: Message | undefined;
  /** Sends the request again, with the input that the server asked for. */
  resend(request: Message): void;
  /** Cancels the call at the server. */
  cancel(): void;
}

/** What a running task asks of the tasks of its gateway. */
export interface RunningTaskHost {
  /** Stores the state, which has changed. */
  store(): void;
  /** The task has ended. The end that is stored first counts. */
  end(record: TaskRecord): void;
  readonly maxTextBytes: number;
}

const nothing = Buffer.alloc(0);

/** News of a call are stored at most this often, in milliseconds. */
const newsMs = 1_000;

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
  readonly #call: TaskCall;
  #facts: TaskFacts;
  #questions: ReadonlyMap<string, string> = new Map();
  readonly #answers = new Map<string, Buffer>();
  /** The texts of the questions without an answer. */
  #open = new Map<string, string>();
  #questionsText = nothing;
  #requestState: Buffer | undefined;
  #round = 0;
  #newsTimer: NodeJS.Timeout | undefined;

  constructor(id: string, facts: TaskFacts, call: TaskCall, host: RunningTaskHost) {
    this.id = id;
    this.#facts = facts;
    this.#call = call;
    this.#host = host;
  }

  get record(): TaskRecord {
    return { facts: this.#facts, text: this.#questionsText };
  }

  message(message: Message): boolean {
    if (message.method !== 'notifications/progress' || this.isOver) return true;
    const text = scalarAt(message.text, ['params', 'message']);
    if (typeof text !== 'string') return true;
    this.#facts = { ...this.#facts, statusMessage: text.slice(0, maxStatusLength), updatedAt: Date.now() };
    this.#newsTimer ??= setTimeout(() => {
      this.#newsTimer = undefined;
      this.#store();
    }, newsMs).unref();
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

  fault(reason: Reason, data?: FaultData): void {
    if (!this.isOver) this.#end('failed', errorOf(reason, data));
  }

  /** Takes answers to questions by their key. Others than the open ones are ignored. */
  answer(answers: ReadonlyMap<string, Buffer>): void {
    if (this.isOver || this.#questions.size === 0) return;
    const before = this.#open.size;
    for (const [key, answer] of answers) if (this.#open.delete(key)) this.#answers.set(key, answer);
    if (this.#open.size === 0) return this.#resume();
    if (this.#open.size === before) return;
    this.#questionsText = Buffer.from(formatObject([...this.#open]));
    this.#change('input_required');
  }

  /** The client cancels the task. */
  cancel(): void {
    if (this.isOver) return;
    this.#end('cancelled');
    this.#call.cancel();
  }

  /** Stores questions under keys that no other round of the task has. */
  #ask(text: Buffer): void {
    const questions = valueAt(text, ['result', 'inputRequests']);
    const members = questions && scanObject(questions);
    const { request } = this.#call;
    if (questions === undefined || members === undefined || members === 'duplicate_key' || request === undefined)
      return this.fault('bad_response');
    this.#round += 1;
    const { keys, starts, ends } = members;
    const named = keys.map((key, index) => [`${this.#round}-${key}`, key, index] as const);
    this.#questions = new Map(named.map(([name, key]) => [name, key]));
    this.#answers.clear();
    this.#requestState = valueAt(text, ['result', 'requestState']);
    this.#open = new Map(
      named.map(([name, , index]) => [name, questions.toString('utf8', starts[index], ends[index])]),
    );
    this.#questionsText = Buffer.from(formatObject([...this.#open]));
    if (this.#questionsText.length > this.#host.maxTextBytes) return this.fault('event_too_large');
    this.#change('input_required');
  }

  /** All questions are answered: the call goes on. */
  #resume(): void {
    const answers = [...this.#questions].map(
      ([name, key]) => [key, (this.#answers.get(name) as Buffer).toString()] as const,
    );
    const state = this.#requestState;
    const members = [
      ['inputResponses', formatObject(answers)] as const,
      ...(state === undefined ? [] : [['requestState', state.toString()] as const]),
    ];
    const request = this.#call.request as Message;
    this.#questions = new Map();
    this.#answers.clear();
    this.#questionsText = nothing;
    this.#change('working');
    this.#call.resend(readGatewayMessage(putMembers(request, 'params', members)));
  }

  #change(status: TaskFacts['status']): void {
    this.#facts = inStatus(this.#facts, status);
    this.#store();
  }

  #store(): void {
    if (!this.isOver) this.#host.store();
  }

  #end(status: 'completed' | 'failed' | 'cancelled', text: Buffer = nothing): void {
    if (text.length > this.#host.maxTextBytes) return this.fault('event_too_large');
    this.isOver = true;
    clearTimeout(this.#newsTimer);
    this.#host.end({ facts: inStatus(this.#facts, status), text });
  }
}

/** The error of a task that ends with a fault of the catalogue, as JSON text. */
export const errorOf = (reason: Reason, data?: FaultData): Buffer =>
  valueAt(createFaultResponse(reason, 0, data, 'modern').text, ['error']) as Buffer;
