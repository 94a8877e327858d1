import type { BackendEnd } from '../../core/backend/backend.ts';
import { type CreateInterceptor, Interceptor } from '../../core/backend/link/link.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import { createMessage, type Message } from '../../core/protocol/message/message.ts';
import { discoverRequest } from '../../core/protocol/modern/envelope.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';
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
  /** The interceptor of backends. The first backend gets the ping. */
  readonly intercept: CreateInterceptor;
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
  const intercept: CreateInterceptor = () => {
    if (!isFirst) return undefined;
    isFirst = false;
    const pinged = new PingedBackend({
      hidesAnswer: (message) => state === 'sent' && isAnswer(message),
      onEnding: () => limit?.clear(),
      onEnded() {
        state = 'over';
      },
    });
    sendPing = () => {
      state = 'sent';
      awaitAnswer();
      pinged.ping(createPing(id, method));
    };
    return pinged;
  };

  return {
    intercept,
    begin() {
      limit = new TimeLimit(() => sendPing?.(), pingAfterMs).unref();
    },
    end: () => limit?.clear(),
    get isOpen() {
      return state === 'sent';
    },
  };
}

/** What a pinged backend reports. */
interface PingListener {
  /** True for the answer to the ping. */
  hidesAnswer(message: Message): boolean;
  /** The backend has ended, and its user learns it next; the user knows it. */
  onEnding(): void;
  onEnded(): void;
}

class PingedBackend extends Interceptor {
  readonly #listener: PingListener;

  constructor(listener: PingListener) {
    super();
    this.#listener = listener;
  }

  ping(request: Message): void {
    this.passSend(request);
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    return messages.filter((message) => !this.#listener.hidesAnswer(message));
  }

  override onEnd(end: BackendEnd): void {
    this.#listener.onEnding();
    this.passEnd(end);
    this.#listener.onEnded();
  }
}

function createPing(id: number, method: string): Message {
  if (method === 'ping') return createMessage({ id, method });
  return discoverRequest(id, { version });
}
