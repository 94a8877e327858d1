import type { RequestAttempt } from '../../reply/reply.ts';

/** Of so many requests it is remembered (P8): who asks again does so within seconds, and what runs is found without. */
const maxRemembered = 16;

/** Which streams answer the requests that other instances asked for: who asks again joins the stream. */
export class AttemptStreams {
  #streams: Map<string, number> | undefined;

  /** A stream was opened for what was asked. */
  remember({ id: name }: RequestAttempt, stream: number): void {
    this.#streams ??= new Map();
    this.#streams.set(name, stream);
    const [oldest] = this.#streams.keys();
    if (this.#streams.size > maxRemembered && oldest !== undefined) this.#streams.delete(oldest);
  }

  /** The stream that answers the same, asked for before; undefined if none was opened. */
  streamOf(asking: RequestAttempt | undefined): number | undefined {
    return asking?.previousIds.map((name) => this.#streams?.get(name)).find((stream) => stream !== undefined);
  }
}
