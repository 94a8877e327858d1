import type { BackendEnd } from '../../core/backend/backend.ts';
import { type Message, readGatewayMessage } from '../../core/protocol/message/message.ts';
import { contain } from '../../core/util/boundary.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';
import type { Member } from './member.ts';
import { mergeHandshakes } from './merge-handshakes.ts';
import type { View } from './view.ts';

/** A server that fails to start sooner need not be remembered: its next failure holds no session for long. */
const slowFailureMs = 1_000;

/**
 * The start of the servers of a view. `initialize` is answered when all servers have started or failed, but for those
 * that were silent just before, or when some have started and the time is up.
 */
export class ViewStart {
  readonly #view: View;
  readonly #initialize: Message;
  readonly #startedAtMs = performance.now();
  #limit: TimeLimit | undefined;
  #isOver = false;

  /** @param initialize the client's request. It is used after the call that brought it */
  constructor(view: View, initialize: Message) {
    this.#view = view;
    this.#initialize = initialize;
    this.#limit = new TimeLimit(() => contain('backend', () => this.#handleTimeout()), view.parts.timeoutMs);
    for (const member of view.members) member.start();
  }

  /** True once `initialize` is answered, or will not be. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** A server has started. */
  noteReady(member: Member): void {
    this.#view.absences.forget(member.name, 'start');
    this.#answerIfDone();
  }

  /** A server has failed to start. */
  noteDown(member: Member, end: BackendEnd): void {
    if (this.#isOver) return;
    if (performance.now() - this.#startedAtMs >= slowFailureMs) this.#view.absences.note(member.name, 'start');
    this.#answerIfDone(end);
  }

  close(): void {
    this.#isOver = true;
    this.#limit?.clear();
  }

  #handleTimeout(): void {
    const { members, absences } = this.#view;
    for (const { isStarting, name } of members) if (isStarting) absences.note(name, 'start');
    this.#limit = undefined;
    this.#answer();
  }

  #answerIfDone(end?: BackendEnd): void {
    const { members, absences } = this.#view;
    const isAwaited = ({ isStarting, name }: Member): boolean => isStarting && !absences.has(name, 'start');
    // The time for the first servers may be over already.
    if (this.#limit === undefined || !members.some(isAwaited)) this.#answer(end);
  }

  #answer(end?: BackendEnd): void {
    const { members, parts } = this.#view;
    if (this.#isOver) return;
    if (!members.some(({ isReady }) => isReady)) {
      if (members.some(({ isStarting }) => isStarting)) return;
      this.close();
      const detail = `No server of the view could be started. ${end?.detail ?? ''}`.trim();
      return this.#view.fail({ ...end, reason: 'failed', detail });
    }
    this.close();
    for (const member of members) if (!member.isReady) parts.onUnavailable(member.name, 'down');
    const text = mergeHandshakes(JSON.stringify(this.#initialize.id), parts.identity, members);
    if (text !== undefined) this.#view.answer(readGatewayMessage(text));
  }
}
