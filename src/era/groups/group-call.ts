import { setTimeout as delay } from 'node:timers/promises';
import { comparePositions, type EventId } from '../../protocol/event-id.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type Message, placeOf, readOwn } from '../../protocol/message.ts';
import { needOf } from '../../protocol/modern/askable.ts';
import { statusOf } from '../../protocol/modern/error-status.ts';
import { asLegacyRequest } from '../../protocol/modern/legacy-request.ts';
import { asModernResponse } from '../../protocol/modern/modern-response.ts';
import { type Renumbered, restoreToken } from '../../protocol/modern/renumber.ts';
import { ownFaultOf } from '../../protocol/own-fault.ts';
import { valueAt } from '../../protocol/splice.ts';
import { canAsk } from '../../session/rerun.ts';
import { ServerRequests } from '../../session/server-requests.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import type { StateContent } from '../request-state.ts';
import type { Asked, CallHost } from './asked.ts';
import { answersTo, formatPlace, inputRequired, type ParkedCall, parsePlace, questionOf } from './parked.ts';
import type { OpenPlace, Place } from './place.ts';
import { Questions } from './questions.ts';
import { say } from './say.ts';
import { SessionReply, type Place as StreamPlace } from './session-reply.ts';

/** One place is waited for so long before the next one is asked again, in milliseconds. */
const turnMs = 2_000;

/** Sessions that end just when they are asked are opened anew so often. */
const maxReopened = 3;

/** A stream that ends without the response is gone on with so often in a row, after these pauses. */
const maxContinued = 5;
const continuePauseMs = 200;

/** Questions that come so soon after one another are asked together (2026-07-28, basic/patterns/mrtr). */
const bundleMs = 20;

/**
 * One request of a modern client at a legacy server: a request in a session of its group, under an id of the gateway. What
 * the session answers is the client's, in the form of its era. A question of the server ends the request with
 * `input_required` while the call goes on waiting in its session: a retry, on any instance, gives the answers and goes on
 * reading the call's stream, which is in the log (DESIGN decision 7).
 */
export class GroupCall {
  readonly #host: CallHost;
  readonly #asked: Asked;
  #id: RequestId;
  readonly #sent: Renumbered;
  readonly #questions = new Questions();
  #place: Place | undefined;
  #serverInfoText: string | undefined;
  #reply: SessionReply | undefined;
  /** What the newest event was, and up to which the client was told by an earlier request. */
  #newest: EventId | undefined;
  #told: EventId | undefined;
  #round = 0;
  #continued = 0;
  #bundle: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(host: CallHost, asked: Asked) {
    this.#host = host;
    this.#asked = asked;
    this.#id = host.newId();
    this.#sent = asLegacyRequest(asked.request, this.#id);
    asked.answer.onGone(() => this.#cancel('The client does not wait any more.'));
  }

  /** Runs the request at the first of these places that can serve it. */
  async run(places: readonly Place[]): Promise<void> {
    const { answer, forwarded } = this.#asked;
    const until = performance.now() + this.#host.busyMs;
    const shift = Math.floor(Math.random() * places.length);
    let reopened = 0;
    for (let n = 0; !this.#isOver; ) {
      const isLast = n >= places.length - 1;
      const place = places[(n < places.length ? n : n + shift) % places.length] as Place;
      const open = await place.open(forwarded);
      if (answer.isOver) return;
      const waitMs = isLast ? Math.max(1, Math.min(turnMs, until - performance.now())) : 0;
      const why = typeof open === 'string' ? open : await this.#post(place, open, waitMs);
      if (why === undefined) return;
      if (why === 'unknown_session' && reopened < maxReopened) {
        reopened += 1;
        place.forget();
      } else if (why === 'group_busy' && performance.now() < until) n += 1;
      else return this.#fail(why);
    }
  }

  /**
   * Goes on with a call that was parked: gives it the answers, and reads on.
   * @param answers results by key, as JSON text
   */
  async resume(
    place: Place,
    { round, value }: StateContent<ParkedCall>,
    answers: ReadonlyMap<string, Buffer>,
  ): Promise<void> {
    this.#id = value.call;
    this.#round = round;
    this.#told = parsePlace(value.told);
    this.#questions.settled(value.answered);
    const open = await place.revisit(this.#asked.forwarded);
    if (this.#asked.answer.isOver) return;
    if (typeof open === 'string') return this.#fail(open === 'unknown_session' ? 'outcome_unknown' : open);
    this.#enter(place, open);
    const { messages, digest } = answersTo(value.open, answers);
    this.#questions.settled(messages.map(({ id }) => id as RequestId));
    const group = { turnMs: 0, round: { name: `${value.call} ${round}`, digest } };
    const refused = await say(open.handle, messages, group, this.#asked.forwarded);
    if (refused !== undefined) return this.#fail(refused);
    if (!this.#isOver) this.#listen(open.handle, parsePlace(value.after));
  }

  #enter(place: Place, { opened }: OpenPlace): void {
    this.#place = place;
    this.#serverInfoText = opened.serverInfoText;
  }

  /** Hands the request to a session. Resolves with why it was not taken, or when it was. */
  #post(place: Place, open: OpenPlace, waitMs: number): Promise<Reason | undefined> {
    const { logLevel, forwarded } = this.#asked;
    this.#enter(place, open);
    return new Promise((resolve) => {
      this.#reply = new SessionReply(
        {
          message: (message, at) => {
            resolve(undefined);
            this.#hear(message, at);
          },
          fault: (reason) => resolve(reason),
          ended: () => {
            resolve(undefined);
            this.#ended();
          },
          opened: () => resolve(undefined),
        },
        forwarded,
      );
      const wantsLogs = logLevel !== undefined && open.opened.capabilitiesText.includes('"logging"');
      const group = { turnMs: waitMs, ...(wantsLogs && { logLevel }) };
      open.handle.post({ messages: [readOwn(this.#sent.text)], isBatch: false, group }, this.#reply);
    });
  }

  #listen(handle: SessionHandle, after: EventId): void {
    const listener = {
      message: (message: Message, at: StreamPlace): void => this.#hear(message, at),
      fault: (reason: Reason): void => this.#fail(lostReasons.has(reason) ? 'outcome_unknown' : reason),
      ended: (): void => this.#ended(),
    };
    this.#newest = after;
    this.#reply = new SessionReply(listener, this.#asked.forwarded, after);
    handle.listen(after, this.#reply);
  }

  #hear(message: Message, { before, at }: StreamPlace): void {
    if (this.#isOver) return;
    this.#newest = at ?? this.#newest;
    this.#continued = 0;
    const { kind, cancels } = message;
    if (kind === 'response') this.#finish(message);
    else if (kind === 'request') this.#ask(message, before, at);
    else if (cancels !== undefined) this.#questions.withdrawn(cancels);
    else if (at === undefined || this.#told === undefined || comparePositions(at, this.#told) > 0) this.#tell(message);
  }

  /** A notification that belongs to the request. */
  #tell(message: Message): void {
    const { tokenText } = this.#sent;
    if (message.method === 'notifications/message') this.#asked.answer.message(message.text);
    if (message.method !== 'notifications/progress' || tokenText === undefined) return;
    this.#asked.answer.message(restoreToken(message, tokenText));
  }

  #ask(message: Message, before: EventId | undefined, at: EventId | undefined): void {
    if (this.#questions.isSettled(message.id as RequestId)) return;
    const { request, askable } = this.#asked;
    const need = needOf(message);
    const isAskable = need !== undefined && canAsk(request.method as string) && before !== undefined;
    if (!isAskable || at === undefined || this.#questions.isFull) {
      this.#say(ServerRequests.refusal(message));
      return;
    }
    if (!askable.has(need.flag)) {
      this.#say(ServerRequests.refusal(message));
      this.#cancel('The client cannot give what the server asks for.');
      this.#asked.answer.fault('missing_capability', { requiredCapabilities: need.required });
      return;
    }
    this.#questions.ask(questionOf(message, at), before);
    this.#bundle ??= setTimeout(() => void this.#park(), bundleMs);
  }

  /** Ends the request with what the server asks; the call goes on waiting for the answers. */
  async #park(): Promise<void> {
    this.#bundle = undefined;
    const { open, answered, after } = this.#questions;
    if (this.#isOver || after === undefined) return;
    const { request, answer } = this.#asked;
    const place = this.#place as Place;
    const parked: ParkedCall = {
      place: place.key,
      call: this.#id,
      after: formatPlace(after),
      told: formatPlace(this.#newest as EventId),
      open: open.map(({ key, id }) => [key, id]),
      answered,
    };
    // What comes from now on is in the log behind the state, for the next round.
    this.#isOver = true;
    this.#reply?.leave();
    try {
      const state = await this.#host.seal(request, this.#round + 1, parked);
      if (state === undefined) throw new Error('the ids of the questions are too long');
      if (answer.isOver) return this.#abandon(place, 'The client does not wait any more.');
      answer.response(inputRequired(this.#sent.idText, open, state, this.#serverInfoText), 200);
    } catch (cause) {
      this.#abandon(place, 'The gateway cannot ask its client.');
      answer.fault(this.#host.reasonOf(cause));
    }
  }

  /** Nobody will come back for a call that waits. */
  #abandon(place: Place, reason: string): void {
    this.#cancelAtServer(reason);
    this.#host.onOver(place);
  }

  #finish(response: Message): void {
    const { request, answer } = this.#asked;
    const own = ownFaultOf(response);
    if (own !== undefined) return this.#fail(own);
    this.#end();
    const { idText } = this.#sent;
    const method = request.method as string;
    const uriText = method === 'resources/read' ? valueAt(request.text, ['params', 'uri'])?.toString() : undefined;
    const of = { method, idText, uriText };
    const how = { serverInfoText: this.#serverInfoText, isRetry: this.#round > 0 };
    const text = asModernResponse(response, { ...of, ...how });
    const isError = placeOf(response, 'message', 'error') !== undefined;
    answer.response(text, isError ? statusOf(readOwn(text)) : 200);
  }

  #fail(reason: Reason): void {
    if (this.#isOver) return;
    this.#end();
    this.#asked.answer.fault(reason);
  }

  /** The stream is over without the response: its session moves, or this connection of it is too old. */
  #ended(): void {
    if (this.#isOver) return;
    const after = this.#newest;
    this.#continued += 1;
    if (after === undefined || this.#continued > maxContinued) return this.#fail('outcome_unknown');
    void delay(continuePauseMs * this.#continued).then(async () => {
      const handle = this.#isOver ? undefined : await this.#place?.find(this.#asked.forwarded);
      if (handle === undefined || this.#isOver) return;
      if (typeof handle === 'string') this.#fail('outcome_unknown');
      else this.#listen(handle, after);
    });
  }

  #cancel(reason: string): void {
    if (this.#isOver) return;
    if (this.#reply !== undefined) this.#cancelAtServer(reason);
    this.#end();
  }

  #cancelAtServer(reason: string): void {
    const params = { requestId: this.#id, reason };
    this.#say(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })));
  }

  /** Tells the session something that is not answered. */
  #say(text: Buffer): void {
    void this.#place?.find(this.#asked.forwarded).then((handle) => {
      if (typeof handle !== 'string') void say(handle, [readOwn(text)], undefined, this.#asked.forwarded);
    });
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#bundle);
    this.#reply?.leave();
    if (this.#place !== undefined) this.#host.onOver(this.#place);
  }
}

/** What a session or its stream says that is not there any more. */
const lostReasons: ReadonlySet<Reason> = new Set(['unknown_session', 'unknown_event_id', 'bad_event_id']);
