import type { Reason } from '../../protocol/faults.ts';
import { detachedMessage } from '../../protocol/message/changed-message.ts';
import type { Message } from '../../protocol/message/message.ts';
import { detachedCopy } from '../../util/detached-bytes.ts';
import type { BackendEnd, BackendEvents, RequestIds } from '../backend.ts';

/** A shorter text counts as this many bytes, because keeping it takes about as much memory (P8). */
const minTextBytes = 256;

/** So much of the text that is no message is kept. A log on stdout must not use up the room of messages (P8). */
const maxNoiseBytes = 16 * 1024;

/** Keeps the output of a backend that nobody uses yet, in order and up to a limit (P8). */
export class EarlyOutput implements BackendEvents {
  readonly #maxBytes: number;
  readonly #onExcess: () => void;
  readonly #reports: ((events: BackendEvents) => void)[] = [];
  #bytes = 0;
  #noiseBytes = 0;
  /** The last kept text that is no message, and how many further ones it stands for. */
  #lastNoise: { readonly text: Buffer; more: number | undefined } | undefined;

  /**
   * @param maxBytes the limit on the bytes of all messages and states together
   * @param onExcess called for each text that is not kept: the first one above the limit, and all later ones
   */
  constructor(maxBytes: number, onExcess: () => void) {
    this.#maxBytes = maxBytes;
    this.#onExcess = onExcess;
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    const kept = messages.filter(({ text }) => this.#hasRoomFor(text.length)).map(detachedMessage);
    if (kept.length > 0) this.#reports.push((events) => events.onMessages(kept, relatedRequests));
  }

  onNoise(text: Buffer, more?: number): void {
    const last = this.#lastNoise;
    this.#noiseBytes += Math.max(text.length, minTextBytes);
    if (last !== undefined && this.#noiseBytes > maxNoiseBytes) {
      last.more = (last.more ?? 0) + 1 + (more ?? 0);
      return;
    }
    const kept = { text: detachedCopy(text.subarray(0, maxNoiseBytes)), more };
    this.#lastNoise = kept;
    this.#reports.push((events) => events.onNoise(kept.text, kept.more));
  }

  onState(state: string): void {
    if (this.#hasRoomFor(state.length)) this.#reports.push((events) => events.onState?.(state));
  }

  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    this.#reports.push((events) => events.onUnanswered(ids, reason, isFinal));
  }

  onEnd(end: BackendEnd): void {
    this.#reports.push((events) => events.onEnd(end));
  }

  /** Reports everything in order, and also what is added meanwhile. */
  deliver(events: BackendEvents): void {
    for (const report of this.#reports) report(events);
    this.clear();
  }

  /** Drops everything. A delivery stops after its current report. */
  clear(): void {
    this.#reports.length = 0;
  }

  #hasRoomFor(bytes: number): boolean {
    this.#bytes += Math.max(bytes, minTextBytes);
    if (this.#bytes > this.#maxBytes) this.#onExcess();
    return this.#bytes <= this.#maxBytes;
  }
}
