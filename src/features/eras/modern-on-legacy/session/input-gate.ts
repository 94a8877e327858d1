import type { Call, SessionCalls } from '../../../../core/call/session-calls.ts';
import { AskGate } from '../../../../core/multiplex/ask-gate.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import { methodOf } from '../../../../core/protocol/methods/methods.ts';
import { faultAnswer, type Reply } from '../../../../core/reply/reply.ts';
import type { GroupWays } from '../../../../core/session/group-rules.ts';
import type { ClientPost } from '../../../../core/session/session-handle.ts';
import { TimeLimit } from '../../../../core/util/timing/time-limit.ts';

/** A post that waits. Each has an owner of its own, since its client is not known here. */
interface WaitingPost {
  readonly owner: ClientPost;
  readonly mayAsk: true;
  readonly request: Message;
  readonly reply: Reply;
  timer?: TimeLimit;
}

/**
 * The gate of a group of several users (`AskGate`; docs/design.md, D7). A post waits there for a limited time. If server
 * requests name a related request, all posts pass, and so do those of a group of one user.
 */
export class InputGate {
  readonly #ways: Pick<GroupWays, 'post'>;
  readonly #maxWaitMs: number;
  readonly #gate: AskGate<WaitingPost>;

  /** @param maxWaitMs how long a request waits before it fails with `group_busy` */
  constructor(calls: SessionCalls, ways: Pick<GroupWays, 'post'>, maxWaitMs: number) {
    this.#ways = ways;
    this.#maxWaitMs = maxWaitMs;
    this.#gate = new AskGate(() => !calls.areIdentified && calls.all().some(({ method }) => methodOf(method).mayAsk));
  }

  /** A call of the session is over: the next one may run. */
  noteTaken({ method }: Pick<Call, 'method'>): void {
    if (methodOf(method).mayAsk) queueMicrotask(() => this.#admitNext()); // after the answer was sent
  }

  /** True if a post may run now. Otherwise it waits at the gate, or fails with `group_busy`. */
  admits(post: ClientPost, reply: Reply): boolean {
    const request = post.group?.user && post.messages.find(mayCauseInput);
    if (request === undefined) return true;
    const waiting: WaitingPost = { owner: post, mayAsk: true, request, reply };
    const admitted = this.#gate.admit(waiting);
    if (admitted === 'now') return true;
    const refuse = (): void => reply.answer(faultAnswer('group_busy', request.id ?? null));
    if (admitted === 'full') refuse();
    else {
      const leave = (): void => {
        waiting.timer?.clear();
        this.#gate.removeAll(post);
      };
      waiting.timer = new TimeLimit(() => {
        leave();
        refuse();
      }, this.#maxWaitMs);
      reply.onGone(leave);
    }
    return false;
  }

  /**
   * The session ends. The requests that wait are not run: the next session may run them, or another instance while this one
   * stops.
   */
  close(reason: 'unknown_session' | 'draining'): void {
    for (const { request, reply, timer } of this.#gate.takeAll()) {
      timer?.clear();
      reply.answer(faultAnswer(reason, request.id ?? null));
    }
  }

  #admitNext(): void {
    for (let next = this.#gate.next(); next !== undefined; next = this.#gate.next()) {
      next.timer?.clear();
      this.#ways.post(next.owner, next.reply);
    }
  }
}

const mayCauseInput = ({ kind, method }: Message): boolean => kind === 'request' && methodOf(method).mayAsk;
