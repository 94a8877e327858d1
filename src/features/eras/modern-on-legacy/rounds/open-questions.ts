// src/features/eras/modern-on-legacy/rounds: parks a call that waits for its client's input, and keeps the outcome of each round.
import type { RequestId } from '../../../../core/protocol/faults.ts';
import type { EventId } from '../../../../core/protocol/wire/event-id.ts';
import type { ServerQuestion } from './parked-call.ts';

/** The most questions at once (P8): each takes room in the state. Further questions are refused. */
const maxQuestions = 100;

/** Tracks the questions of one call: the open ones in order, and the answered ones. */
export class OpenQuestions {
  readonly #open = new Map<RequestId, { readonly question: ServerQuestion; readonly before: EventId }>();
  readonly #answered = new Set<RequestId>();
  /** Answered questions that were read again. */
  readonly #replayed = new Set<RequestId>();

  get isFull(): boolean {
    return this.#open.size + this.#replayed.size >= maxQuestions;
  }

  get open(): readonly ServerQuestion[] {
    return Array.from(this.#open.values(), ({ question }) => question);
  }

  /** The event before the oldest open question; undefined if none is open. */
  get after(): EventId | undefined {
    const [oldest] = this.#open.values();
    return oldest?.before;
  }

  /** The answered questions that a replay after `after` delivers again, perhaps more. */
  get answered(): readonly RequestId[] {
    return [...this.#replayed];
  }

  /**
   * Adds an open question.
   * @param before the event before the question
   */
  add(question: ServerQuestion, before: EventId): void {
    this.#open.set(question.id, { question, before });
  }

  /** Removes a question that the server has withdrawn. */
  withdraw(id: RequestId): void {
    this.#open.delete(id);
  }

  noteAnswered(ids: readonly RequestId[]): void {
    for (const id of ids) this.#answered.add(id);
  }

  /** True for a question that is already answered. */
  isAnswered(id: RequestId): boolean {
    if (!this.#answered.has(id)) return false;
    this.#replayed.add(id);
    return true;
  }
}
