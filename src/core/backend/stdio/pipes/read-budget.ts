import type { Readable } from 'node:stream';
import type { Gate } from '../../in-order.ts';
import { afterLoopTurn, type TurnListener } from './end-of-loop-turn.ts';

/**
 * Controls the reading of a stream, which stops for three reasons: the caller paused it, the budget is spent, or a
 * delivery is pending. The budget limits how much is read in one turn of the event loop, so that other streams get their
 * share (P8). Reading continues in the next turn. Without the limit Node.js reads up to 2 MiB from each of many flooding
 * servers before it handles a client with one small request.
 */
export class ReadBudget implements Gate, TurnListener {
  readonly #maxBytesPerTurn: number;
  /** Undefined until the process runs. */
  #stream: Readable | undefined;
  #bytes = 0;
  #isPaused = false;
  #hasBudget = true;
  #isHeld = false;

  constructor(maxBytesPerTurn: number) {
    this.#maxBytesPerTurn = maxBytesPerTurn;
  }

  /** The stream is there, and has a listener for its data. */
  open(stream: Readable): void {
    this.#stream = stream;
    if (this.#isPaused) stream.pause();
  }

  /** Counts bytes that were read. */
  consumed(bytes: number): void {
    if (this.#bytes === 0) afterLoopTurn(this);
    this.#bytes += bytes;
    if (this.#bytes < this.#maxBytesPerTurn || !this.#hasBudget) return;
    this.#hasBudget = false;
    this.#stream?.pause();
  }

  /** Stops and starts reading for a reason of the caller. */
  pause(): void {
    this.#isPaused = true;
    this.#stream?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#resumeIfAllowed();
  }

  /** Stops reading until `release`, whatever else resumes it: the input so far has to be delivered first. */
  hold(): void {
    this.#isHeld = true;
    this.#stream?.pause();
  }

  release(): void {
    this.#isHeld = false;
    this.#resumeIfAllowed();
  }

  /** Renews the budget. */
  endTurn(): void {
    this.#bytes = 0;
    if (this.#hasBudget) return;
    this.#hasBudget = true;
    this.#resumeIfAllowed();
  }

  #resumeIfAllowed(): void {
    if (this.#hasBudget && !this.#isPaused && !this.#isHeld) this.#stream?.resume();
  }
}
