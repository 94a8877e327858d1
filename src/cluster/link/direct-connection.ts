import type { Duplex } from 'node:stream';
import { encodeFrame, type LinkFrame, LinkFrameReader } from './link-frames.ts';

/** The sender of numbered messages on a connection. Each connection has one: the queue to its peer. */
export interface DirectSender {
  /** The peer has handled all messages up to this number. */
  onAcknowledged(number: number): void;
  /**
   * The connection takes nothing more of this sender. The peer refused all messages from `refusedFrom` on; without it the
   * connection is lost, and the fate of unacknowledged messages is unknown.
   */
  onEnded(refusedFrom: number | undefined): void;
}

/** A connection as its sender uses it. */
export interface DirectChannel {
  /** True if more messages may be sent before the peer acknowledges some. */
  readonly hasRoom: boolean;
  /**
   * Makes this sender the one that is told about its messages. The previous one has none in flight.
   * @param next the number of its next message
   */
  use(sender: DirectSender, next: number): void;
  /** The sender sends nothing more. It learns nothing more about its messages. */
  release(sender: DirectSender): void;
  /** Sends messages of the sender, numbered from `first` on. */
  send(first: number, contents: readonly Buffer[]): void;
}

/** Options of `DirectConnection`. */
export interface DirectConnectionOptions {
  /** The name of the peer, which has proven it. */
  readonly peer: string;
  /**
   * Handles messages, numbered from `first` on. False if they cannot be handled now, or messages before them are missing:
   * the peer sends them another way.
   */
  onMessages(first: number, contents: readonly Buffer[]): boolean;
  /** The connection is closed. */
  onClosed(): void;
  /** The peer sent bytes that are no frames, or messages could not be handled. */
  onFault(cause: unknown): void;
}

/** The most bytes that a peer has not acknowledged (P8). Further messages wait in their queue. */
const windowBytes = 1024 * 1024;

/** Acks wait this long for messages that go the same way. Their sender does not depend on them, but for its window. */
const ackDelayMs = 10;

/** After this many bytes an ack is sent at once, so that the window of a fast sender stays open. */
const promptAckBytes = 128 * 1024;

/** A connection is lost after so many checks in a row without a byte. A stall of this process counts as one. */
const maxSilentChecks = 4;

/**
 * One authenticated connection between two instances. Messages go in order in both directions. Each is acknowledged,
 * refused or of unknown fate. A peer that does not answer, or to which nothing gets through, ends the connection.
 */
export class DirectConnection implements DirectChannel {
  readonly peer: string;
  readonly #socket: Duplex;
  readonly #options: DirectConnectionOptions;
  readonly #frames = new LinkFrameReader();
  #sender: DirectSender | undefined;
  /** The messages in flight: their first and last numbers and their size, oldest first. */
  #inFlight: { readonly first: number; readonly last: number; readonly bytes: number }[] = [];
  #inFlightBytes = 0;
  #bytesAtCheck = 0;
  #silentChecks = 0;
  /**
   * The peer sends refused messages another way, so none of them may be taken after all: the peer would not know, and
   * could run a call again.
   */
  #isRefusing = true;
  /** The last number that was handled and not acknowledged yet. */
  #toAcknowledge: number | undefined;
  #handledBytes = 0;
  #ackTimer: NodeJS.Timeout | undefined;
  /** The number after those that were handled. */
  #nextToReceive = 1;
  /** Nothing is sent or handled any more. */
  #isClosed = false;
  #isReported = false;

  constructor(socket: Duplex, options: DirectConnectionOptions) {
    this.peer = options.peer;
    this.#socket = socket;
    this.#options = options;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => this.close());
    socket.on('end', () => this.close());
    socket.on('close', () => this.close());
    socket.resume(); // after a handshake that has read the socket itself
  }

  /** True if the sender may use the connection now. */
  get isOpen(): boolean {
    return !this.#isClosed;
  }

  get hasRoom(): boolean {
    return !this.#isClosed && this.#inFlightBytes < windowBytes;
  }

  use(sender: DirectSender, next: number): void {
    this.#sender = sender;
    this.#write({ kind: 'start', number: next });
  }

  release(sender: DirectSender): void {
    if (this.#sender !== sender) return;
    this.#sender = undefined;
    this.#inFlight = [];
    this.#inFlightBytes = 0;
  }

  send(first: number, contents: readonly Buffer[]): void {
    const bytes = contents.reduce((sum, { length }) => sum + length, 0);
    this.#inFlight.push({ first, last: first + contents.length - 1, bytes });
    this.#inFlightBytes += bytes;
    this.#write({ kind: 'messages', first, contents });
  }

  /**
   * Sends a heartbeat, and closes the connection if nothing has arrived for several checks. If only one direction is
   * broken, the end that receives nothing closes the connection for both.
   */
  check(): void {
    this.#silentChecks = this.#frames.bytes > this.#bytesAtCheck ? 0 : this.#silentChecks + 1;
    this.#bytesAtCheck = this.#frames.bytes;
    if (this.#silentChecks >= maxSilentChecks) this.close();
    else this.#write({ kind: 'heartbeat', number: 0 });
  }

  /**
   * Ends the connection in order: the peer learns which messages were handled, and that no later one was. Otherwise their
   * fate would be unknown, although this instance stops without a fault.
   */
  finish(): void {
    if (this.#isClosed) return;
    this.#acknowledge();
    this.#write({ kind: 'refusal', number: this.#nextToReceive });
    this.#isClosed = true;
    this.#socket.end();
    this.#endSender(undefined);
  }

  /** Closes the connection at once. Its sender learns that the fate of its messages is unknown. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#ackTimer);
    this.#socket.destroy();
    this.#endSender(undefined);
    if (this.#isReported) return;
    this.#isReported = true;
    this.#options.onClosed();
  }

  #endSender(refusedFrom: number | undefined): void {
    const sender = this.#sender;
    this.#sender = undefined;
    this.#inFlight = [];
    this.#inFlightBytes = 0;
    sender?.onEnded(refusedFrom);
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return;
    try {
      for (const frame of this.#frames.read(chunk)) {
        this.#handle(frame);
        if (this.#isClosed) return;
      }
    } catch (cause) {
      this.close();
      this.#options.onFault(cause);
    }
  }

  #handle(frame: LinkFrame): void {
    switch (frame.kind) {
      case 'messages':
        return this.#receive(frame.first, frame.contents);
      case 'ack':
        return this.#acknowledged(frame.number);
      case 'refusal':
        // A refusal of messages that were sent another way since says nothing about later ones.
        if (this.#inFlight[0] !== undefined && frame.number >= this.#inFlight[0].first) this.#endSender(frame.number);
        return;
      case 'start':
        this.#isRefusing = false;
        this.#nextToReceive = frame.number;
        return;
      case 'heartbeat':
        return; // its bytes have been counted
    }
  }

  #receive(first: number, contents: readonly Buffer[]): void {
    if (this.#isRefusing || !this.#options.onMessages(first, contents)) {
      this.#isRefusing = true;
      this.#acknowledge();
      this.#write({ kind: 'refusal', number: first });
      return;
    }
    if (this.#isClosed) return;
    this.#toAcknowledge = first + contents.length - 1;
    this.#nextToReceive = first + contents.length;
    for (const { length } of contents) this.#handledBytes += length;
    if (this.#handledBytes >= promptAckBytes) this.#acknowledge();
    else this.#ackTimer ??= setTimeout(() => this.#onAckTimer(), ackDelayMs).unref();
  }

  #acknowledged(number: number): void {
    const [oldest] = this.#inFlight;
    if (oldest === undefined || oldest.last > number) return;
    while (this.#inFlight[0] !== undefined && this.#inFlight[0].last <= number)
      this.#inFlightBytes -= this.#inFlight.shift()?.bytes ?? 0;
    this.#sender?.onAcknowledged(number);
  }

  /** The timer runs on after an ack that went with messages. Each call would make and clear a timer otherwise. */
  #onAckTimer(): void {
    this.#ackTimer = undefined;
    this.#acknowledge();
  }

  #acknowledge(): void {
    const number = this.#takeAck();
    if (number !== undefined) this.#write({ kind: 'ack', number });
  }

  #write(frame: LinkFrame): void {
    if (this.#isClosed) return;
    const bytes = encodeFrame(frame);
    // An ack goes with the messages of the other direction, which saves a write.
    const number = frame.kind === 'messages' ? this.#takeAck() : undefined;
    this.#socket.write(number === undefined ? bytes : Buffer.concat([encodeFrame({ kind: 'ack', number }), bytes]));
  }

  /** The ack that is due; undefined if there is none. */
  #takeAck(): number | undefined {
    const number = this.#toAcknowledge;
    this.#toAcknowledge = undefined;
    this.#handledBytes = 0;
    return number;
  }
}
