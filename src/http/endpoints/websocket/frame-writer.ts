import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** What an outlet needs. */
export interface FrameWriterOptions {
  /** Below the WebSocket. */
  readonly socket: Socket;
  /** How long the client may leave unread what it is not asked to wait for. */
  readonly slowReaderMs: number;
  /** It has. */
  onSlow(): void;
}

/** A client with less than this on its way keeps up. */
const unsentBytes = 128 * 1024;

/** Errors that a client provokes and does not read: behind so many of them nothing more is read from it. */
const maxUnreadReplyBytes = 64 * 1024;

/** The frames that go to one client, and what is known of whether it reads them (P8). */
export class FrameWriter {
  readonly #peer: WebSocket;
  readonly #options: FrameWriterOptions;
  /** Bytes of replies since all was last sent. */
  #replyBytes = 0;
  #slowTimer: NodeJS.Timeout | undefined;
  #onDrain: (() => void) | undefined;
  #isHeld = false;

  constructor(peer: WebSocket, options: FrameWriterOptions) {
    this.#peer = peer;
    this.#options = options;
    options.socket.on('drain', () => this.#drained());
    peer.once('close', () => clearTimeout(this.#slowTimer));
  }

  /** Sends what a client gets at once for what it sent. A client that does not read that is not read either. */
  reply(text: Buffer | string): void {
    if (this.#peer.bufferedAmount === 0) this.#replyBytes = 0;
    this.#send(text);
    this.#replyBytes += text.length;
    if (this.keepsUp || this.#replyBytes < maxUnreadReplyBytes || this.#slowTimer !== undefined) return;
    this.#peer.pause();
    this.#slowTimer = setTimeout(this.#options.onSlow, this.#options.slowReaderMs);
  }

  /** The client is not read until `release`, however fast it reads itself. */
  hold(): void {
    this.#isHeld = true;
    this.#peer.pause();
  }

  release(): void {
    this.#isHeld = false;
    if (this.#slowTimer === undefined) this.#peer.resume();
  }

  /**
   * Sends what is new of the session.
   * @returns false if the client does not keep up; `onDrain` is called when it does again
   */
  send(texts: readonly Buffer[]): boolean {
    for (const text of texts) this.#send(text);
    return this.keepsUp;
  }

  /** The listener is called whenever all was sent. */
  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  get keepsUp(): boolean {
    return this.#peer.bufferedAmount < unsentBytes;
  }

  #send(text: Buffer | string): void {
    if (this.#peer.readyState === this.#peer.OPEN) this.#peer.send(text, { binary: false });
  }

  #drained(): void {
    this.#replyBytes = 0;
    if (this.#slowTimer !== undefined) {
      clearTimeout(this.#slowTimer);
      this.#slowTimer = undefined;
      if (!this.#isHeld) this.#peer.resume();
    }
    this.#onDrain?.();
  }
}
