import type { RequestId } from '../../../protocol/faults.ts';
import type { EventId } from '../../../protocol/wire/event-id.ts';
import type { ServerQuestion } from './parked-call.ts';

/** A server that asks for more at once is refused the rest (P8): each has its place in the state. */
const maxQuestions = 100;

/** What the server of one call has asked: what is open, in the order of asking, and what is answered already. */
export class OpenQuestions {
  readonly #open = new Map<RequestId, { readonly question: ServerQuestion; readonly before: EventId }>();
  readonly #settled = new Set<RequestId>();
  /** Those that were heard again although they are answered. */
  readonly #heardAgain = new Set<RequestId>();

  get isFull(): boolean {
    return this.#open.size + this.#heardAgain.size >= maxQuestions;
  }

  get open(): readonly ServerQuestion[] {
    return Array.from(this.#open.values(), ({ question }) => question);
  }

  /** Behind which event the oldest open one stands; undefined if none is open. */
  get after(): EventId | undefined {
    const [oldest] = this.#open.values();
    return oldest?.before;
  }

  /** The answered ones that are heard again by whoever listens behind `after`, or some more. */
  get answered(): readonly RequestId[] {
    return [...this.#heardAgain];
  }

  /** @param before the event behind which it stands */
  ask(question: ServerQuestion, before: EventId): void {
    this.#open.set(question.id, { question, before });
  }

  /** The server does not want an answer any more. */
  withdraw(id: RequestId): void {
    this.#open.delete(id);
  }

  settled(ids: readonly RequestId[]): void {
    for (const id of ids) this.#settled.add(id);
  }

  /** True for a question that has its answer already. */
  isSettled(id: RequestId): boolean {
    if (!this.#settled.has(id)) return false;
    this.#heardAgain.add(id);
    return true;
  }
}
