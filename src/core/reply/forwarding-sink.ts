import type { EventBatch } from './event-batch.ts';
import type { EventSink } from './reply.ts';

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
