/** A session that was taken over has made progress once its server has been well for so long, or has answered its client. */
const provenMs = 10_000;

/** What a proof needs of its session. */
export interface TakeoverProofOptions {
  /** False while the server is being started again. */
  isServerUp(): boolean;
  /** Tells the store that the session makes progress. Never rejects. */
  confirm(): void;
}

/**
 * Tells the store once that a session which was taken over makes progress, so that the losses of its earlier owners do not
 * count against it (docs/decisions/0068).
 */
export class TakeoverProof {
  readonly #options: TakeoverProofOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TakeoverProofOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      if (options.isServerUp()) this.confirm();
    }, provenMs).unref();
  }

  /** The session has made progress. */
  confirm(): void {
    if (this.#timer === undefined) return;
    this.end();
    this.#options.confirm();
  }

  /** Nothing more is to be told. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
