import { setTimeout as delay } from 'node:timers/promises';
import type { Instances } from '../../store/instances.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';
import { detach } from '../../util/boundary.ts';
import { backoff } from '../../util/timing/backoff.ts';
import type { DirectChannel, DirectSender } from './direct-connection.ts';

/**
 * The result of sending a message. `full`: the receiver did not make room in time. `gone`: there is no such receiver,
 * and it never saw the message. `lost`: the receiver may have seen it.
 */
export type SendOutcome = 'posted' | 'full' | 'gone' | 'lost';

/** Options of `SendQueue`. */
export interface SendQueueOptions {
  readonly instances: Instances;
  readonly from: string;
  readonly to: string;
  /** The number of the first message. A receiver takes numbers that it has seen for repeats. */
  readonly first: number;
  /** The most bytes that wait here (P8). */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** The direct connection to the receiver, if one can be used now. */
  direct?(): DirectChannel | undefined;
}

interface QueuedPart {
  readonly content: Buffer;
  readonly message: QueuedMessage;
  readonly isLast: boolean;
  /** True if an earlier attempt to send the part had no answer: it may have arrived. */
  isUnsure: boolean;
}

/** A whole message. All of its parts are given up together, or none. */
interface QueuedMessage {
  /**
   * When the message is given up for want of room, on the monotonic clock. Infinite if it must not be lost, or if a
   * part of it was sent.
   */
  deadline: number;
  settle(outcome: SendOutcome): void;
  readonly onNumber: ((number: number) => void) | undefined;
}

/**
 * The most bytes of one enqueue call: many messages of one tick, or a few large ones. Later messages wait for that
 * call.
 */
const maxEnqueueBytes = 512 * 1024;

/**
 * After a refusal the store delivers first, for this long. The receiver has then seen all messages before the next ones.
 */
const afterRefusalMs = 50;

const pauseAfter = backoff({ firstMs: 10, maxMs: 250 });

/**
 * The messages from this instance to another one, in order. They go over a direct connection if there is one, and else
 * into the mailbox of the receiver. Each has one number on both ways, so the receiver handles it exactly once. A
 * connection that fails leaves its unacknowledged messages to the mailbox (docs/decisions/0090).
 */
export class SendQueue implements DirectSender {
  readonly #options: SendQueueOptions;
  #queue: QueuedPart[] = [];
  #bytes = 0;
  #next: number;
  /**
   * The number of parts at the head of the queue that are under way on a direct connection or are being enqueued, or
   * once were without an answer. They may have arrived.
   */
  #inFlight = 0;
  /** The direct connection in use. */
  #connection: DirectChannel | undefined;
  #noDirectBefore = Number.NEGATIVE_INFINITY;
  #isRunning = false;
  #isGone = false;

  constructor(options: SendQueueOptions) {
    this.#options = options;
    this.#next = options.first;
  }

  /**
   * Sends a message, which may have several parts. Never rejects.
   * @param waitMs how long the message may wait for room in the mailbox; infinite if it must not be lost
   * @param isNotice true for a message that reports a loss, and so must not be lost itself. It is `full` right behind
   *   the same notice, which tells the receiver enough: the notices to a receiver that is stuck must not pile up (P8)
   * @param onNumber receives the number of the last part, if that part is known to have been enqueued exactly once
   */
  send(
    parts: readonly Buffer[],
    waitMs = Number.POSITIVE_INFINITY,
    isNotice = false,
    onNumber?: (number: number) => void,
  ): Promise<SendOutcome> {
    if (this.#isGone) return Promise.resolve('gone');
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    const isFull = this.#bytes > 0 && this.#bytes + bytes > this.#options.maxBytes;
    if (isNotice ? this.#endsWith(parts) : isFull) return Promise.resolve('full');
    return new Promise((settle) => {
      const message = { deadline: performance.now() + waitMs, settle, onNumber };
      for (const [index, content] of parts.entries()) {
        this.#queue.push({ content, message, isLast: index === parts.length - 1, isUnsure: false });
      }
      this.#bytes += bytes;
      if (this.#isRunning) return;
      this.#isRunning = true;
      queueMicrotask(() => this.#start()); // after the other messages of this tick
    });
  }

  /** True if this notice is the last part of the queue, and is not being enqueued. */
  #endsWith([notice]: readonly Buffer[]): boolean {
    const last = this.#queue.length > this.#inFlight ? this.#queue.at(-1) : undefined;
    return notice !== undefined && last?.content.equals(notice) === true;
  }

  /** The number of the next message. */
  get next(): number {
    return this.#next;
  }

  /** How many queued parts have no number yet. */
  get waiting(): number {
    return this.#queue.length;
  }

  get isClosed(): boolean {
    return this.#isGone;
  }

  /** The receiver is gone, or this sender has ended. Nothing waits any longer. */
  close(): void {
    this.#isGone = true;
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection !== undefined) {
      connection.release(this);
      this.#settle(this.#takeSent(this.#inFlight), 'lost');
    }
    // Parts that are being enqueued settle by themselves.
    this.#settle(this.#queue.splice(this.#inFlight), 'gone');
  }

  onAcknowledged(number: number): void {
    const count = Math.min(number - this.#next + 1, this.#inFlight);
    if (count <= 0) return;
    this.#settleArrived(count);
    this.#sendDirect();
  }

  onEnded(refusedFrom: number | undefined): void {
    this.#connection = undefined;
    if (refusedFrom === undefined) for (const part of this.#queue.slice(0, this.#inFlight)) part.isUnsure = true;
    else this.#noDirectBefore = performance.now() + afterRefusalMs;
    this.#inFlight = 0;
    if (this.#isRunning || this.#queue.length === 0) return;
    this.#isRunning = true;
    detach('cluster', this.#run());
  }

  /** Takes parts from the head of the queue that have their numbers, and keeps these. */
  #takeSent(count: number): readonly QueuedPart[] {
    this.#next += count;
    this.#inFlight -= count;
    return this.#queue.splice(0, count);
  }

  /** Settles parts that have arrived. The other parts of the last message must not be given up any more. */
  #settleArrived(count: number): void {
    const arrived = this.#takeSent(count);
    for (const { message } of arrived) message.deadline = Number.POSITIVE_INFINITY;
    this.#settle(arrived, 'posted');
  }

  /** Sends what is queued, over a direct connection if one can be used now. */
  #start(): void {
    if (this.#isGone || !this.#useDirect()) return detach('cluster', this.#run());
    this.#isRunning = false;
    this.#sendDirect();
  }

  /** True if a direct connection is in use now. What may have arrived before has to go through the store. */
  #useDirect(): boolean {
    if (this.#connection !== undefined) return true;
    if (performance.now() < this.#noDirectBefore || this.#inFlight > 0 || this.#queue[0]?.isUnsure) return false;
    this.#connection = this.#options.direct?.();
    this.#connection?.use(this, this.#next);
    return this.#connection !== undefined;
  }

  /** Sends as many parts as the window of the connection allows. Acks bring the rest on its way. */
  #sendDirect(): void {
    while (this.#connection?.hasRoom && this.#inFlight < this.#queue.length) {
      const batch = this.#nextBatch(this.#inFlight);
      const first = this.#next + this.#inFlight;
      this.#inFlight += batch.length;
      this.#connection.send(
        first,
        batch.map(({ content }) => content),
      );
    }
  }

  /** Puts what is queued into the mailbox, until the queue is empty or a direct connection can be used. */
  async #run(): Promise<void> {
    const { instances, from, to, signal } = this.#options;
    for (let refusals = 0; this.#queue.length > 0 && !this.#isGone; ) {
      const batch = this.#nextBatch(0);
      this.#inFlight = batch.length;
      const contents = batch.map(({ content }) => content);
      // Once a call had no answer, the messages may be in the mailbox, whatever later answers say.
      let wereUnsure = batch.map(({ isUnsure }) => isUnsure);
      const enqueue = async (): Promise<SendOutcome> => {
        wereUnsure = batch.map(({ isUnsure }) => isUnsure);
        for (const part of batch) part.isUnsure = true;
        const answer = await instances.enqueue(to, from, this.#next, contents);
        for (const [index, part] of batch.entries()) part.isUnsure = wereUnsure[index] === true;
        return answer;
      };
      const outcome = await retryWhileUnavailable(enqueue, signal).catch(() => 'lost' as const);
      if (outcome === 'posted') {
        for (const [index, { message, isLast, isUnsure }] of batch.entries()) {
          if (isLast && !isUnsure) message.onNumber?.(this.#next + index);
        }
        this.#settleArrived(batch.length);
        refusals = 0;
        if (this.#queue.length > 0 && this.#useDirect()) return this.#start();
      } else if (outcome === 'full') {
        this.#inFlight = batch.filter(({ isUnsure }) => isUnsure).length;
        this.#dropLate();
        await delay(pauseAfter(refusals), undefined, { ref: false });
        refusals += 1;
      } else {
        const unsure = outcome === 'lost' ? batch.length : batch.filter(({ isUnsure }) => isUnsure).length;
        // Parts that may have arrived keep their numbers. If they did not arrive, the receiver sees a hole.
        this.#settle(this.#takeSent(unsure), 'lost');
        this.#inFlight = 0;
        this.close();
      }
    }
    this.#isRunning = false;
    if (!this.#isGone) return;
    this.close();
    this.#settle(this.#queue.splice(0), 'lost'); // they may be in the mailbox, and no retry will tell
  }

  /** Gives up messages that have waited too long for room. Nothing of them was enqueued, so no number is missing. */
  #dropLate(): void {
    const now = performance.now();
    const unsure = new Set(this.#queue.slice(0, this.#inFlight).map(({ message }) => message));
    const isLate = ({ message }: QueuedPart) => message.deadline <= now && !unsure.has(message);
    const late = this.#queue.filter(isLate);
    this.#queue = this.#queue.filter((part) => !isLate(part));
    this.#settle(late, 'full');
  }

  /** The parts of the queue from an index on that fit into one enqueue call. */
  #nextBatch(start: number): readonly QueuedPart[] {
    let bytes = 0;
    let end = start;
    for (; end < this.#queue.length; end += 1) {
      bytes += this.#queue[end]?.content.length ?? 0;
      if (end > start && bytes > maxEnqueueBytes) break;
    }
    return this.#queue.slice(start, end);
  }

  #settle(parts: readonly QueuedPart[], outcome: SendOutcome): void {
    for (const { content, message, isLast } of parts) {
      this.#bytes -= content.length;
      if (isLast) message.settle(outcome); // a receiver handles a message only when it has all parts
    }
  }
}
