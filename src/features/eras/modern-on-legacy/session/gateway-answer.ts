import type { SessionAnswer } from '../../../../core/call/call-answer.ts';

/** The answer to a request of the gateway itself, which goes to no client. */
export class GatewayAnswer implements SessionAnswer {
  readonly stream = undefined;
  readonly hasStream = false;
  readonly #onOver: () => void;

  /** @param onOver called when the request is answered, or has failed */
  constructor(onOver: () => void = () => undefined) {
    this.#onOver = onOver;
  }

  message(): boolean {
    return false;
  }

  response(): void {
    this.#onOver();
  }

  fault(): void {
    this.#onOver();
  }
}

/** The answer to a request of the gateway itself that discards everything. */
export const discardingAnswer: SessionAnswer = new GatewayAnswer();
