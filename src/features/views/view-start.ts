import type { BackendEnd } from '../../core/backend/backend.ts';
import { type Message, readGatewayMessage } from '../../core/protocol/message/message.ts';
import { contain } from '../../core/util/boundary.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';
import type { UserAbsences } from './absences.ts';
import type { Member } from './member.ts';
import { mergeHandshakes, type ViewIdentity } from './merge-handshakes.ts';

/** Options of `ViewStart`. */
export interface ViewStartOptions {
  /** The client's `initialize`. It is used after the call that brought it. */
  readonly initialize: Message;
  readonly identity: ViewIdentity;
  readonly members: readonly Member[];
  readonly absences: UserAbsences;
  /** How long `initialize` waits for a server, in milliseconds. */
  readonly timeoutMs: number;
  /** A server is missing in the answer. */
  onUnavailable(member: Member): void;
  /** Answers `initialize`. */
  onAnswer(response: Message): void;
  /** No server could be started. */
  onFailed(end: BackendEnd): void;
}

/** A server that fails to start sooner need not be remembered: its next failure holds no session for long. */
const slowFailureMs = 1_000;

/**
 * The start of the servers of a view. `initialize` is answered when all servers have started or failed, but for those
 * that were silent just before, or when some have started and the time is up.
 */
export class ViewStart {
  readonly #options: ViewStartOptions;
  readonly #startedAtMs = performance.now();
  #limit: TimeLimit | undefined;
  #isOver = false;

  constructor(options: ViewStartOptions) {
    this.#options = options;
    this.#limit = new TimeLimit(() => contain('backend', () => this.#handleTimeout()), options.timeoutMs);
    for (const member of options.members) member.start();
  }

  /** True once `initialize` is answered, or will not be. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** A server has started. */
  noteReady(member: Member): void {
    this.#options.absences.forget(member.name, 'start');
    this.#answerIfDone();
  }

  /** A server has failed to start. */
  noteDown(member: Member, end: BackendEnd): void {
    if (this.#isOver) return;
    if (performance.now() - this.#startedAtMs >= slowFailureMs) this.#options.absences.note(member.name, 'start');
    this.#answerIfDone(end);
  }

  close(): void {
    this.#isOver = true;
    this.#limit?.clear();
  }

  #handleTimeout(): void {
    const { members, absences } = this.#options;
    for (const { isStarting, name } of members) if (isStarting) absences.note(name, 'start');
    this.#limit = undefined;
    this.#answer();
  }

  #answerIfDone(end?: BackendEnd): void {
    const { members, absences } = this.#options;
    const isAwaited = ({ isStarting, name }: Member): boolean => isStarting && !absences.has(name, 'start');
    // The time for the first servers may be over already.
    if (this.#limit === undefined || !members.some(isAwaited)) this.#answer(end);
  }

  #answer(end?: BackendEnd): void {
    const { initialize, identity, members, onUnavailable, onAnswer, onFailed } = this.#options;
    if (this.#isOver) return;
    if (!members.some(({ isReady }) => isReady)) {
      if (members.some(({ isStarting }) => isStarting)) return;
      this.close();
      const detail = `No server of the view could be started. ${end?.detail ?? ''}`.trim();
      return onFailed({ ...end, reason: 'failed', detail });
    }
    this.close();
    for (const member of members) if (!member.isReady) onUnavailable(member);
    const text = mergeHandshakes(JSON.stringify(initialize.id), identity, members);
    if (text !== undefined) onAnswer(readGatewayMessage(text));
  }
}
