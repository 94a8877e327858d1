import type { Reason, RequestId } from '../protocol/faults.ts';
import type { EventSink, Headers, Reply } from './reply.ts';

/** A reply in front of another reply, which provides the data of the request and the state of its client. */
export abstract class ForwardingReply implements Reply {
  protected readonly reply: Reply;

  constructor(reply: Reply) {
    this.reply = reply;
  }

  get accepts(): Reply['accepts'] {
    return this.reply.accepts;
  }

  get forwarded(): Reply['forwarded'] {
    return this.reply.forwarded;
  }

  get receivedAt(): Reply['receivedAt'] {
    return this.reply.receivedAt;
  }

  get requestId(): Reply['requestId'] {
    return this.reply.requestId;
  }

  get attempt(): Reply['attempt'] {
    return this.reply.attempt;
  }

  get isGone(): boolean {
    return this.reply.isGone;
  }

  onGone(listener: () => void): void {
    this.reply.onGone(listener);
  }

  abstract readonly isContinued: boolean;
  abstract json(text: Buffer, headers?: Headers, status?: number): void;
  abstract accepted(): void;
  abstract nothing(): void;
  abstract removed(): void;
  abstract fault(reason: Reason, id: RequestId | null, data?: Record<string, unknown>): void;
  abstract stream(headers?: Headers): EventSink;
}
