import { eventText, type LegacyAnswerHost, type LegacyCallAnswer } from '../../call/legacy-answer.ts';
import { faultMessage, type Reason, type RequestId } from '../../protocol/faults.ts';
import { getStream } from './streams.ts';

type Host = Pick<LegacyAnswerHost, 'emit'>;

/**
 * The answer of a call that goes to a stream of the log which it has not opened: one of an earlier owner of the session, or
 * the GET stream of a client that hears everything there. Whoever waits for it follows, or resumes, that stream.
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

  message(text: Buffer): void {
    this.#host.emit(this.stream, text, false);
  }

  response(id: RequestId, text: Buffer): void {
    this.#missing -= 1;
    const isLast = this.#missing === 0 && this.stream !== getStream; // which never ends
    this.#host.emit(this.stream, eventText(id, text, this.#maxEventBytes), isLast, id);
  }

  fail(id: RequestId, reason: Reason): boolean {
    this.response(id, Buffer.from(faultMessage(reason, id)));
    return false;
  }

  abandon(): void {
    // Nobody is connected to this answer; the next owner finds the call pending.
  }
}
