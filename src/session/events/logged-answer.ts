import { eventText, type LegacyAnswerHost, type LegacyCallAnswer } from '../../call/legacy-answer.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { createFaultResponse } from '../../protocol/message/gateway-fault.ts';
import type { Message } from '../../protocol/message/message.ts';
import { getStream } from './streams.ts';

type Host = Pick<LegacyAnswerHost, 'emit'>;

/**
 * The answer to a call on a log stream that the call did not open. The stream is one of an earlier owner, or the GET
 * stream of a one-stream client. Clients that wait for the answer follow or resume that stream.
 */
export class LoggedAnswer implements LegacyCallAnswer {
  readonly hasStream = true;
  readonly #host: Host;
  readonly stream: number;
  readonly #maxEventBytes: number;
  #missing: number;

  /** @param missing how many requests the stream has yet to answer */
  constructor(host: Host, stream: number, missing: number, maxEventBytes: number) {
    this.#host = host;
    this.stream = stream;
    this.#missing = missing;
    this.#maxEventBytes = maxEventBytes;
  }

  message({ text }: Message): void {
    this.#host.emit(this.stream, text, false);
  }

  response(response: Message): void {
    this.#missing -= 1;
    const isLast = this.#missing === 0 && this.stream !== getStream; // the GET stream never ends
    this.#host.emit(this.stream, eventText(response, this.#maxEventBytes), isLast, response.id ?? undefined);
  }

  fail(id: RequestId, reason: Reason): boolean {
    this.response(createFaultResponse(reason, id));
    return false;
  }

  abandon(): void {
    // This answer has no connection; the next owner finds the call pending.
  }
}
