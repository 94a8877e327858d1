import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, constants as zlib } from 'node:zlib';

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

type Decoder = ReturnType<typeof createGunzip>;

/** What came so far is decoded at once, and a stream that breaks is decoded up to there. */
const flags = { flush: zlib.Z_SYNC_FLUSH, finishFlush: zlib.Z_SYNC_FLUSH };
const brotliFlags = { flush: zlib.BROTLI_OPERATION_FLUSH, finishFlush: zlib.BROTLI_OPERATION_FLUSH };

const createDecoder: Readonly<Record<string, (first: Buffer) => Decoder>> = {
  gzip: () => createGunzip(flags),
  'x-gzip': () => createGunzip(flags),
  br: () => createBrotliDecompress(brotliFlags),
  // Some servers send the compressed data without the header of zlib, whose lower half byte is 8.
  deflate: ([head = 0]) => ((head & 0x0f) === 8 ? createInflate(flags) : createInflateRaw(flags)),
};

/** True for a content coding that `DecodedBody` reads. */
export const isReadable = (encoding: string): boolean => encoding in createDecoder;

/**
 * A body that the server has compressed, although the gateway asks for none: some servers and proxies always compress.
 * It is decoded as it is read, so it holds little more than one chunk, whatever the size of its content (P8).
 */
export class DecodedBody {
  readonly body: ResponseBody;
  readonly #encoding: string;
  readonly #source: ResponseBodySource;
  #decoder: Decoder | undefined;
  #cause: Error | undefined;

  constructor(encoding: string, source: ResponseBodySource) {
    this.#encoding = encoding;
    this.#source = source;
    this.body = new ResponseBody({
      resume: () => this.#decoder?.resume(),
      abort: (cause) => {
        source.abort(cause);
        this.#decoder?.destroy();
        this.body.end(cause);
      },
    });
  }

  /** Takes a chunk from the connection. Returns false if the connection should deliver no more for now. */
  take(chunk: Buffer): boolean {
    this.#decoder ??= this.#open(chunk);
    if (this.#decoder.destroyed) return true;
    return this.#decoder.write(chunk);
  }

  /** The connection delivers nothing more. What came before is decoded first. */
  end(cause?: Error): void {
    this.#cause = cause;
    if (this.#decoder === undefined || this.#decoder.destroyed) this.body.end(cause);
    else this.#decoder.end();
  }

  #open(first: Buffer): Decoder {
    const decoder = (createDecoder[this.#encoding] as (first: Buffer) => Decoder)(first);
    decoder.on('data', (chunk: Buffer) => {
      if (!this.body.take(chunk)) decoder.pause();
    });
    decoder.on('drain', () => this.#source.resume());
    decoder.on('end', () => this.body.end(this.#cause));
    decoder.on('error', (cause) => {
      this.#source.abort(cause);
      this.body.end(cause);
    });
    return decoder;
  }
}
