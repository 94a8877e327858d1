import type { CallAnswer, FaultData } from '../../../core/call/call-answer.ts';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import {
  cancelled,
  createOverloaded,
  type Message,
  memberRange,
  memberValue,
} from '../../../core/protocol/message/message.ts';
import { methodOf } from '../../../core/protocol/methods/methods.ts';
import type { LogLevel } from '../../../core/protocol/modern/log-levels.ts';
import { boundedWalks } from '../../../core/util/timing/work-meter.ts';
import type { CancelRequest } from '../modern/process/shared-calls.ts';
import type { ModernServerAccess } from '../modern/session-access.ts';
import {
  type InputRequired,
  readInputRequired,
  resultTypeOf,
  toLegacyRequest,
  toRetryRequest,
} from '../translate/legacy-on-modern/input-required.ts';
import type { CallOutput } from './session-tasks.ts';

/** The services of a translator that its calls share. */
export interface TranslatedCallHost {
  readonly server: ModernServerAccess;
  /**
   * Registers the call for the answer to a new question. Returns the question's id, which is unique at this translator.
   */
  openQuestion(call: TranslatedCall): RequestId;
  closeQuestion(id: RequestId): void;
  /** Converts a response of the server for the client. */
  asAnswer(response: Message, method: string): Message;
  /** Reserves memory for the call; false if there is none left. The memory is returned when the call is over. */
  reserveBytes(bytes: number): boolean;
  /** The call was answered, or will not be for this reason. */
  onOver(call: TranslatedCall, reason?: Reason): void;
}

/** A client's request in the form that the server gets. */
export interface TranslatedCallInit {
  readonly id: RequestId;
  /** Gets what the server sends about the call. */
  readonly output: CallOutput;
  /** The request with its envelope. */
  readonly request: Message;
  readonly logLevel: LogLevel | undefined;
  readonly headers: ForwardedHeaders | undefined;
}

/**
 * The most rounds of input for one request (P8). A server that asks more often is taken to loop; the SDK's clients stop
 * here too.
 */
const maxRounds = 10;

/**
 * One request of a legacy client at a modern server, over all its rounds (2026-07-28, basic/patterns/mrtr). The input
 * that the server requires becomes requests to the client, all of one round at once. When all are answered, the request
 * is sent again with the answers and the server's state. The client sees one request and one response.
 */
export class TranslatedCall implements CallAnswer {
  readonly id: RequestId;
  /** The bytes that are kept while the call may have to be sent again. */
  heldBytes: number;
  readonly #host: TranslatedCallHost;
  readonly #init: TranslatedCallInit;
  #cancelAtServer: CancelRequest = () => undefined;
  #rounds = 0;
  #lastProgress = Number.NEGATIVE_INFINITY;
  /** The round that waits for the client's answers. */
  #round: InputRequired | undefined;
  /** The keys of the unanswered questions, by the questions' ids. */
  readonly #openQuestions = new Map<RequestId, string>();
  #answers = new Map<string, string>();
  #isOver = false;

  constructor(host: TranslatedCallHost, init: TranslatedCallInit) {
    this.id = init.id;
    this.heldBytes = init.request.text.length;
    this.#host = host;
    this.#init = init;
  }

  start(): void {
    this.#send(this.#init.request);
  }

  /** Takes the client's answer to a question. */
  settle(questionId: RequestId, answer: Message): void {
    const key = this.#openQuestions.get(questionId);
    const round = this.#round;
    if (key === undefined || round === undefined) return;
    this.#openQuestions.delete(questionId);
    this.#host.closeQuestion(questionId);
    const range = memberRange(answer, 'message', 'result');
    // Only results can be sent to the server. It keeps no state of the waiting request, so no cancellation is needed.
    if (range === undefined) return this.#fail('input_refused');
    const bytes = range.end - range.start;
    if (!this.#host.reserveBytes(bytes)) return this.#fail('input_too_large');
    this.heldBytes += bytes;
    this.#answers.set(key, answer.text.toString('utf8', range.start, range.end));
    if (this.#openQuestions.size === 0) this.#retry(round);
  }

  /**
   * Cancels the call: its client no longer waits.
   * @param reason the client's reason
   */
  cancel(reason?: string): void {
    if (this.#isOver) return;
    this.#cancelAtServer(reason);
    this.#end();
    this.#host.onOver(this);
  }

  message(notification: Message): boolean {
    if (notification.method === 'notifications/progress' && !this.#isProgress(notification)) return true;
    return !this.#isOver && this.#init.output.notify(notification, this.id);
  }

  response(response: Message): void {
    if (this.#isOver) return;
    const { method } = this.#init.request;
    const type = method === 'tools/list' ? boundedWalks(() => resultTypeOf(response)) : resultTypeOf(response);
    if (type === 'too_much_work') return this.#fail('list_unreadable');
    if (type === 'input_required' && methodOf(method).mayAsk) return this.#startRound(response);
    if (type !== 'complete' && !response.isError) return this.#fail('unserved_result');
    this.#end();
    this.#init.output.respond(this.id, this.#host.asAnswer(response, method as string));
    this.#host.onOver(this);
  }

  fault(reason: Reason, data: FaultData = {}): void {
    if (this.#isOver) return;
    const { retryAfterS } = data;
    if (reason !== 'server_overloaded' || typeof retryAfterS !== 'number') return this.#fail(reason);
    this.#end();
    this.#init.output.respond(this.id, createOverloaded(this.id, retryAfterS));
    this.#host.onOver(this, reason);
  }

  /** A server counts from the start in each round, but progress must increase (2025-11-25, basic/utilities/progress). */
  #isProgress(notification: Message): boolean {
    const progress = memberValue(notification, 'params', 'progress');
    if (typeof progress !== 'number') return true;
    if (this.#rounds > 0 && progress <= this.#lastProgress) return false;
    this.#lastProgress = Math.max(progress, this.#lastProgress);
    return true;
  }

  #send(request: Message): void {
    const { logLevel, headers } = this.#init;
    const cancel = this.#host.server.request(request, logLevel, this, headers);
    if (!this.#isOver) this.#cancelAtServer = cancel;
  }

  #startRound(response: Message): void {
    const { output } = this.#init;
    this.#rounds += 1;
    const round = readInputRequired(response);
    if (round === undefined) return this.#fail('unserved_result');
    if (this.#rounds > maxRounds) return this.#fail('too_many_rounds');
    this.#round = round;
    this.#answers = new Map();
    if (round.questions.length === 0) return this.#retry(round);
    for (const question of round.questions) {
      const questionId = this.#host.openQuestion(this);
      this.#openQuestions.set(questionId, question.key);
      if (!output.notify(toLegacyRequest(question, questionId), this.id)) return this.#fail('slow_reader');
    }
  }

  #retry({ stateText }: InputRequired): void {
    this.#round = undefined;
    this.#send(toRetryRequest(this.#init.request, this.#answers, stateText));
  }

  #fail(reason: Reason): void {
    this.#end();
    this.#init.output.abandon(this.id, reason);
    this.#host.onOver(this, reason);
  }

  /** Ends the call and cancels the questions that the client has not answered. */
  #end(): void {
    this.#isOver = true;
    for (const questionId of this.#openQuestions.keys()) {
      this.#host.closeQuestion(questionId);
      this.#init.output.notify(cancelled(questionId, 'The request that needed this input has ended.'), this.id);
    }
    this.#openQuestions.clear();
  }
}
