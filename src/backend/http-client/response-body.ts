/** Takes what a body brings. */
export interface ResponseBodyReader {
  onChunk(chunk: Buffer): void;
  /** The body is over: complete, or broken off for this cause. Nothing follows. */
  onEnd(cause: Error | undefined): void;
}

/** Of a body that says nothing so much is read, to keep the connection, and for so long; a longer one closes it. */
const maxIdleBytes = 64 * 1024;
const maxIdleMs = 2_000;

/** So much is taken before anybody reads: a small answer comes whole with its head. */
const maxUnreadBytes = 64 * 1024;

/** What a body needs of its connection. */
export interface ResponseBodySource {
  /** The connection is read on. */
  resume(): void;
  /** Cuts the connection. `Body.end` is told of it. */
  abort(cause: Error): void;
}

/**
 * The body of an answer as it comes in, for one reader. It does what is needed here and no more: a stream of Node.js costs
 * as much as the rest of a small exchange. What came before a break is read before the break is told.
 */
export class ResponseBody {
  readonly #source: ResponseBodySource;
  #reader: ResponseBodyReader | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isPaused = false;
  /** The connection was told to stop. */
  #isStopped = false;
  #hasEnded = false;
  #cause: Error | undefined;
  #isOver = false;

  constructor(source: ResponseBodySource) {
    this.#source = source;
  }

  /** Begins to read: what is there already is told before this returns. */
  read(reader: ResponseBodyReader): void {
    this.#reader = reader;
    this.#goOn();
  }

  /** Nothing is told until `resume`. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#goOn();
  }

  /** Gives it up: what is held is dropped, and the reader told. */
  destroy(cause: Error = new Error('The body was given up.')): void {
    this.#held = [];
    this.#heldBytes = 0;
    this.#isPaused = false;
    if (!this.#hasEnded) this.#source.abort(cause);
    else this.#cause ??= cause;
    this.#tell();
  }

  /**
   * Reads what is of no interest, to keep the connection. Resolves when it is over, however.
   * @param limitMs how long at most, 0 for ever
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
      if (limitMs > 0 && !this.#isOver) timer = setTimeout(() => this.destroy(), limitMs);
    });
  }

  /** The connection brought this. Returns false if it should bring no more for now. */
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

  /** The connection brings nothing more. */
  end(cause?: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#cause = cause;
    this.#tell();
  }

  #goOn(): void {
    this.#tell();
    if (this.#isPaused || !this.#isStopped || this.#hasEnded) return;
    this.#isStopped = false;
    this.#source.resume();
  }

  /** Tells what is there, as far as somebody reads. */
  #tell(): void {
    if (this.#reader === undefined) return;
    while (!this.#isPaused && this.#held.length > 0) {
      const chunk = this.#held.shift() as Buffer;
      this.#heldBytes -= chunk.length;
      this.#reader.onChunk(chunk);
    }
    if (this.#isPaused || !this.#hasEnded || this.#isOver) return;
    this.#isOver = true;
    this.#reader.onEnd(this.#cause);
  }
}
