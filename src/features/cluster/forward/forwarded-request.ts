import { setTimeout as delay } from 'node:timers/promises';
import { isHarmless } from '../../../core/call/rerun.ts';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import { type EventId, formatRequests, readRequestIds } from '../../../core/protocol/wire/event-id.ts';
import {
  type CompleteAnswer,
  type EventSink,
  faultAnswer,
  type Headers,
  type Reply,
} from '../../../core/reply/reply.ts';
import { returnWindowMs, strandedReturnMs } from '../../../core/session/outbound/streams.ts';
import type { SessionHandle } from '../../../core/session/session-handle.ts';
import { getStream } from '../../../core/store/event-log.ts';
import { backoff } from '../../../core/util/timing/backoff.ts';
import type { Denial, PeerCall, PeerFailure, PeerListener, PeerTransport } from '../peers/peer-request.ts';
import { bodyOf, type ClientOperation, operationRequestIds, peerRequestOf } from './client-operation.ts';
import { ClientReply } from './client-reply.ts';
import { EventCutter, type ReceivedBatch } from './received-events.ts';

/** A fault that `isPassing` applies to requests; a stream can wait for its end. If it passes `soon`, a request can, too. */
export interface LookupFault {
  readonly fault: Reason;
  readonly isPassing?: true | 'soon';
}

/**
 * Where a session is, as far as known. `later`: the answer cannot be known now; ask again. With `adopts`, nobody owns the
 * session, and the instance is asked to take it over.
 */
export type SessionLocation =
  | { readonly here: SessionHandle }
  /** The owner and epoch that the record names. */
  | { readonly instance: string; readonly epoch: number; readonly adopts?: true }
  | LookupFault
  | 'later';

/** How the owner of one request is found. */
export interface OwnerRoute {
  /** Whether the session exists and the client may use it. Absent if that is known. */
  admit?(): Promise<'yes' | LookupFault | 'later'>;
  /**
   * Finds the owner of the session, or takes the session over.
   * @param failed the owner of the previous attempt, and how that attempt ended
   */
  locate(failed: FailedAttempt | undefined): Promise<SessionLocation>;
  /** Replays the part of a stream that is in the log; see `replay.ts`. Absent if a stream is never asked for. */
  replay?(after: EventId, reply: ClientReply): Promise<EventId | 'complete'>;
  /** False if the answers go to a stream elsewhere: a harmless request that ran again would be answered twice there. */
  readonly mayRepeat: boolean;
  /**
   * The reconnection time for priming events of the client's streams, as far as the request tells; undefined for none.
   */
  readonly retryMsOfPriming?: number | undefined;
}

/** The services of its instance that all forwarded requests need. */
export interface ForwardingHost extends Pick<PeerTransport, 'ask'> {
  /** How long a POST may wait in total for an owner, in milliseconds. */
  readonly waitMs: number;
  readonly earlyStreamMs: number;
  /** True once the instance has stopped. */
  isClosed(): boolean;
}

/** Why an attempt with an owner ended. */
export type AttemptEnd = 'answered' | Denial | PeerFailure;

/** An owner that did not answer. */
export interface FailedAttempt {
  readonly instance: string;
  readonly epoch: number;
  readonly why: 'moved' | PeerFailure;
  /** How often in a row the owner has failed in this way in this epoch; 0 if it is about to have another answer. */
  readonly times: number;
}

/** The pauses between lookups that could not be answered yet, and between requests to an owner out of reach. */
const pauseAfter = backoff({ firstMs: 50, maxMs: 500, factor: 1.5, spread: [0.75, 1.25] });

/**
 * Forwards one client request to the instance that owns the session, and returns the response to the client. It survives
 * the loss of owners (P3). A stream continues after its last event id with the next owner, as the client itself would
 * resume it with Last-Event-ID. A request that may have run is run again only if that is harmless. Otherwise it ends in
 * `outcome_unknown`.
 */
export class ForwardedRequest implements PeerListener {
  readonly key: string;
  readonly #host: ForwardingHost;
  readonly #route: OwnerRoute;
  readonly #reply: ClientReply;
  #operation: ClientOperation;
  readonly #ids: readonly RequestId[];
  /** The request ids as the client's event ids name them. */
  readonly #requestNames: Pick<EventId, 'requests'>;
  /** The owner that has to answer, and the request to it. */
  #owner: string | undefined;
  #call: PeerCall | undefined;
  #settleAttempt: ((why: AttemptEnd) => void) | undefined;
  readonly #beganAt = performance.now();
  #ownerLostAt = Number.NEGATIVE_INFINITY;
  #failed: FailedAttempt | undefined;
  readonly #cutter = new EventCutter();
  #sink: EventSink | undefined;
  /** True once an event of the current owner has named the requests. An owner may not know them. */
  #areRequestsNamed = false;
  /** The client does not read, so the owner waits. */
  #isPaused = false;
  /** True once events of a stream were passed on. */
  #hasWritten = false;

  constructor(key: string, operation: ClientOperation, reply: Reply, route: OwnerRoute, host: ForwardingHost) {
    this.key = key;
    this.#operation = operation;
    this.#route = route;
    this.#host = host;
    this.#ids = operationRequestIds(operation);
    this.#reply = new ClientReply(reply, this.#ids, this.#after);
    const requests = this.#listens ? this.#after?.requests : formatRequests(this.#ids);
    this.#requestNames = requests === undefined ? {} : { requests };
    this.#reply.mayHaveRun = operation.kind === 'post' && operation.again === true;
    reply.onGone(() => this.#endAttempt('answered'));
  }

  /** The first request that needs an answer; null if there is none. */
  get requestId(): RequestId | null {
    return this.#ids[0] ?? null;
  }

  /** True if the client waits for the answer to a request, either a new one or one that its event id names. */
  get #awaitsAnswer(): boolean {
    const after = this.#after;
    return this.requestId !== null || (after !== undefined && readRequestIds(after).length > 0);
  }

  /** The event after which a GET continues its stream. */
  get #after(): EventId | undefined {
    return this.#operation.kind === 'listen' ? this.#operation.after : undefined;
  }

  /** True for a GET stream, which may wait for ever. */
  get #listens(): boolean {
    return this.#operation.kind === 'listen';
  }

  /** The owner whose loss would have to be noticed here. */
  get owner(): string | undefined {
    return this.#owner;
  }

  /** Runs until the client has its answer or is gone. Rejects only for a fault of the gateway. */
  async run(): Promise<void> {
    if (this.#listens) this.#reply.openAfter(this.#host.earlyStreamMs, this.#route.retryMsOfPriming);
    while ((await this.#untilKnown(async () => this.#route.admit?.() ?? 'yes')) !== undefined) {
      if (this.#listens && (await this.#replay())) return;
      const owner = await this.#untilKnown(() => this.#route.locate(this.#failed));
      if (owner === undefined || this.#reply.isDone) return;
      if ('here' in owner) return this.#serve(owner.here);
      const why = await this.#attempt(owner.instance, owner.adopts);
      if (why === 'answered') return;
      if (why === 'moved' || why === 'ending') await this.#prepareResume();
      if (why === 'lost' && !this.#prepareRetry()) return;
      this.#failed = failedAfter(this.#failed, owner, why);
      if (why !== 'moved' && why !== 'ending' && !(await this.#waitForOwner(this.#failed))) return;
    }
  }

  /**
   * Repeats a lookup until it has a result: for a POST as long as it may wait, for a GET for ever (P7).
   * @returns undefined if the reply was answered, here or elsewhere
   */
  async #untilKnown<T extends object | string>(find: () => Promise<T | LookupFault | 'later'>): Promise<T | undefined> {
    for (let lookups = 0; !this.#reply.isDone; lookups += 1) {
      const result = await find();
      const isRefused = typeof result === 'object' && 'fault' in result;
      if (!isRefused && result !== 'later') return result as T;
      const isLate = this.#isLate;
      const passes = isRefused && (result.isPassing === 'soon' || (result.isPassing && !this.#awaitsAnswer));
      if (isRefused && (!passes || isLate)) this.#reply.answer(faultAnswer(result.fault, this.requestId));
      else if (isLate) this.#endUnknown();
      else await delay(pauseAfter(lookups), undefined, { ref: false });
    }
    return undefined;
  }

  /** This instance stops. A client that can continue elsewhere is sent there, spread over a while. */
  detach(): void {
    if (!this.#reply.isContinued) return;
    this.#reply.endForReconnect();
    this.#endAttempt('answered');
  }

  /** This instance stops now. */
  close(): void {
    this.#abandon('draining');
    this.#endAttempt('answered');
  }

  /** Answers that no owner could be asked in time. */
  #endUnknown(): void {
    const { why } = this.#failed ?? {};
    const reason =
      why === 'refused' ? 'instances_differ' : why === 'unsent' ? 'owner_unreachable' : 'store_unavailable';
    this.#reply.answer(faultAnswer(reason, this.requestId));
  }

  /**
   * This instance is cut off from the store for longer than a lease, and may not learn about the owner for long (P3). A
   * client that can continue elsewhere is sent there. A client that waits for an answer gets a fault. A GET stream
   * waits (P7).
   * @param since requests that began later are left alone, since they have a limit of their own
   */
  endUnreachable(since: number): void {
    if (this.#beganAt > since) return;
    const after = this.#after;
    const waitsForAnswer = this.requestId !== null || (after !== undefined && after.stream !== getStream);
    if (this.#listens && !waitsForAnswer) return;
    const canGoOn = this.#reply.isContinued || after !== undefined;
    if (canGoOn) this.#reply.endForReconnect(strandedReturnMs);
    else this.#abandon('store_unavailable');
    this.#endAttempt('answered');
  }

  /** True if the request may wait no longer for an owner. It may wait as long again after the loss of one. */
  get #isLate(): boolean {
    const { waitMs, isClosed } = this.#host;
    const isOver = performance.now() >= Math.max(this.#beganAt, this.#ownerLostAt) + waitMs;
    return isClosed() || (!this.#listens && isOver);
  }

  /** Answers with a fault of the gateway. */
  fail(reason: Reason): void {
    this.#reply.answer(faultAnswer(reason, this.requestId));
  }

  /** The owner has lost its lease. What it still answers does not count. */
  ownerLost(): void {
    this.#endAttempt(this.#call?.isSent === false ? 'unsent' : 'lost');
  }

  answered(answer: CompleteAnswer): void {
    const isForAll = answer.kind === 'fault' && answer.id === null && this.#ids.length === 1;
    this.#reply.answer(isForAll ? { ...answer, id: this.requestId } : answer);
    this.#endAttempt('answered');
  }

  denied(why: Denial): void {
    this.#endAttempt(why);
  }

  opened(headers: Headers | undefined): void {
    this.#noteMayHaveRun(); // an owner that stops may end the stream before an event of it
    if (this.#sink !== undefined) return;
    this.#sink = this.#reply.stream(headers);
    this.#sink.onDrain(() => {
      this.#isPaused = false;
      this.#call?.resume();
    });
  }

  received(text: Buffer): boolean {
    if (this.#settleAttempt === undefined) return true; // the stream was complete before
    const batch = this.#cutter.take(text);
    if (batch !== undefined) this.#write(batch);
    return !this.#isPaused;
  }

  ended(isMoved: boolean): void {
    if (this.#settleAttempt === undefined) return;
    if (isMoved) return this.#endAttempt('moved');
    this.#finish();
    this.#endAttempt('answered');
  }

  failed(why: PeerFailure): void {
    if (this.#settleAttempt === undefined) return;
    // The owner has given up a client that does not read. The client comes back by itself.
    if (why === 'lost' && this.#isPaused) {
      this.#reply.cutStream();
      return this.#endAttempt('answered');
    }
    this.#endAttempt(why);
  }

  /**
   * Ends the request without an owner. A request that no owner was asked for has not run, so its fault may invite a
   * retry.
   */
  #abandon(faultIfUnsent: Reason): void {
    const isUnsent = this.#call?.isSent !== true;
    this.#reply.answer(faultAnswer(isUnsent ? faultIfUnsent : 'outcome_unknown', this.requestId));
  }

  /** Ends the owner's attempt at once. Nothing that arrives later counts. */
  #endAttempt(why: AttemptEnd): void {
    const end = this.#settleAttempt;
    this.#settleAttempt = undefined;
    this.#call?.abort();
    this.#call = undefined;
    end?.(why);
  }

  /** Sends the client the events that are in the log, which needs no owner. True if the stream is complete. */
  async #replay(): Promise<boolean> {
    const after = this.#after;
    const reached = after && (await this.#route.replay?.(after, this.#reply));
    if (reached === undefined || reached === 'complete') return reached === 'complete';
    this.#operation = { kind: 'listen', after: reached };
    // Otherwise the replayed events would be sent again after the loss of the next owner.
    this.#reply.position = reached;
    return false;
  }

  /**
   * Forwards the request to its owner, and waits for the end of this attempt.
   * @param adopts the instance takes the session over first
   */
  async #attempt(owner: string, adopts = false): Promise<AttemptEnd> {
    this.#owner = owner;
    this.#cutter.clear();
    this.#isPaused = false;
    this.#areRequestsNamed = false;
    const request = peerRequestOf(this.key, this.#operation, this.#reply, adopts);
    const why = await new Promise<AttemptEnd>((resolve) => {
      this.#settleAttempt = resolve;
      this.#call = this.#host.ask(owner, request, bodyOf(this.#operation), this);
    });
    this.#owner = undefined;
    return why;
  }

  /** A GET or DELETE may always be sent again. */
  #noteMayHaveRun(): void {
    if (this.#operation.kind === 'post') this.#reply.mayHaveRun = true;
  }

  #write(batch: ReceivedBatch): void {
    const { id } = batch;
    // This stream was opened and primed here before the owner answered. The owner's own priming event is a repeat.
    if (id !== undefined && this.#reply.isAt(id)) return;
    if (id !== undefined) {
      // With it, the client or the next owner continues.
      this.#reply.position = { ...id, ...this.#requestNames };
      this.#reply.isContinued = true;
    }
    this.#hasWritten = true;
    if (this.#sink?.write(batch) === false) this.#isPaused = true;
    if (!this.#isLast(batch)) return;
    // If the end itself is lost, a question for later events could find that the log has dropped the whole stream. The
    // connection is not cut off, since the owner's response ends right behind, and the connection is used again.
    this.#finish();
    this.#call = undefined;
    this.#endAttempt('answered');
  }

  /** All ids of a stream name its requests, but for that of the event that ends the stream; see `EventBatch`. */
  #isLast(batch: ReceivedBatch): boolean {
    const { requests } = this.#requestNames;
    if (requests === undefined || batch.id === undefined) return false;
    this.#areRequestsNamed ||= batch.names(requests);
    return this.#areRequestsNamed && batch.id.requests === undefined;
  }

  /** The owner ends the stream. A client must not be left with an empty stream (P3). */
  #finish(): void {
    if (this.#hasWritten || this.#operation.kind !== 'post') this.#reply.endStream();
    else this.#reply.answer(faultAnswer('outcome_unknown', this.requestId));
  }

  /**
   * Decides after the loss of an owner, or of the connection to it, what the next owner is asked for. False if the client
   * was told the outcome.
   */
  #prepareRetry(): boolean {
    this.#noteMayHaveRun();
    const { position } = this.#reply;
    if (position !== undefined) {
      this.#operation = { kind: 'listen', after: position };
      return true;
    }
    const operation = this.#operation;
    if (operation.kind !== 'post' || operation.opens !== undefined) return true;
    if (this.#route.mayRepeat && operation.messages.every(isHarmless)) return true;
    this.#reply.answer(faultAnswer('outcome_unknown', this.requestId));
    return false;
  }

  /**
   * Waits before the same owner is asked again: it holds its lease, but cannot be reached. False if the client was told
   * that nobody could be asked in time.
   */
  async #waitForOwner({ times }: FailedAttempt): Promise<boolean> {
    // A lost owner may seem to live for a lease. The next owner has its time from now on.
    if (times === 1) this.#ownerLostAt = performance.now();
    else if (this.#isLate) {
      this.#endUnknown();
      return false;
    } else await delay(pauseAfter(times), undefined, { ref: false });
    return true;
  }

  /**
   * The owner stops and has released the session in the middle of the stream. Resuming all its sessions at once would
   * start as many servers, so each client waits for a random time.
   */
  async #prepareResume(): Promise<void> {
    const { position } = this.#reply;
    if (position === undefined) return;
    this.#operation = { kind: 'listen', after: position };
    await delay(Math.random() * returnWindowMs, undefined, { ref: false });
  }

  #serve(session: SessionHandle): void {
    const operation = this.#operation;
    if (operation.kind === 'post') session.post({ ...operation, again: this.#reply.mayHaveRun }, this.#reply);
    else if (operation.kind === 'listen') session.listen(operation.after, this.#reply);
    else session.remove(this.#reply);
  }
}

/** Describes an owner that did not answer. Failures add up as long as the same owner fails in the same way. */
function failedAfter(
  before: FailedAttempt | undefined,
  { instance, epoch }: { readonly instance: string; readonly epoch: number },
  why: Exclude<AttemptEnd, 'answered'>,
): FailedAttempt {
  if (why === 'ending') return { instance, epoch, why: 'moved', times: 0 };
  const isSame = before?.instance === instance && before.epoch === epoch && before.why === why;
  return { instance, epoch, why, times: (isSame ? before.times : 0) + 1 };
}
