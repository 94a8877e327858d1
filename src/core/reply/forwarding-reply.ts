import type { CompleteAnswer, EventSink, Headers, Reply, RequestFacts } from './reply.ts';

/** A reply in front of another reply. A subclass overrides what it changes. */
export abstract class ForwardingReply implements Reply {
  protected readonly reply: Reply;

  constructor(reply: Reply) {
    this.reply = reply;
  }

  get request(): RequestFacts {
    return this.reply.request;
  }

  get isContinued(): boolean {
    return this.reply.isContinued ?? false;
  }

  get isGone(): boolean {
    return this.reply.isGone;
  }

  onGone(listener: () => void): void {
    this.reply.onGone(listener);
  }

  answer(answer: CompleteAnswer): void {
    this.reply.answer(answer);
  }

  stream(headers?: Headers): EventSink {
    return this.reply.stream(headers);
  }
}
