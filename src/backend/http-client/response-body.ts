/** Receives the chunks of a body. */
export interface ResponseBodyReader {
  onChunk(chunk: Buffer): void;
  /** The body is over: complete, or broken for this cause. Nothing follows. */
  onEnd(cause: Error | undefined): void;
}

/**
 * Limits for a body of no interest. It is read this far and this long, to keep the connection; a longer one closes it.
 */
const maxIdleBytes = 64 * 1024;
const maxIdleMs = 2_000;

/** How much is accepted before a reader exists: a small response comes whole with its head. */
const maxUnreadBytes = 64 * 1024;

/** The connection of a body. */
export interface ResponseBodySource {
  /** Continues reading from the connection. */
  resume(): void;
  /** Closes the connection. `ResponseBody.end` is called for it. */
  abort(cause: Error): void;
}

/**
 * The body of a response as it comes in, for one reader. It has few features on purpose: a Node.js stream costs as much
 * as the rest of a small exchange. Chunks that came before a break are delivered before the break is reported.
 */
export class ResponseBody {
  readonly #source: ResponseBodySource;
  #reader: ResponseBodyReader | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isPaused = false;
  /** True while the connection is stopped. */
  #isStopped = false;
  #hasEnded = false;
  #cause: Error | undefined;
  #isEndReported = false;

  constructor(source: ResponseBodySource) {
    this.#source = source;
  }

  /** Begins to read: chunks that are already there are delivered before this returns. */
  read(reader: ResponseBodyReader): void {
    this.#reader = reader;
    this.#continueReading();
  }

  /** Delivers nothing until `resume`. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#continueReading();
  }

  /** Gives up the body: held chunks are dropped, and the reader is notified. */
  destroy(cause: Error = new Error('The body was given up.')): void {
    this.#held = [];
    this.#heldBytes = 0;
    this.#isPaused = false;
    if (!this.#hasEnded) this.#source.abort(cause);
    else this.#cause ??= cause;
    this.#deliver();
  }

  /**
   * Reads and discards the body, to keep the connection. Resolves when the body is over, for any reason.
   * @param limitMs the longest time for that; 0 for no limit
   */
  drain(limitMs = maxIdleMs): Promise<void> {
    return new Promise((resolve) => {
      let bytes = 0;
      let timer: NodeJS.Timeout | undefined;
      const onChunk = ({ length }: Buffer): void => {
        bytes += length;
        if (bytes > maxIdleBytes) this.destroy();
      };
      const onEnd = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.read({ onChunk, onEnd });
      if (limitMs > 0 && !this.#isEndReported) timer = setTimeout(() => this.destroy(), limitMs);
    });
  }

  /** Takes a chunk from the connection. Returns false if the connection should deliver no more for now. */
  take(chunk: Buffer): boolean {
    const isRead = this.#reader !== undefined && !this.#isPaused;
    if (isRead && this.#held.length === 0) this.#reader?.onChunk(chunk);
    else {
      this.#held.push(chunk);
      this.#heldBytes += chunk.length;
    }
    this.#isStopped = this.#isPaused || this.#heldBytes >= maxUnreadBytes;
    return !this.#isStopped;
  }

  /** Ends the body: the connection delivers nothing more. */
  end(cause?: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#cause = cause;
    this.#deliver();
  }

  #continueReading(): void {
    this.#deliver();
    if (this.#isPaused || !this.#isStopped || this.#hasEnded) return;
    this.#isStopped = false;
    this.#source.resume();
  }

  /** Delivers held chunks and the end, unless paused or without a reader. */
  #deliver(): void {
    if (this.#reader === undefined) return;
    while (!this.#isPaused && this.#held.length > 0) {
      const chunk = this.#held.shift() as Buffer;
      this.#heldBytes -= chunk.length;
      this.#reader.onChunk(chunk);
    }
    if (this.#isPaused || !this.#hasEnded || this.#isEndReported) return;
    this.#isEndReported = true;
    this.#reader.onEnd(this.#cause);
  }
}
