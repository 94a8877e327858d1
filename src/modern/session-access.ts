import type { ModernCallAnswer } from '../call/modern-answer.ts';
import type { Reason } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import type { LogLevel } from '../protocol/modern/log-levels.ts';
import type { CancelRequest } from './process/shared-calls.ts';
import type { Tenant } from './process/tenant.ts';

/** What the way of a session to its server needs. */
export interface SessionAccessOptions {
  readonly name: string;
  /** The newest revision of the modern era that the server and the gateway serve. */
  readonly revision: () => string;
  /** The process that the session may use, which it keeps from being ended; or why there is none. */
  take(): Tenant | Reason;
  /** The session does not use it any more. */
  leave(tenant: Tenant): void;
}

/**
 * The way of one session of the legacy era to a modern server: its requests go to the process that its user shares, or to one of
 * its own, which it holds from the first request until it leaves.
 */
export class SessionAccess {
  readonly name: string;
  readonly #options: SessionAccessOptions;
  #tenant: Tenant | undefined;
  #hasLeft = false;

  constructor(options: SessionAccessOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** The newest revision of the modern era that the server and the gateway serve. */
  get revision(): string {
    return this.#options.revision();
  }

  /** As `ModernServerAccess.request` of `era/` has it. */
  request(
    request: Message,
    logLevel: LogLevel | undefined,
    answer: ModernCallAnswer,
    headers?: ForwardedHeaders,
  ): CancelRequest {
    const tenant = this.#hasLeft ? 'unknown_session' : (this.#tenant ?? this.#options.take());
    if (typeof tenant === 'string') {
      answer.fault(tenant);
      return () => undefined;
    }
    this.#tenant = tenant;
    return tenant.request(request, logLevel, answer, { headers, isOfSession: true });
  }

  /** Passes a notification of the client on. Returns why it was not taken. */
  notify(notification: Message, headers?: ForwardedHeaders): Reason | undefined {
    return this.#tenant === undefined ? 'server_busy' : this.#tenant.notify(notification, headers);
  }

  /** The session is over, or lets go of its server for a while. */
  release(): void {
    this.#hasLeft = true;
    if (this.#tenant !== undefined) this.#options.leave(this.#tenant);
    this.#tenant = undefined;
  }
}
