import { setTimeout as delay } from 'node:timers/promises';
import type { Instances } from '../../store/instances.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';
import { detach } from '../../util/boundary.ts';

/**
 * What became of a letter. `full`: the receiver did not keep up for as long as the letter could wait. `gone`: there is no
 * such receiver, and it never saw the letter. `lost`: it may have.
 */
export type SendOutcome = 'posted' | 'full' | 'gone' | 'lost';

/** What an outbox needs. */
export interface SendQueueOptions {
  readonly instances: Instances;
  readonly from: string;
  readonly to: string;
  /** The number of the first letter: a receiver takes numbers that it had for repeats. */
  readonly first: number;
  /** More than this does not wait here (P8). */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly content: Buffer;
  readonly letter: WholeLetter;
  readonly isLast: boolean;
}

/** A letter, all of its parts: given up together, or not at all. */
interface WholeLetter {
  /** On the monotonic clock, until when it may wait for room; for ever if it must not be lost, or is there in part. */
  until: number;
  settle(posted: SendOutcome): void;
  readonly onNumber: ((number: number) => void) | undefined;
}

/** One post carries at most this: many letters of one tick, or a few large ones. What comes behind it waits so long. */
const maxPostBytes = 512 * 1024;

const firstPauseMs = 10;
const longestPauseMs = 250;

/** Letters from this instance to another one, in order, each put into the mailbox exactly once as the receiver sees it. */
export class SendQueue {
  readonly #options: SendQueueOptions;
  #queue: Waiting[] = [];
  #bytes = 0;
  #next: number;
  /** So many at the head of the queue are being posted, or were once without an answer: they may be there. */
  #underWay = 0;
  #isRunning = false;
  #isGone = false;

  constructor(options: SendQueueOptions) {
    this.#options = options;
    this.#next = options.first;
  }

  /**
   * Sends a letter, which may be in parts that follow each other. Never rejects.
   * @param waitMs how long it may wait for room in the mailbox; without a limit if it must not be lost
   * @param isNotice it says that letters are missing, and must not be missing itself
   * @param onNumber is told the number of the last part, if that is known to have been posted exactly once
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
    if (isFull && !isNotice) return Promise.resolve('full');
    return new Promise((settle) => {
      const letter = { until: performance.now() + waitMs, settle, onNumber };
      for (const [index, content] of parts.entries()) {
        this.#queue.push({ content, letter, isLast: index === parts.length - 1 });
      }
      this.#bytes += bytes;
      if (this.#isRunning) return;
      this.#isRunning = true;
      queueMicrotask(() => detach('cluster', this.#run())); // after this tick's other letters
    });
  }

  /** The number of the next letter. */
  get next(): number {
    return this.#next;
  }

  /** How many letters have no number yet. */
  get waiting(): number {
    return this.#queue.length;
  }

  get isClosed(): boolean {
    return this.#isGone;
  }

  /** The receiver is gone, or this sender is no more: nothing waits any longer. */
  close(): void {
    this.#isGone = true;
    // What is under way settles by itself.
    this.#settle(this.#queue.splice(this.#underWay), 'gone');
  }

  async #run(): Promise<void> {
    const { instances, from, to, signal } = this.#options;
    let isUnsure = false;
    for (let pauseMs = firstPauseMs; this.#queue.length > 0 && !this.#isGone; ) {
      const batch = this.#batch();
      this.#underWay = batch.length;
      const contents = batch.map(({ content }) => content);
      let isPostedOnce = !isUnsure;
      // Once a post has had no answer the letters may be there, whatever later answers say.
      const post = async (): Promise<SendOutcome> => {
        isPostedOnce &&= !isUnsure;
        const wasUnsure = isUnsure;
        isUnsure = true;
        const answer = await instances.enqueue(to, from, this.#next, contents);
        isUnsure = wasUnsure && answer === 'full';
        return wasUnsure && answer === 'gone' ? 'lost' : answer;
      };
      const posted = await retryWhileUnavailable(post, signal).catch(() => 'lost' as const);
      this.#underWay = posted === 'full' && isUnsure ? batch.length : 0;
      if (posted === 'gone' || posted === 'lost') {
        // What may have arrived keeps its numbers: if it did not, the hole tells.
        if (posted === 'lost') this.#next += batch.length;
        this.#queue.splice(0, batch.length);
        this.#settle(batch, posted);
        this.close();
      } else if (posted === 'posted') {
        this.#queue.splice(0, batch.length);
        for (const [index, { letter, isLast }] of batch.entries()) {
          if (isLast && isPostedOnce) letter.onNumber?.(this.#next + index);
        }
        this.#next += batch.length;
        for (const { letter } of batch) letter.until = Number.POSITIVE_INFINITY;
        this.#settle(batch, 'posted');
        pauseMs = firstPauseMs;
      } else {
        // Nothing was put in, so what cannot wait any longer leaves no hole in the numbers.
        const now = performance.now();
        const unsure = new Set(this.#queue.slice(0, this.#underWay).map(({ letter }) => letter));
        const isLate = ({ letter }: Waiting) => letter.until <= now && !unsure.has(letter);
        const late = this.#queue.filter(isLate);
        this.#queue = this.#queue.filter((waiting) => !isLate(waiting));
        this.#settle(late, 'full');
        await delay(pauseMs, undefined, { ref: false });
        pauseMs = Math.min(2 * pauseMs, longestPauseMs);
      }
    }
    this.#isRunning = false;
    if (!this.#isGone) return;
    this.close();
    this.#settle(this.#queue.splice(0), 'lost'); // nobody asks any more whether they are there
  }

  /** The first letters of the queue that one post carries. */
  #batch(): readonly Waiting[] {
    let bytes = 0;
    const end = this.#queue.findIndex(({ content }, index) => {
      bytes += content.length;
      return index > 0 && bytes > maxPostBytes;
    });
    return this.#queue.slice(0, end < 0 ? undefined : end);
  }

  #settle(letters: readonly Waiting[], posted: SendOutcome): void {
    for (const { content, letter, isLast } of letters) {
      this.#bytes -= content.length;
      if (isLast) letter.settle(posted); // a receiver acts on nothing less than all parts
    }
  }
}
