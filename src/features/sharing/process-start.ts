import type { RequestId } from '../../core/protocol/faults.ts';
import { findRange } from '../../core/protocol/json.ts';
import { Milestone } from '../../core/util/timing/milestone.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';

/** How long other sessions wait until the first client has confirmed the answer to `initialize`. */
const maxConfirmationMs = 1_000;

/** How far a process has been initialized. Sessions may wait for that. */
export class ProcessStart {
  /** The id of `initialize` at the server; undefined once it is answered. */
  requestId: RequestId | undefined;
  /** The answer to `initialize`; undefined before, or if the server refused it. */
  answer: Buffer | undefined;
  /** When the server accepted `initialize`, by `performance.now()`. */
  answeredAt: number | undefined;
  /** True once the client has confirmed the answer. */
  isConfirmed = false;
  /** True for a server with tasks: they outlive their requests, and their messages name no session. */
  hasTasks = false;
  /** True if the process never becomes usable, or if its client does not confirm the answer. Some clients never do. */
  hasFailed = false;
  #timer: TimeLimit | undefined;
  readonly #settled = new Milestone();

  /** True once the server may get other requests. */
  get isDone(): boolean {
    return this.answer !== undefined && this.isConfirmed;
  }

  /** Resolves when the process can be used, or when its start has failed. */
  whenSettled(): Promise<void> {
    return this.#settled.passed;
  }

  /** The server has answered `initialize`. */
  noteAnswer(text: Buffer, isError: boolean): void {
    this.requestId = undefined;
    if (isError) return this.fail();
    this.answer = Buffer.from(text);
    this.answeredAt = performance.now();
    this.hasTasks = typeof findRange(this.answer, ['result', 'capabilities', 'tasks']) === 'object';
    this.#timer = new TimeLimit(() => this.fail(), maxConfirmationMs).unref();
  }

  confirm(): void {
    this.isConfirmed = true;
    this.#settle();
  }

  /** Other sessions wait no longer. */
  fail(): void {
    this.hasFailed = true;
    this.#settle();
  }

  #settle(): void {
    this.#timer?.clear();
    this.#settled.pass();
  }
}
