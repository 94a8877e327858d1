import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, constants as zlib } from 'node:zlib';
import { ResponseBody } from './response-body.ts';

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

/** The connection of a compressed body. */
interface EncodedSource {
  resume(): void;
  abort(cause: Error): void;
}

/**
 * A body that the server has compressed, although the gateway asks for none: some servers and proxies always compress.
 * It is decoded as it is read, so it holds little more than one chunk, whatever the size of its content (P8).
 */
export class DecodedBody {
  readonly body: ResponseBody;
  readonly #encoding: string;
  readonly #source: EncodedSource;
  #decoder: Decoder | undefined;
  #cause: Error | undefined;

  constructor(encoding: string, source: EncodedSource) {
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
