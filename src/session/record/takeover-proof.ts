/**
 * How long the server of a session that was taken over must stay up to count as progress. An answer to its client
 * counts too.
 */
const proofMs = 10_000;

/** Options of `TakeoverProof`. */
export interface TakeoverProofOptions {
  /** False while the server is being started again. */
  isServerUp(): boolean;
  /** Tells the store that the session makes progress. Never rejects. */
  confirm(): void;
}

/**
 * Confirms once that a session which was taken over makes progress. The losses of its earlier owners then do not count
 * against it (docs/decisions/0068).
 */
export class TakeoverProof {
  readonly #options: TakeoverProofOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TakeoverProofOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      if (options.isServerUp()) this.confirm();
    }, proofMs).unref();
  }

  /** The session has made progress. */
  confirm(): void {
    if (this.#timer === undefined) return;
    this.end();
    this.#options.confirm();
  }

  /** Stops the proof; nothing more is confirmed. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
