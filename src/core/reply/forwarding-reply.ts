import type { EventBatch } from './event-batch.ts';
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

/** A sink in front of another sink of this instance. It offers no `handOver`, which only the link between instances has. */
export abstract class ForwardingSink implements EventSink {
  protected readonly sink: EventSink;

  constructor(sink: EventSink) {
    this.sink = sink;
  }

  onDrain(listener: () => void): void {
    this.sink.onDrain(listener);
  }

  onClose(listener: () => void): void {
    this.sink.onClose(listener);
  }

  end(): void {
    this.sink.end();
  }

  cut(): void {
    this.sink.cut();
  }

  abstract write(batch: EventBatch): boolean;
}
