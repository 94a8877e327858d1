import type { CallAnswer } from '../../../core/call/call-answer.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { LogLevel } from '../../../core/protocol/modern/log-levels.ts';
import type { Principal } from '../../../core/protocol/principal.ts';
import type { CancelRequest } from './process/shared-calls.ts';
import type { Tenant } from './process/tenant.ts';
import type { Tenants } from './process/tenants.ts';

/** A modern server as a translator uses it, whatever its transport. */
export type ModernServerAccess = Pick<SessionAccess, keyof SessionAccess>;

/**
 * The access of one legacy session to a modern server. Its requests go to the process that its user shares, or to a
 * process of its own. The session holds the tenant from its first request until `release`.
 */
export class SessionAccess {
  readonly #server: { readonly name: string; readonly revision: string };
  readonly #tenants: Tenants;
  /** The owner of the session. */
  readonly #principal: Principal;
  #tenant: Tenant | undefined;
  #hasLeft = false;

  constructor(server: { readonly name: string; readonly revision: string }, tenants: Tenants, principal: Principal) {
    this.#server = server;
    this.#tenants = tenants;
    this.#principal = principal;
  }

  get name(): string {
    return this.#server.name;
  }

  /** The newest revision of the modern era that the server and the gateway serve. */
  get revision(): string {
    return this.#server.revision;
  }

  /**
   * Sends a request that has its envelope. Its messages and its outcome go to `answer`, perhaps before this returns.
   * @param headers the headers of the client's request; see `Backend.send`
   * @returns the function that cancels the request
   */
  request(
    request: Message,
    logLevel: LogLevel | undefined,
    answer: CallAnswer,
    headers?: ForwardedHeaders,
  ): CancelRequest {
    const tenant = this.#hasLeft ? 'unknown_session' : (this.#tenant ?? this.#tenants.enter(this.#principal));
    if (typeof tenant === 'string') {
      answer.fault(tenant);
      return () => undefined;
    }
    this.#tenant = tenant;
    return tenant.request(request, logLevel, answer, { headers, isOfSession: true });
  }

  /** Passes on a client's notification. Returns the reason if it was not taken. */
  notify(notification: Message, headers?: ForwardedHeaders): Reason | undefined {
    return this.#tenant === undefined ? 'server_busy' : this.#tenant.notify(notification, headers);
  }

  /** The session has ended or hibernates: it no longer needs the server. */
  release(): void {
    this.#hasLeft = true;
    if (this.#tenant !== undefined) this.#tenants.leave(this.#tenant);
    this.#tenant = undefined;
  }
}
