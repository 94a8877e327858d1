import { Answer, type AnswerOptions, type AnswerTarget } from '../../src/core/call/answer.ts';
import type { RequestId } from '../../src/core/protocol/faults.ts';
import type { Message } from '../../src/core/protocol/message/message.ts';
import type { EventSink } from '../../src/core/reply/reply.ts';
import { createFakeReply } from './fake-reply.ts';

/** A stream whose events are only noted. Clients can resume it, as if it were in a log. */
export class FakeTarget implements AnswerTarget {
  number: number | undefined;
  /** The events: parsed messages, or '' for a priming event, and whether they end the stream. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  readonly emitted: { readonly message: any; readonly last: boolean }[] = [];
  /** The texts of the same events. */
  readonly texts: string[] = [];
  readonly opened: { readonly sink: EventSink | undefined; readonly ids: readonly RequestId[] }[] = [];
  /** How many responses were lost, and how often the stream was flushed. */
  lost = 0;
  flushes = 0;
  readonly #primes: boolean;

  constructor(primes = false) {
    this.#primes = primes;
  }

  get isLogged(): boolean {
    return this.texts.length > 0;
  }

  open(answer: Answer): void {
    this.opened.push({ sink: answer.connect(), ids: answer.ids });
    this.number = 1;
    if (this.#primes) this.write({ text: Buffer.alloc(0) });
  }

  write({ text }: Pick<Message, 'text'>, last = false): boolean {
    this.texts.push(text.toString());
    this.emitted.push({ message: text.length === 0 ? '' : JSON.parse(text.toString()), last });
    return true;
  }

  respond(response: Pick<Message, 'text'>, isLast: boolean): void {
    this.write(response, isLast);
  }

  flush(): void {
    this.flushes += 1;
  }

  undeliverable(): void {
    this.lost += 1;
  }
}

interface FakeAnswer extends Partial<AnswerOptions> {
  readonly target?: AnswerTarget;
}

/** The answer to a request, over such a stream. It never becomes a stream because of the time. */
export function createFakeAnswer(
  id: RequestId,
  { reply = createFakeReply(), target = new FakeTarget(), ...options }: FakeAnswer = {},
): Answer {
  return new Answer(target, { era: 'legacy', reply, ids: [id], commitAfterMs: 2 ** 30, ...options });
}
