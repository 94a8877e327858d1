import { setTimeout as delay } from 'node:timers/promises';
import { isHarmless } from '../../call/rerun.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type EventId, formatRequests, readRequestIds } from '../../protocol/wire/event-id.ts';
import { type CompleteAnswer, type EventSink, faultAnswer, type Reply } from '../../reply/reply.ts';
import { getStream } from '../../session/outbound/cursor.ts';
import { returnWindowMs, strandedReturnMs } from '../../session/outbound/streams.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import { detach } from '../../util/boundary.ts';
import type { AnswerToIngress, MessageToIngress } from '../link/peer-messages.ts';
import { type ClientOperation, maxPreviousIds, messageToOwner, operationRequestIds } from './client-operation.ts';
import { ClientReply } from './client-reply.ts';
import type { AttemptEnd, FailedAttempt, ForwardingHost } from './forwarding-host.ts';
import { attemptId } from './owner-endpoint.ts';
import { ReceivedBatch } from './received-batch.ts';

/** A message in a mailbox, and when it was sent, on the monotonic clock. */
interface SentMessage {
  readonly number: number;
  readonly at: number;
}

/** A loss is noticed within a lease. The next owner has this time, which makes lease + 2 s (P3). */
const afterLossMs = 2_000;

/** The client takes this many bytes of a stream before the owner is notified. */
const ackBytes = 64 * 1024;

/**
 * Forwards one client request to the instance that owns the session, and returns the replies to the client. It survives
 * the loss of owners (P3). A stream continues after its last event id with the next owner, as the client itself would
 * resume it with Last-Event-ID. A request that may have run is run again only if that is harmless. Otherwise it ends in
 * `outcome_unknown`.
 */
export class ForwardedRequest {
  /** The numbers of all attempts, newest last. Each attempt has a number of its own; see `receive`. */
  readonly numbers: number[] = [];
  readonly key: string;
  readonly #host: ForwardingHost;
  readonly #reply: ClientReply;
  #operation: ClientOperation;
  readonly #ids: readonly RequestId[];
  /** The request ids as the client's event ids name them. */
  readonly #requestNames: Pick<EventId, 'requests'>;
  /** The ids of previous attempts, oldest first. */
  #attemptIds: readonly string[] = [];
  /** The owner that has to answer; messages of other instances are out of date. */
  #owner: string | undefined;
  /** The message of the current attempt, as long as it can be withdrawn. */
  #sentMessage: SentMessage | undefined;
  #settleAttempt: ((why: AttemptEnd) => void) | undefined;
  readonly #beganAt = performance.now();
  #ownerLostAt = Number.NEGATIVE_INFINITY;
  /** The newest attempts that were lost. An owner that still lives keeps their answers for the client. */
  readonly #kept: { readonly owner: string; readonly n: number }[] = [];
  #sink: EventSink | undefined;
  #cursor: EventId | undefined;
  #unacknowledged = 0;
  /** True once events of a stream were passed on. */
  #hasWritten = false;

  constructor(key: string, operation: ClientOperation, reply: Reply, host: ForwardingHost) {
    this.key = key;
    this.#operation = operation;
    this.#host = host;
    this.#ids = operationRequestIds(operation);
    this.#reply = new ClientReply(reply, this.#ids, operation.kind === 'listen' ? operation.after : undefined);
    const requests = operation.kind === 'listen' ? operation.after?.requests : formatRequests(this.#ids);
    this.#requestNames = requests === undefined ? {} : { requests };
    this.#reply.mayHaveRun = operation.kind === 'post' && operation.again === true;
    reply.onGone(() => {
      this.#releaseOwner();
      this.#endAttempt('answered');
    });
  }

  /** The number of the current attempt. */
  get n(): number {
    return this.numbers.at(-1) ?? 0;
  }

  /** The first request that needs an answer; null if there is none. */
  get requestId(): RequestId | null {
    return this.#ids[0] ?? null;
  }

  /** True if the client waits for the answer to a request, either a new one or one that its event id names. */
  get awaitsAnswer(): boolean {
    const { after } = this.#operation.kind === 'listen' ? this.#operation : {};
    return this.requestId !== null || (after !== undefined && readRequestIds(after).length > 0);
  }

  /** True for a GET stream, which may wait for ever. */
  get listens(): boolean {
    return this.#operation.kind === 'listen';
  }

  /** The owner whose loss would have to be noticed here. */
  get owner(): string | undefined {
    return this.#owner;
  }

  /** Runs until the client has its answer or is gone. Rejects only for a fault of the gateway. */
  async run(): Promise<void> {
    try {
      if (this.#operation.kind === 'listen')
        this.#reply.openAfter(this.#host.earlyStreamMs, this.#host.retryMsOfPriming);
      let failed: FailedAttempt | undefined;
      while (!this.#reply.isDone && (await this.#host.admit(this.#reply)) && !(await this.#replay())) {
        const owner = await this.#host.locate(this.#reply, failed);
        if (owner === 'none' || this.#reply.isDone) return;
        if ('here' in owner) return this.#serve(owner.here);
        const why = await this.#attempt(owner.instance, owner.adopts);
        if (why === 'answered') return;
        if ((why === 'moved' || why === 'ending') && this.#cursor !== undefined)
          await this.#prepareResume(this.#cursor);
        if (why === 'lost' && !(await this.#prepareRetry(owner.instance))) return;
        failed = failedAfter(failed, owner, why);
      }
    } finally {
      for (const { owner, n } of this.#kept) this.#sendGone(owner, n);
      this.#host.onOver();
    }
  }

  /** This instance stops. A client that can continue elsewhere is sent there, spread over a while. */
  detach(): void {
    if (!this.#reply.isContinued) return;
    this.#reply.endForReconnect();
    this.#releaseOwner();
    this.#endAttempt('answered');
  }

  /** This instance stops now. */
  close(): void {
    this.#abandon('draining');
    this.#endAttempt('answered');
  }

  /** Answers that the session's state could not be learned in time. */
  endUnknown(): void {
    this.#reply.answer(faultAnswer('store_unavailable', this.requestId));
  }

  /**
   * This instance is cut off from the store for longer than a lease, and may not learn about the owner for long (P3). A
   * client that can continue elsewhere is sent there. A client that waits for an answer gets a fault. A GET stream
   * waits (P7).
   * @param since requests that began later are left alone, since they have a limit of their own
   */
  endUnreachable(since: number): void {
    if (this.#beganAt > since) return;
    const after = this.#operation.kind === 'listen' ? this.#operation.after : undefined;
    const waitsForAnswer = this.requestId !== null || (after !== undefined && after.stream !== getStream);
    if (this.listens && !waitsForAnswer) return;
    const canGoOn = this.#reply.isContinued || after !== undefined;
    if (canGoOn) this.#reply.endForReconnect(strandedReturnMs);
    else this.#abandon('store_unavailable');
    this.#releaseOwner();
    this.#endAttempt('answered');
  }

  /** How long the request may wait for an owner, on the monotonic clock; after the loss of an owner a little longer. */
  mayWaitUntil(waitMs: number): number {
    return Math.max(this.#beganAt + waitMs, this.#ownerLostAt + afterLossMs);
  }

  /** Answers with a fault of the gateway. */
  fail(): void {
    this.#reply.answer(faultAnswer('internal', this.requestId));
  }

  /**
   * The owner or a message is lost. Further messages of this attempt do not count.
   * @param withdrawn the messages that a lost owner never received; the fate of messages sent before `since` is unknown
   */
  ownerLost(withdrawn?: ReadonlySet<number>, since = 0): void {
    const message = this.#sentMessage;
    const isUnseen = message !== undefined && withdrawn?.has(message.number) === true && message.at >= since;
    this.#endAttempt(isUnseen ? 'gone' : 'lost');
  }

  /**
   * The owner has sent a reply that cannot be read here. Its content is unknown, and so is the effect on the server.
   */
  replyUnreadable(from: string, n: number): void {
    if (n !== this.n || from !== this.#owner || this.#settleAttempt === undefined) return;
    this.#releaseOwner();
    this.#abandon('outcome_unknown');
    this.#endAttempt('answered');
  }

  /** Gives the next attempt a number of its own. */
  begin(): void {
    this.numbers.push(this.#host.renumber());
  }

  /**
   * Receives a message about this request. Parts of a stream count only for the current attempt, or they would be sent
   * twice. A whole answer counts for any attempt.
   */
  receive(from: string, message: MessageToIngress, body: Buffer): void {
    if (message.n !== this.n) {
      if (message.kind === 'json' && !this.#reply.isStream) this.#answerLate(message, body);
      return;
    }
    if (from !== this.#owner || this.#settleAttempt === undefined) return;
    switch (message.kind) {
      case 'moved':
        return this.#endAttempt(message.isEnding === true ? 'ending' : 'moved');
      case 'head':
        this.#noteMayHaveRun(); // an owner that stops may end the stream before an event of it
        this.#open(message.headers);
        return;
      case 'chunk':
        this.#write(from, new ReceivedBatch(body, message.at));
        if (message.isLast !== true) return;
        // If `finish` is lost, a question for later events could find that the log has dropped the whole stream.
        this.#finish();
        break;
      case 'finish':
        this.#finish();
        break;
      case 'cut':
        this.#reply.cutStream();
        break;
      default:
        this.#reply.answer(this.#answerIn(message, body));
    }
    this.#endAttempt('answered');
  }

  /**
   * Ends the request without an owner. A request that no owner was asked for has not run, so its fault may invite a
   * retry.
   */
  #abandon(faultIfUnsent: Reason): void {
    this.#reply.answer(faultAnswer(this.#owner === undefined ? faultIfUnsent : 'outcome_unknown', this.requestId));
  }

  /** Ends the owner's attempt at once. The next message of the same delivery, after a hole, must not count. */
  #endAttempt(why: AttemptEnd): void {
    const end = this.#settleAttempt;
    this.#settleAttempt = undefined;
    end?.(why);
  }

  /** Sends the client the events that are in the log, which needs no owner. True if the stream is complete. */
  async #replay(): Promise<boolean> {
    if (this.#operation.kind !== 'listen' || this.#operation.after === undefined) return false;
    const reached = await this.#host.replay(this.#operation.after, this.#reply);
    if (reached === 'complete') return true;
    this.#operation = { kind: 'listen', after: reached };
    // Otherwise the replayed events would be sent again after the loss of the next owner.
    this.#cursor = reached;
    this.#reply.position = reached;
    return false;
  }

  /**
   * Forwards the request to its owner, and waits for the end of this attempt.
   * @param adopts the instance takes the session over first
   */
  async #attempt(owner: string, adopts = false): Promise<AttemptEnd> {
    this.#owner = owner;
    const ended = new Promise<AttemptEnd>((resolve) => {
      this.#settleAttempt = resolve;
    });
    const previousIds = this.#cursor === undefined ? this.#attemptIds : [];
    const attempt = { n: this.n, key: this.key, previousIds, reply: this.#reply, adopts };
    const { message, body } = messageToOwner(this.#operation, attempt);
    if (message.kind !== 'remove')
      this.#attemptIds = [...this.#attemptIds, attemptId(this.#host.name(), this.n)].slice(-maxPreviousIds);
    const at = performance.now();
    const outcome = await this.#host.send(owner, message, body, (number) => {
      this.#sentMessage = { number, at };
    });
    if (outcome === 'full') {
      this.#reply.answer(faultAnswer('owner_busy', this.requestId));
      return this.#closeAttempt('answered');
    }
    if (outcome !== 'posted') return this.#closeAttempt(outcome);
    const why = await ended;
    // An owner that is alive would go on sending, and believe the client's connection open.
    if (why === 'lost') {
      this.#releaseOwner(true);
      if (message.kind === 'post') this.#kept.push({ owner, n: attempt.n });
      if (this.#kept.length > maxPreviousIds) this.#kept.shift();
    }
    return this.#closeAttempt(why);
  }

  /** Answers with the reply to an earlier attempt, which arrived during the current one. */
  #answerLate(message: AnswerToIngress, body: Buffer): void {
    this.#reply.answer(this.#answerIn(message, body));
    this.#releaseOwner();
    this.#endAttempt('answered');
  }

  #answerIn({ n: _, ...answer }: AnswerToIngress, text: Buffer): CompleteAnswer {
    if (answer.kind === 'json') return { ...answer, text };
    if (answer.kind !== 'fault') return answer;
    return { ...answer, id: answer.id ?? (this.#ids.length === 1 ? this.requestId : null) };
  }

  /** Tells the owner that no client waits for the attempt any more, or that a new attempt follows. */
  #releaseOwner(asksAgain = false): void {
    if (this.#owner !== undefined) this.#sendGone(this.#owner, this.n, asksAgain);
  }

  #sendGone(owner: string, n: number, asksAgain = false): void {
    const { isAnswered } = this.#reply;
    const why = asksAgain ? { asksAgain } : isAnswered && { isAnswered };
    detach('cluster', this.#host.send(owner, { kind: 'gone', n, ...why }));
  }

  /** A GET or DELETE may always be sent again. */
  #noteMayHaveRun(): void {
    if (this.#operation.kind === 'post') this.#reply.mayHaveRun = true;
  }

  #closeAttempt(why: AttemptEnd): AttemptEnd {
    if (why === 'lost' || why === 'gone') this.#ownerLostAt = performance.now();
    this.#owner = undefined;
    this.#sentMessage = undefined;
    this.#settleAttempt = undefined;
    this.begin();
    return why;
  }

  #open(headers?: Readonly<Record<string, string>>): void {
    if (this.#sink !== undefined) return;
    this.#sink = this.#reply.stream(headers);
    this.#sink.onDrain(() => this.#acknowledge());
  }

  #write(from: string, batch: ReceivedBatch): void {
    const { at } = batch;
    this.#unacknowledged += batch.text.length;
    // This stream was opened and primed here before the owner answered. The owner's own priming event is a repeat.
    if (at !== undefined && this.#reply.isAt(at)) return;
    if (at !== undefined) this.#advance({ ...at, ...this.#requestNames });
    this.#hasWritten = true;
    const keepsUp = this.#sink?.write(batch);
    if (keepsUp && this.#unacknowledged >= ackBytes) this.#acknowledge(from);
  }

  /** The client now has an event id, with which the client or the next owner continues. */
  #advance(position: EventId): void {
    this.#cursor = position;
    this.#reply.position = position;
    this.#reply.isContinued = true;
  }

  /** The owner ends the stream. A client must not be left with an empty stream (P3). */
  #finish(): void {
    if (this.#hasWritten || this.#operation.kind !== 'post') this.#reply.endStream();
    else this.#reply.answer(faultAnswer('outcome_unknown', this.requestId));
  }

  #acknowledge(to = this.#owner): void {
    const bytes = this.#unacknowledged;
    if (to === undefined || bytes === 0) return;
    this.#unacknowledged = 0;
    detach('cluster', this.#host.send(to, { kind: 'read', n: this.n, bytes }));
  }

  /**
   * Decides after the loss of an owner, or of messages between it and here, what the next owner is asked for. False if
   * the client was told the outcome.
   */
  async #prepareRetry(lost: string): Promise<boolean> {
    this.#unacknowledged = 0;
    this.#noteMayHaveRun();
    if (this.#cursor !== undefined) {
      this.#operation = { kind: 'listen', after: this.#cursor };
      return true;
    }
    const { kind } = this.#operation;
    if (kind !== 'post' || this.#operation.opens !== undefined || this.#operation.messages.every(isHarmless))
      return true;
    // A living owner may still run the request. It is asked for the answer, and reports if it has none.
    if (await this.#host.isAlive(lost)) return true;
    this.#reply.answer(faultAnswer('outcome_unknown', this.requestId));
    return false;
  }

  /**
   * The owner stops and has released the session in the middle of the stream. Resuming all its sessions at once would
   * start as many servers, so each client waits for a random time.
   */
  async #prepareResume(cursor: EventId): Promise<void> {
    this.#operation = { kind: 'listen', after: cursor };
    await delay(Math.random() * returnWindowMs, undefined, { ref: false });
  }

  #serve(session: SessionHandle): void {
    const operation = this.#operation;
    if (operation.kind === 'post') session.post({ ...operation, again: this.#reply.mayHaveRun }, this.#reply);
    else if (operation.kind === 'listen') session.listen(operation.after, this.#reply);
    else session.remove(this.#reply);
  }
}

/** Describes an owner that did not answer. Denials add up as long as the same owner denies the same epoch. */
function failedAfter(
  before: FailedAttempt | undefined,
  { instance, epoch }: { readonly instance: string; readonly epoch: number },
  why: Exclude<AttemptEnd, 'answered'>,
): FailedAttempt {
  if (why === 'ending') return { instance, epoch, why: 'moved', denials: 0 };
  if (why !== 'moved') return { instance, epoch, why, denials: 0 };
  const isSame = before?.instance === instance && before.epoch === epoch;
  return { instance, epoch, why, denials: (isSame ? before.denials : 0) + 1 };
}
