import { setTimeout as delay } from 'node:timers/promises';
import type { Instances } from '../../store/instances.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';
import { detach } from '../../util/boundary.ts';
import { backoff } from '../../util/timing/backoff.ts';

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
}

interface QueuedPart {
  readonly content: Buffer;
  readonly message: QueuedMessage;
  readonly isLast: boolean;
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

const pauseAfter = backoff({ firstMs: 10, maxMs: 250 });

/**
 * The messages from this instance to another one, in order. Each is put into the mailbox exactly once as the receiver
 * sees it.
 */
export class SendQueue {
  readonly #options: SendQueueOptions;
  #queue: QueuedPart[] = [];
  #bytes = 0;
  #next: number;
  /**
   * The number of parts at the head of the queue that are being enqueued, or once were without an answer. They may be
   * in the mailbox.
   */
  #inFlight = 0;
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
        this.#queue.push({ content, message, isLast: index === parts.length - 1 });
      }
      this.#bytes += bytes;
      if (this.#isRunning) return;
      this.#isRunning = true;
      queueMicrotask(() => detach('cluster', this.#run())); // after the other messages of this tick
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
    // Parts that are being enqueued settle by themselves.
    this.#settle(this.#queue.splice(this.#inFlight), 'gone');
  }

  async #run(): Promise<void> {
    const { instances, from, to, signal } = this.#options;
    let isUnsure = false;
    for (let refusals = 0; this.#queue.length > 0 && !this.#isGone; ) {
      const batch = this.#nextBatch();
      this.#inFlight = batch.length;
      const contents = batch.map(({ content }) => content);
      let isEnqueuedOnce = !isUnsure;
      // Once a call had no answer, the messages may be in the mailbox, whatever later answers say.
      const enqueue = async (): Promise<SendOutcome> => {
        isEnqueuedOnce &&= !isUnsure;
        const wasUnsure = isUnsure;
        isUnsure = true;
        const answer = await instances.enqueue(to, from, this.#next, contents);
        isUnsure = wasUnsure && answer === 'full';
        return wasUnsure && answer === 'gone' ? 'lost' : answer;
      };
      const outcome = await retryWhileUnavailable(enqueue, signal).catch(() => 'lost' as const);
      this.#inFlight = outcome === 'full' && isUnsure ? batch.length : 0;
      if (outcome === 'gone' || outcome === 'lost') {
        // Parts that may have arrived keep their numbers. If they did not arrive, the receiver sees a hole.
        if (outcome === 'lost') this.#next += batch.length;
        this.#queue.splice(0, batch.length);
        this.#settle(batch, outcome);
        this.close();
      } else if (outcome === 'posted') {
        this.#queue.splice(0, batch.length);
        for (const [index, { message, isLast }] of batch.entries()) {
          if (isLast && isEnqueuedOnce) message.onNumber?.(this.#next + index);
        }
        this.#next += batch.length;
        for (const { message } of batch) message.deadline = Number.POSITIVE_INFINITY;
        this.#settle(batch, 'posted');
        refusals = 0;
      } else {
        // Nothing was enqueued, so dropping late messages leaves no hole in the numbers.
        const now = performance.now();
        const unsure = new Set(this.#queue.slice(0, this.#inFlight).map(({ message }) => message));
        const isLate = ({ message }: QueuedPart) => message.deadline <= now && !unsure.has(message);
        const late = this.#queue.filter(isLate);
        this.#queue = this.#queue.filter((part) => !isLate(part));
        this.#settle(late, 'full');
        await delay(pauseAfter(refusals), undefined, { ref: false });
        refusals += 1;
      }
    }
    this.#isRunning = false;
    if (!this.#isGone) return;
    this.close();
    this.#settle(this.#queue.splice(0), 'lost'); // they may be in the mailbox, and no retry will tell
  }

  /** The first parts of the queue that fit into one enqueue call. */
  #nextBatch(): readonly QueuedPart[] {
    let bytes = 0;
    const end = this.#queue.findIndex(({ content }, index) => {
      bytes += content.length;
      return index > 0 && bytes > maxEnqueueBytes;
    });
    return this.#queue.slice(0, end < 0 ? undefined : end);
  }

  #settle(parts: readonly QueuedPart[], outcome: SendOutcome): void {
    for (const { content, message, isLast } of parts) {
      this.#bytes -= content.length;
      if (isLast) message.settle(outcome); // a receiver handles a message only when it has all parts
    }
  }
}
