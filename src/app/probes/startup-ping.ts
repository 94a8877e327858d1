import type { BackendEvents, OpenBackend } from '../../backend/backend.ts';
import { nextOwnId } from '../../protocol/ids/own-ids.ts';
import { createMessage, type Message } from '../../protocol/message/message.ts';
import { discoverRequest } from '../../protocol/modern/envelope.ts';
import type { Era } from '../../protocol/revisions.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import { version } from '../version.ts';

/** A server without a client is pinged after this time. Most clients connect earlier, and their sessions show more. */
export const pingAfterMs = 3_000;

/** A ping that is open for this long is mentioned: a person who watches the log should know what the gateway waits for. */
export const slowMs = 5_000;

/** The options of a startup ping. */
export interface StartupPingOptions {
  readonly era: Era | 'auto';
  /** How long the server may take from its start to its first answer: `timeouts.start`. */
  readonly startTimeoutMs: number;
  /** The server answered. `wasSlow` is true after `onSlow`. */
  onAnswered(wasSlow: boolean): void;
  /** The server has not answered for `slowMs`, and may take longer: `npx` downloads packages at the first start. */
  onSlow(): void;
  /** The server has not answered this method within `startTimeoutMs` of its start. It still may. */
  onSilent(method: string): void;
}

/** One ping to the first backend of a server, before a client uses it. */
export interface StartupPing {
  /** Wraps an opener of backends. The first backend that it opens gets the ping. */
  readonly attach: (open: OpenBackend) => OpenBackend;
  /** Sends the ping `pingAfterMs` from now. */
  begin(): void;
  /** A client uses the backend now: no ping is sent, and a missing answer is not reported. */
  end(): void;
  /** True while the ping is unanswered and the backend has not ended. */
  readonly isOpen: boolean;
}

/**
 * Finds out whether a server answers at all, on a process that a client of a known era can still use afterwards. Only
 * `ping` may come before `initialize` (2025-11-25, basic/lifecycle), and any response of a modern server counts as an
 * answer too. The answer is hidden from the client, even if it arrives when a client already has the process.
 */
export function createStartupPing({
  era,
  startTimeoutMs,
  onAnswered,
  onSlow,
  onSilent,
}: StartupPingOptions): StartupPing {
  const method = era === 'modern' ? 'server/discover' : 'ping';
  const id = nextOwnId();
  let isFirst = true;
  let sendPing: (() => void) | undefined;
  let state: 'before' | 'sent' | 'over' = 'before';
  let limit: TimeLimit | undefined;
  let wasSlow = false;
  /** A server whose limit is short is only reported once it is over. */
  const restMs = Math.max(startTimeoutMs - pingAfterMs, 0);

  const awaitAnswer = (): void => {
    const report = (): void => onSilent(method);
    if (restMs <= slowMs) {
      limit = new TimeLimit(report, restMs).unref();
      return;
    }
    limit = new TimeLimit(() => {
      wasSlow = true;
      onSlow();
      limit = new TimeLimit(report, restMs - slowMs).unref();
    }, slowMs).unref();
  };

  const isAnswer = ({ kind, id: answered }: Message): boolean => {
    // Only this request is open, so an error with a null id must be its answer.
    if (kind !== 'response' || (answered !== id && answered !== null)) return false;
    state = 'over';
    limit?.clear();
    onAnswered(wasSlow);
    return true;
  };
  const withoutAnswer = (events: BackendEvents): BackendEvents => ({
    onNoise: (text, more) => events.onNoise(text, more),
    onUnanswered: (ids, reason, isFinal) => events.onUnanswered(ids, reason, isFinal),
    onState: (state) => events.onState?.(state),
    onMessages(messages, relatedRequests) {
      const others = state === 'sent' ? messages.filter((message) => !isAnswer(message)) : messages;
      if (others.length > 0) events.onMessages(others, relatedRequests);
    },
    onEnd(end) {
      limit?.clear();
      events.onEnd(end);
      state = 'over';
    },
  });

  return {
    attach: (open) => (events, opening) => {
      if (!isFirst) return open(events, opening);
      isFirst = false;
      const backend = open(withoutAnswer(events), opening);
      sendPing = () => {
        state = 'sent';
        awaitAnswer();
        backend.send(createPing(id, method));
      };
      return backend;
    },
    begin() {
      limit = new TimeLimit(() => sendPing?.(), pingAfterMs).unref();
    },
    end: () => limit?.clear(),
    get isOpen() {
      return state === 'sent';
    },
  };
}

function createPing(id: number, method: string): Message {
  if (method === 'ping') return createMessage({ id, method });
  return discoverRequest(id, { version });
}
