import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';

/** Options of the writer. */
export interface FrameWriterOptions {
  /** The socket below the WebSocket. */
  readonly socket: Socket;
  /** How long the client may leave replies unread. */
  readonly slowReaderMs: number;
  /** Called when the client exceeds this time. */
  onSlow(): void;
}

/** A client with fewer unsent bytes keeps up. */
const unsentBytes = 128 * 1024;

/** Errors that a client provokes and does not read: beyond this size the gateway stops reading from the client. */
const maxUnreadReplyBytes = 64 * 1024;

/** Writes the frames for one client, and tracks whether the client reads them (P8). */
export class FrameWriter {
  readonly #peer: WebSocket;
  readonly #options: FrameWriterOptions;
  /** Bytes of replies since everything was last sent. */
  #replyBytes = 0;
  #slowTimer: TimeLimit | undefined;
  #onDrain: (() => void) | undefined;
  #isHeld = false;

  constructor(peer: WebSocket, options: FrameWriterOptions) {
    this.#peer = peer;
    this.#options = options;
    options.socket.on('drain', () => this.#onDrained());
    peer.once('close', () => this.#slowTimer?.clear());
  }

  /**
   * Sends an immediate reply to a message of the client. The gateway stops reading from a client that does not read its
   * replies.
   */
  reply(text: Buffer | string): void {
    if (this.#peer.bufferedAmount === 0) this.#replyBytes = 0;
    this.#send(text);
    this.#replyBytes += text.length;
    if (this.keepsUp || this.#replyBytes < maxUnreadReplyBytes || this.#slowTimer !== undefined) return;
    this.#peer.pause();
    this.#slowTimer = new TimeLimit(this.#options.onSlow, this.#options.slowReaderMs);
  }

  /** Stops reading from the client until `release`, however fast the client reads. */
  hold(): void {
    this.#isHeld = true;
    this.#peer.pause();
  }

  release(): void {
    this.#isHeld = false;
    if (this.#slowTimer === undefined) this.#peer.resume();
  }

  /**
   * Sends new messages of the session.
   * @returns false if the client does not keep up; `onDrain` is called when it does again
   */
  send(texts: readonly Buffer[]): boolean {
    for (const text of texts) this.#send(text);
    return this.keepsUp;
  }

  /** Sets the listener that is called whenever everything was sent. */
  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  get keepsUp(): boolean {
    return this.#peer.bufferedAmount < unsentBytes;
  }

  #send(text: Buffer | string): void {
    if (this.#peer.readyState === this.#peer.OPEN) this.#peer.send(text, { binary: false });
  }

  #onDrained(): void {
    this.#replyBytes = 0;
    if (this.#slowTimer !== undefined) {
      this.#slowTimer?.clear();
      this.#slowTimer = undefined;
      if (!this.#isHeld) this.#peer.resume();
    }
    this.#onDrain?.();
  }
}
