// src/core/backend/starting: the start of a server, its next start after a loss, and spares.
import { emptyResult, type Message } from '../../protocol/message/message.ts';
import { detach } from '../../util/boundary.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { Backend, BackendEnd, BackendEvents, OpenBackend, RequestIds } from '../backend.ts';
import { EarlyOutput } from './early-output.ts';
import { RestartPolicy } from './restart-policy.ts';

/**
 * Why a server did not start.
 * - `ended`: the backend ended by itself, or its user closed it.
 * - `silent`: the server did not answer in time.
 * - `refused`: the user cannot use a server with this answer.
 * - `flooded`: the server wrote too much before its answer.
 */
export type StartFailure = 'ended' | 'silent' | 'refused' | 'flooded';

/** Options of `Connection.open`. */
export interface StartOptions {
  /** The request whose answer shows that the server has started. The user sends it. */
  readonly request: Message;
  /** The time limit for the answer, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * The limit on the messages before the answer, in bytes (P8). They are kept, and delivered after `onAnswer`. If there
   * is no limit, they are delivered at once. Text that is no message does not count: servers log their start.
   */
  readonly maxEarlyBytes?: number;
  /** Receive everything but the answer, in order. They receive the end only if the server has started. */
  readonly events: BackendEvents;
  /**
   * Handles the answer. Returns false if the user cannot use this server, or a further request that the user sends, whose
   * answer is awaited instead.
   */
  onAnswer(response: Message): boolean | Message;
  /** The backend has ended, and its server had not started. */
  onFailed(end: BackendEnd, why: StartFailure): void;
}

/**
 * One server, whose backends follow each other (docs/decisions/0189). A session, a server of a view and a shared modern
 * server each have one. The user opens the next backend after the pause that the earlier losses require.
 */
export class Connection extends RestartPolicy {
  #timer: NodeJS.Timeout | undefined;

  /** True during the pause before the next start. */
  get isPausing(): boolean {
    return this.#timer !== undefined;
  }

  /** Starts the server again after the pause, unless `stop` is called before. */
  afterPause(start: () => void): void {
    this.stop();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      start();
    }, this.pauseMs);
  }

  /** No start follows the pause. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Opens a backend whose server starts: the server has started when `onAnswer` has returned true. A server that cannot be
   * used, that is silent or that writes too much is closed. After the start, the events go straight to the user.
   */
  open(open: OpenBackend, options: StartOptions): Backend {
    const { request, timeoutMs, maxEarlyBytes, events, onAnswer, onFailed } = options;
    let hasStarted = false;
    let awaitedId = request.id;
    let failure: StartFailure = 'ended';
    const early = maxEarlyBytes === undefined ? undefined : new EarlyOutput(maxEarlyBytes, () => giveUp('flooded'));
    /** Undefined after a failure or the end. */
    let receiver: BackendEvents | undefined = early ?? events;

    const stop = (): void => {
      limit.clear();
      early?.clear();
      receiver = undefined;
    };

    const giveUp = (why: StartFailure): void => {
      if (receiver === undefined) return;
      failure = why;
      stop();
      detach('backend', backend.close());
    };

    /** The output waits for the answer, and a server may wait for the answer to its `ping` before it goes on. */
    const answerPings = (messages: readonly Message[]): readonly Message[] =>
      messages.filter(({ kind, id, method }) => {
        const isPing = kind === 'request' && method === 'ping';
        if (isPing) backend.send(emptyResult({ id }));
        return !isPing;
      });

    const receiveEarly = (received: readonly Message[], relatedRequests: RequestIds | undefined): void => {
      const messages = early === undefined ? received : answerPings(received);
      const found = messages.findIndex(({ kind, id }) => kind === 'response' && id === awaitedId);
      const index = found < 0 ? messages.length : found;
      if (index > 0) receiver?.onMessages(messages.slice(0, index), relatedRequests);
      const response = messages[index];
      if (response === undefined || receiver === undefined) return;
      const verdict = onAnswer(response);
      if (typeof verdict === 'object') {
        awaitedId = verdict.id;
        return receiveEarly(messages.slice(index + 1), relatedRequests);
      }
      if (!verdict) giveUp('refused');
      if (receiver === undefined) return;
      limit.clear();
      hasStarted = true;
      this.noteStart();
      receiver = events;
      early?.deliver(events);
      if (index + 1 < messages.length) receiver?.onMessages(messages.slice(index + 1), relatedRequests);
    };

    const backend = open({
      onMessages: (messages, relatedRequests) =>
        hasStarted ? events.onMessages(messages, relatedRequests) : receiveEarly(messages, relatedRequests),
      onNoise: (text, more) => receiver?.onNoise(text, more),
      onState: (state) => receiver?.onState?.(state),
      onUnanswered: (ids, reason, isFinal) => receiver?.onUnanswered(ids, reason, isFinal),
      onEnd(end) {
        stop();
        if (hasStarted) events.onEnd(end);
        else onFailed(end, failure);
      },
    });
    const limit = new TimeLimit(() => giveUp('silent'), timeoutMs);
    return backend;
  }
}
