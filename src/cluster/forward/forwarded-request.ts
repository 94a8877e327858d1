import { setTimeout as delay } from 'node:timers/promises';
import { isHarmless } from '../../call/rerun.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type EventId, formatRequests, parseEventId, readRequestIds } from '../../protocol/wire/event-id.ts';
import type { EventSink, Reply } from '../../reply/reply.ts';
import { getStream, returnWindowMs, strandedReturnMs } from '../../session/events/streams.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import { detach } from '../../util/boundary.ts';
import type { MessageToIngress } from '../link/peer-messages.ts';
import { type ClientOperation, maxPreviousIds, messageToOwner, operationRequestIds } from './client-operation.ts';
import { ClientReply } from './client-reply.ts';
import type { AttemptEnd, FailedAttempt, ForwardingHost } from './forwarding-host.ts';
import { attemptId } from './owner-endpoint.ts';

/** A letter in a mailbox, and when it was posted, on the monotonic clock. */
interface PostedLetter {
  readonly number: number;
  readonly at: number;
}

/** A loss is noticed within a lease; the next owner has this time, which makes lease + 2 s (P3). */
const afterLossMs = 2_000;

/** So many bytes of a stream are taken before its owner is told. */
const receiptBytes = 64 * 1024;

/**
 * One request of a client to a session that another instance holds: handed to the owner, and its replies to the client.
 * Outlives owners (P3): a stream goes on behind its last event id with the next one, as the client itself would by
 * Last-Event-ID; a request that may have been run is run again where that is harmless, and else ends in `outcome_unknown`.
 */
export class ForwardedRequest {
  /** The numbers of what was asked, the newest last: another asking has another one; see `take`. */
  readonly numbers: number[] = [];
  readonly key: string;
  readonly #host: ForwardingHost;
  readonly #reply: ClientReply;
  #wanted: ClientOperation;
  readonly #ids: readonly RequestId[];
  /** How the event ids of the client name its requests. */
  readonly #named: Pick<EventId, 'requests'>;
  /** The names under which owners were asked, oldest first. */
  #asked: readonly string[] = [];
  /** The owner that is to answer; letters of others are out of date. */
  #owner: string | undefined;
  /** What the owner was asked by, while that letter can be taken back. */
  #letter: PostedLetter | undefined;
  #end: ((why: AttemptEnd) => void) | undefined;
  readonly #beganAt = performance.now();
  #lostAt = Number.NEGATIVE_INFINITY;
  #sink: EventSink | undefined;
  #cursor: EventId | undefined;
  #unacknowledged = 0;
  /** Something of a stream was passed on. */
  #hasWritten = false;

  constructor(key: string, wanted: ClientOperation, reply: Reply, host: ForwardingHost) {
    this.key = key;
    this.#wanted = wanted;
    this.#host = host;
    this.#ids = operationRequestIds(wanted);
    this.#reply = new ClientReply(reply, this.#ids, wanted.kind === 'listen' ? wanted.after : undefined);
    const requests = wanted.kind === 'listen' ? wanted.after?.requests : formatRequests(this.#ids);
    this.#named = requests === undefined ? {} : { requests };
    this.#reply.mayHaveRun = wanted.kind === 'post' && wanted.again === true;
    reply.onGone(() => {
      this.#letOwnerGo();
      this.#over('answered');
    });
  }

  /** The number of what is asked now. */
  get n(): number {
    return this.numbers.at(-1) ?? 0;
  }

  /** The first request that is to be answered; null if there is none. */
  get requestId(): RequestId | null {
    return this.#ids[0] ?? null;
  }

  /** True if the client waits for the answer to a request, with which it came or which its event id names. */
  get awaitsAnswer(): boolean {
    const { after } = this.#wanted.kind === 'listen' ? this.#wanted : {};
    return this.requestId !== null || (after !== undefined && readRequestIds(after).length > 0);
  }

  /** True for a stream that may wait for ever. */
  get listens(): boolean {
    return this.#wanted.kind === 'listen';
  }

  /** The instance whose loss would have to be noticed here. */
  get owner(): string | undefined {
    return this.#owner;
  }

  /** Runs until the client has its answer or is gone. Rejects only for a fault of the gateway. */
  async run(): Promise<void> {
    try {
      if (this.#wanted.kind === 'listen') this.#reply.openAfter(this.#host.earlyStreamMs, this.#host.retryMsOfPriming);
      let failed: FailedAttempt | undefined;
      while (!this.#reply.isDone && (await this.#host.admit(this.#reply)) && !(await this.#replayed())) {
        const owner = await this.#host.locate(this.#reply, failed);
        if (owner === 'none' || this.#reply.isDone) return;
        if ('here' in owner) return this.#serve(owner.here);
        const why = await this.#ask(owner.instance);
        if (why === 'answered') return;
        if ((why === 'moved' || why === 'ending') && this.#cursor !== undefined) await this.#followOn(this.#cursor);
        if (why === 'lost' && !(await this.#goOn(owner.instance))) return;
        failed = failedAfter(failed, owner, why);
      }
    } finally {
      this.#host.onOver();
    }
  }

  /** This instance stops: a client that can go on elsewhere is sent there, over a while. */
  detach(): void {
    if (!this.#reply.isContinued || this.#host.isOneStream) return;
    this.#reply.endForReconnect();
    this.#letOwnerGo();
    this.#over('answered');
  }

  /** This instance stops now. */
  close(): void {
    if (this.listens && this.#host.isOneStream) this.#reply.endForReconnect();
    else this.#abandon('draining');
    this.#over('answered');
  }

  /** Nothing could be known of the session in time. */
  endUnknown(): void {
    this.#reply.fault('store_unavailable', this.requestId);
  }

  /**
   * This instance is cut off from the store for longer than a lease, and may not hear of the owner for long (P3): a client
   * that can go on elsewhere is sent there, and one that waits for an answer is told what is known. A GET stream waits (P7).
   * @param since requests that came later are left alone: they have their own limit
   */
  endUnreachable(since: number): void {
    if (this.#beganAt > since) return;
    const after = this.#wanted.kind === 'listen' ? this.#wanted.after : undefined;
    const waitsForAnswer = this.requestId !== null || (after !== undefined && after.stream !== getStream);
    if (this.listens && (!waitsForAnswer || this.#host.isOneStream)) return;
    const canGoOn = this.#reply.isContinued || after !== undefined;
    if (canGoOn && !this.#host.isOneStream) this.#reply.endForReconnect(strandedReturnMs);
    else this.#abandon('store_unavailable');
    this.#letOwnerGo();
    this.#over('answered');
  }

  /** Until when it may wait for somebody to ask, on the monotonic clock; after the loss of an owner a little longer. */
  mayWaitUntil(waitMs: number): number {
    return Math.max(this.#beganAt + waitMs, this.#lostAt + afterLossMs);
  }

  /** There is a fault of the gateway. */
  fail(): void {
    this.#reply.fault('internal', this.requestId);
  }

  /**
   * The owner is lost, or a letter was: what it still says does not count.
   * @param withdrawn the letters that a lost owner never saw; nothing is known of those posted before `since`
   */
  ownerLost(withdrawn?: ReadonlySet<number>, since = 0): void {
    const letter = this.#letter;
    const isUnseen = letter !== undefined && withdrawn?.has(letter.number) === true && letter.at >= since;
    this.#over(isUnseen ? 'gone' : 'lost');
  }

  /** The owner has said something that cannot be read here. What it was is not known, nor whether the server did anything. */
  replyUnreadable(from: string, n: number): void {
    if (n !== this.n || from !== this.#owner || this.#end === undefined) return;
    this.#letOwnerGo();
    this.#abandon('outcome_unknown');
    this.#over('answered');
  }

  /** Gives what is asked next a number of its own. */
  begin(): void {
    this.numbers.push(this.#host.renumber());
  }

  /**
   * Takes a letter about this request. Parts of a stream count only as an answer to what was asked last, or they would come
   * twice; a whole answer counts whenever it comes.
   */
  receive(from: string, letter: MessageToIngress, body: Buffer): void {
    if (letter.n !== this.n) {
      if (letter.kind === 'json' && !this.#reply.isStream) this.#answerLate(letter, body);
      return;
    }
    if (from !== this.#owner || this.#end === undefined) return;
    switch (letter.kind) {
      case 'moved':
        return this.#over(letter.isEnding === true ? 'ending' : 'moved');
      case 'head':
        this.#mayHaveRun(); // an owner that stops may end the stream before an event of it
        this.#open(letter.headers);
        return;
      case 'chunk':
        return this.#write(from, body, letter.at);
      case 'json':
        this.#reply.json(body, letter.headers);
        break;
      case 'fault':
        this.#reply.fault(letter.reason, letter.id ?? (this.#ids.length === 1 ? this.requestId : null), letter.data);
        break;
      case 'finish':
        this.#finish();
        break;
      case 'cut':
        this.#sink?.cut();
        break;
      default:
        this.#reply[letter.kind]();
    }
    this.#over('answered');
  }

  /** Nobody answers any more. What no owner was asked for has not run, and may be sent again for this reason. */
  #abandon(unasked: Reason): void {
    this.#reply.fault(this.#owner === undefined ? unasked : 'outcome_unknown', this.requestId);
  }

  /** Ends the owner's part at once: the next letter of the same delivery, behind a hole, must not count. */
  #over(why: AttemptEnd): void {
    const end = this.#end;
    this.#end = undefined;
    end?.(why);
  }

  /** What can be had from the log needs no owner. True if that was all. */
  async #replayed(): Promise<boolean> {
    if (this.#wanted.kind !== 'listen' || this.#wanted.after === undefined) return false;
    const reached = await this.#host.replay(this.#wanted.after, this.#reply);
    if (reached === 'complete') return true;
    this.#wanted = { kind: 'listen', after: reached };
    // Or what was replayed would be sent again after the loss of the next owner.
    this.#cursor = reached;
    this.#reply.position = reached;
    return false;
  }

  /** Passes the request on to its owner, and waits for how that ends. */
  async #ask(owner: string): Promise<AttemptEnd> {
    this.#owner = owner;
    const ended = new Promise<AttemptEnd>((resolve) => {
      this.#end = resolve;
    });
    const asking = { n: this.n, key: this.key, previousIds: this.#asked, reply: this.#reply };
    const { letter, body } = messageToOwner(this.#wanted, asking);
    if (letter.kind === 'post')
      this.#asked = [...this.#asked, attemptId(this.#host.name(), this.n)].slice(-maxPreviousIds);
    const at = performance.now();
    const posted = await this.#host.send(owner, letter, body, (number) => {
      this.#letter = { number, at };
    });
    if (posted === 'full') {
      this.#reply.fault('owner_busy', this.requestId);
      return this.#leave('answered');
    }
    if (posted !== 'posted') return this.#leave(posted);
    const why = await ended;
    // One that lives would go on sending, and holds the connection to be the client's.
    if (why === 'lost') this.#letOwnerGo(true);
    return this.#leave(why);
  }

  /** The answer was on its way when it was asked for again. */
  #answerLate({ headers }: Extract<MessageToIngress, { kind: 'json' }>, body: Buffer): void {
    this.#reply.json(body, headers);
    this.#letOwnerGo();
    this.#over('answered');
  }

  /** Tells the owner that nobody waits for what was asked of it, or that it is asked for again. */
  #letOwnerGo(asksAgain = false): void {
    if (this.#owner === undefined) return;
    detach('cluster', this.#host.send(this.#owner, { kind: 'gone', n: this.n, ...(asksAgain && { asksAgain }) }));
  }

  /** What is asked for by a GET or DELETE may be asked for again. */
  #mayHaveRun(): void {
    if (this.#wanted.kind === 'post') this.#reply.mayHaveRun = true;
  }

  #leave(why: AttemptEnd): AttemptEnd {
    if (why === 'lost' || why === 'gone') this.#lostAt = performance.now();
    this.#owner = undefined;
    this.#letter = undefined;
    this.#end = undefined;
    this.begin();
    return why;
  }

  #open(headers?: Readonly<Record<string, string>>): void {
    if (this.#sink !== undefined) return;
    this.#sink = this.#reply.stream(headers);
    this.#sink.onDrain(() => this.#acknowledge());
  }

  #write(from: string, bytes: Buffer, at: string | undefined): void {
    const place = at === undefined ? undefined : parseEventId(at);
    this.#unacknowledged += bytes.length;
    // Its stream was opened and primed here while the owner was being asked: the owner's own priming event comes too late.
    if (place !== undefined && this.#reply.isAt(place)) return;
    if (place !== undefined) this.#reach({ ...place, ...this.#named });
    this.#hasWritten = true;
    const keepsUp = this.#sink?.write(bytes, at);
    if (keepsUp && this.#unacknowledged >= receiptBytes) this.#acknowledge(from);
  }

  /** The client has an event id, with which it or the next owner goes on. */
  #reach(place: EventId): void {
    this.#cursor = place;
    this.#reply.position = place;
    this.#reply.isContinued = true;
  }

  /** The owner ends the stream. Its client must not be left with a stream in which there was nothing (P3). */
  #finish(): void {
    if (this.#hasWritten || this.#wanted.kind !== 'post') this.#sink?.end();
    else this.#reply.fault('outcome_unknown', this.requestId);
  }

  #acknowledge(to = this.#owner): void {
    const bytes = this.#unacknowledged;
    if (to === undefined || bytes === 0) return;
    this.#unacknowledged = 0;
    detach('cluster', this.#host.send(to, { kind: 'read', n: this.n, bytes }));
  }

  /**
   * After the loss of an owner, or of letters between it and here: what is to be asked of the next one, or of the same again.
   * False if the client was told the outcome.
   */
  async #goOn(lost: string): Promise<boolean> {
    this.#unacknowledged = 0;
    this.#mayHaveRun();
    if (this.#cursor !== undefined) {
      this.#wanted = { kind: 'listen', after: this.#cursor };
      return true;
    }
    const { kind } = this.#wanted;
    // Of a client with one stream the next owner knows what was accepted, and has answered it there.
    if (kind !== 'post' || this.#host.isOneStream || this.#wanted.messages.every(isHarmless)) return true;
    // An owner that lives may still run it; it is asked for the answer, and says so if it has none.
    if (await this.#host.isAlive(lost)) return true;
    this.#reply.fault('outcome_unknown', this.requestId);
    return false;
  }

  /**
   * The owner stops and has released the session in the middle of the stream. All its sessions at once would start as many
   * servers, so each client waits for another while.
   */
  async #followOn(cursor: EventId): Promise<void> {
    this.#wanted = { kind: 'listen', after: cursor };
    await delay(Math.random() * returnWindowMs, undefined, { ref: false });
  }

  #serve(session: SessionHandle): void {
    const wanted = this.#wanted;
    if (wanted.kind === 'post') session.post({ ...wanted, again: this.#reply.mayHaveRun }, this.#reply);
    else if (wanted.kind === 'listen') session.listen(wanted.after, this.#reply);
    else session.remove(this.#reply);
  }
}

/** What is known of an owner that did not answer. Denials count as long as the same owner says so of the same epoch. */
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
