import type { Reason, RequestId } from '../../src/core/protocol/faults.ts';
import type { EventId } from '../../src/core/protocol/wire/event-id.ts';
import type { EventBatch } from '../../src/core/reply/event-batch.ts';
import type { CompleteAnswer, EventSink, Headers, Reply } from '../../src/core/reply/reply.ts';
import { acceptsBoth } from '../support/fake-reply.ts';
import { createSseReader, type SseEvent } from '../support/sse-reader.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** What a client learns from the answer to one of its HTTP requests. */
export interface ReplyListener {
  /** The instance sends this event id. The client gets it later, or never. */
  onSentId(at: EventId): void;
  /** One JSON text, or a fault, or an empty answer. Nothing follows. */
  onAnswer(answer: ClientAnswer): void;
  onEvent(event: SseEvent): void;
  /** The stream ended: in order, or because the connection broke. */
  onStreamEnd(how: 'ended' | 'broken'): void;
}

/** The answer to a request, if it is no stream. */
export type ClientAnswer =
  // biome-ignore lint/suspicious/noExplicitAny: messages have every shape
  | { readonly kind: 'json'; readonly json: any; readonly text: string; readonly headers?: Headers | undefined }
  | { readonly kind: 'fault'; readonly reason: Reason; readonly id: RequestId | null }
  | { readonly kind: 'accepted' | 'nothing' | 'removed' };

/** One HTTP request and its answer, on a connection that can break and that needs time. */
export class SimulatedReply implements Reply {
  readonly request = { accepts: acceptsBoth };
  readonly #clock: VirtualClock;
  readonly #instance: string;
  readonly #listener: ReplyListener;
  readonly #latencyMs: number;
  #isGone = false;
  #isAnswered = false;
  readonly #goneListeners: (() => void)[] = [];
  #closeListeners: (() => void)[] = [];
  #drainListeners: (() => void)[] = [];
  #stream: 'none' | 'open' | 'ended' = 'none';
  /** The client has stopped reading. */
  #isSlow = false;

  constructor(clock: VirtualClock, instance: string, latencyMs: number, listener: ReplyListener) {
    this.#clock = clock;
    this.#instance = instance;
    this.#latencyMs = latencyMs;
    this.#listener = listener;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  onGone(listener: () => void): void {
    this.#goneListeners.push(listener);
  }

  answer(answer: CompleteAnswer): void {
    this.#answerOnce();
    const text = answer.kind === 'json' ? answer.text.toString() : '';
    const given = answer.kind === 'json' ? { ...answer, json: JSON.parse(text), text } : answer;
    this.#toClient(() => this.#listener.onAnswer(given));
  }

  stream(): EventSink {
    this.#answerOnce();
    this.#stream = 'open';
    const read = createSseReader({
      onEvent: (event) => this.#toClient(() => this.#listener.onEvent(event)),
      onComment: () => undefined,
    });
    return {
      write: (batch: EventBatch) => {
        if (this.#stream === 'ended') throw new Error('written after the end');
        if (this.#isGone) return false;
        if (batch.at !== undefined) this.#listener.onSentId(batch.at);
        read(batch.text.toString());
        return !this.#isSlow;
      },
      onDrain: (listener) => void this.#drainListeners.push(listener),
      onClose: (listener) => void this.#closeListeners.push(listener),
      end: () => {
        if (this.#stream !== 'open' || this.#isGone) return;
        this.#stream = 'ended';
        this.#toClient(() => this.#listener.onStreamEnd('ended'));
        this.#clock.after(0, this.#instance, () => this.#emitClose());
      },
      cut: () => this.breakOff(),
    };
  }

  /** The connection breaks. What is on the way to the client is lost. */
  breakOff(): void {
    if (this.#isGone || this.#stream === 'ended') return;
    this.#isGone = true;
    this.#clock.after(0, 'clients', () => this.#listener.onStreamEnd('broken'));
    this.#clock.after(0, this.#instance, () => {
      for (const listener of this.#goneListeners.splice(0)) listener();
      this.#emitClose();
    });
  }

  /** The client stops reading, or reads again. */
  setSlow(isSlow: boolean): void {
    this.#isSlow = isSlow;
    if (isSlow) return;
    this.#clock.after(0, this.#instance, () => {
      for (const listener of this.#drainListeners) listener();
    });
  }

  #emitClose(): void {
    for (const listener of this.#closeListeners.splice(0)) listener();
  }

  #answerOnce(): void {
    if (this.#isAnswered && !this.#isGone) throw new Error('answered twice');
    this.#isAnswered = true;
  }

  /** All that the instance sends arrives in order, unless the connection breaks first. */
  #toClient(deliver: () => void): void {
    this.#clock.after(this.#latencyMs, 'clients', () => {
      if (!this.#isGone) deliver();
    });
  }
}
