// src/features/eras/modern: serves clients of the modern era at servers of the modern era. It finds eras and shares processes and changes.
import type { Isolation } from '../../../config/servers/process-sharing.ts';
import type { Answer } from '../../../core/call/answer.ts';
import type { CallAnswer } from '../../../core/call/call-answer.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders, RequestClient } from '../../../core/protocol/http/forwarded-headers.ts';
import { modernRevisions } from '../../../core/protocol/known-revisions.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { LogLevel } from '../../../core/protocol/modern/log-levels.ts';
import { anonymous, isSameUser, type Principal } from '../../../core/protocol/principal.ts';
import type { Era } from '../../../core/protocol/revisions.ts';
import type { Sessions } from '../../../core/registry/sessions.ts';
import type { Changes, Values } from '../../../core/store/shared/shared-data.ts';
import type { CancelRequest, RequestOrigin } from './process/shared-calls.ts';
import type { SharedProcessLimits } from './process/shared-server.ts';
import { TaskDirectory } from './process/task-directory.ts';
import type { TaskRequester } from './process/task-owners.ts';
import type { Tenant, TenantHost } from './process/tenant.ts';
import { Tenants } from './process/tenants.ts';
import { type EraEvidence, ServerEra, type ServerEraOptions } from './server-era.ts';
import { SessionAccess } from './session-access.ts';

export interface ModernServerOptions extends ServerEraOptions {
  readonly limits: SharedProcessLimits;
  /** Announces changes between instances; undefined if there is only one instance. */
  readonly changes?: Changes | undefined;
  /** Shares the owners of tasks between instances that reach one server; undefined if there is only one instance. */
  readonly values?: Values | undefined;
  /** Which clients share a process or a connection; `shared` by default. */
  readonly isolation?: Isolation;
  /** True while all clients are known to be one user. */
  readonly isOfOneUser?: () => boolean;
  /** Counts the processes of users; absent where no quota applies. */
  readonly room?: Pick<Sessions, 'acquireProcess'> | undefined;
  /** An unused process is ended after this many milliseconds, unless all clients share it. */
  readonly idleMs?: number;
}

/** The origin of a client's request: who sends it, and its headers. */
export type ClientOrigin = TaskRequester & RequestClient;

/**
 * One configured server as its modern clients see it. It finds out the era at the first request and remembers it.
 * Requests go to the processes that clients share as `isolation` says.
 */
export class ModernServer {
  readonly #options: ModernServerOptions;
  readonly #isolation: Isolation;
  readonly #tenants: Tenants;
  /** What is known of the era. */
  readonly serverEra: ServerEra;
  #revisions: readonly string[] = modernRevisions;

  constructor(options: ModernServerOptions) {
    this.#options = options;
    const { server, version, limits, emit, changes, isolation = 'shared', room, isOfOneUser } = options;
    const { idleMs = Number.POSITIVE_INFINITY } = options;
    this.serverEra = new ServerEra(options);
    this.#isolation = isolation;
    const host: TenantHost = {
      server,
      version,
      limits,
      emit,
      isOfOneUser: () => isolation !== 'shared' || isOfOneUser?.() === true,
      directory: this.#createDirectory(),
      revision: () => this.revision,
      onReady: (revisions) => {
        this.#revisions = revisions;
      },
      onNotModern: () => this.serverEra.forget(),
    };
    this.#tenants = new Tenants({ host, isolation, changes: server.isRemote ? undefined : changes, room, idleMs });
  }

  #createDirectory(): TaskDirectory | undefined {
    const { server, values, limits, emit } = this.#options;
    // The tasks of a local process end with it, and no other instance has that process.
    if (values === undefined || !server.isRemote) return undefined;
    return new TaskDirectory({
      topic: `${server.digest} ${server.name}`,
      values,
      maxMs: limits.requestTotalMs,
      onFailed: (cause) => emit({ type: 'shared-server-failed', server: server.name, cause }),
    });
  }

  get name(): string {
    return this.#options.server.name;
  }

  /** The revisions of this era that the server and the gateway serve. */
  get revisions(): readonly string[] {
    return this.#revisions;
  }

  /** The newest revision of this era that the server and the gateway serve. */
  get revision(): string {
    return this.#revisions.at(-1) as string;
  }

  /** The era; undefined while it is unknown. */
  get era(): Era | undefined {
    return this.serverEra.era;
  }

  /** The clients' calls in flight. */
  get callsInFlight(): number {
    return this.#tenants.callsInFlight;
  }

  /** True if all clients share one process. */
  get isShared(): boolean {
    return this.#tenants.common !== undefined;
  }

  /** Starts the shared process ahead of the first request, if the server is configured as modern. */
  start(): void {
    if (this.#options.era === 'modern') this.#tenants.common?.start();
  }

  /** As `ServerEra.find`. */
  findEra(headers?: ForwardedHeaders, evidence?: EraEvidence, isProbe = false): Promise<Era | Reason> {
    return this.serverEra.find(headers, evidence, isProbe);
  }

  /** True if users have processes of their own. The processes of single requests all have the same tools. */
  get distinguishesUsers(): boolean {
    return this.#isolation === 'principal';
  }

  /** Gets a page of the server's list of tools; undefined if the server does not answer in time. */
  async listTools(cursor: string | undefined, { principal, forwarded }: RequestClient): Promise<Buffer | undefined> {
    const tenant = this.#tenants.find(this.#isolation === 'request' ? anonymous : principal, false);
    // The call that needs the list reports why there is no process.
    if (typeof tenant === 'string') return undefined;
    try {
      return await tenant.listTools(cursor, forwarded);
    } finally {
      this.#tenants.endIfForOne(tenant);
    }
  }

  /** Sends a client's request to the server. */
  request(request: Message, logLevel: LogLevel | undefined, answer: Answer, origin: ClientOrigin): void {
    const { server, emit } = this.#options;
    const { principal, forwarded } = origin;
    const cancel = this.#request(request, logLevel, answer, principal, {
      headers: forwarded,
      requester: principal === anonymous || isSameUser(principal, anonymous) ? undefined : origin,
    });
    answer.onCancelled((why) => {
      cancel();
      if (why === 'slow') emit({ type: 'client-cut', server: server.name });
    });
  }

  /** The access of one legacy session to the server. The caller releases it when the session is over. */
  forSession(principal: Principal): SessionAccess {
    return new SessionAccess(this, this.#tenants, principal);
  }

  /** As `request`, for a health probe, which no client waits for. Only where all clients share a process. */
  probe(request: Message, answer: CallAnswer): CancelRequest {
    return this.#request(request, undefined, answer, anonymous, { isOfSession: true, isOfProbe: true });
  }

  /** Passes on a client's notification. Returns the reason if it was not taken. */
  notify(notification: Message, { principal, forwarded }: ClientOrigin): Reason | undefined {
    if (this.#isolation === 'request') {
      // Each request has a process of its own, and a notification has no request.
      this.reportUnplaced(notification.text);
      return undefined;
    }
    const tenant = this.#tenants.find(principal, false);
    return typeof tenant === 'string' ? tenant : tenant.notify(notification, forwarded);
  }

  /** Reports a client's notification that has no process to go to. */
  reportUnplaced(text: Buffer): void {
    this.#options.emit({ type: 'shared-message-dropped', server: this.name, reason: 'unplaced', text });
  }

  /** Ends the server in order (P9); sessions are served until they have ended. Resolves when no process is left. */
  async drain(graceMs: number, sessionsEnded?: Promise<unknown>): Promise<void> {
    await Promise.all([this.#tenants.drain(graceMs, sessionsEnded), this.serverEra.close()]);
  }

  #request(
    request: Message,
    logLevel: LogLevel | undefined,
    answer: CallAnswer,
    principal: Principal,
    origin: RequestOrigin,
  ): CancelRequest {
    const tenant = this.#tenants.find(principal, false);
    if (typeof tenant === 'string') {
      answer.fault(tenant);
      return () => undefined;
    }
    return tenant.isForOne
      ? this.#requestOnce(tenant, request, logLevel, answer, origin)
      : tenant.request(request, logLevel, answer, origin);
  }

  /** Sends a request to a process of its own and ends that process with the request. */
  #requestOnce(
    tenant: Tenant,
    request: Message,
    logLevel: LogLevel | undefined,
    answer: CallAnswer,
    origin: RequestOrigin,
  ): CancelRequest {
    const end = (): void => this.#tenants.endIfForOne(tenant);
    const once: CallAnswer = {
      message: (notification) => answer.message(notification),
      response(response, status) {
        answer.response(response, status);
        end();
      },
      fault(reason, data) {
        answer.fault(reason, data);
        end();
      },
      report: answer.report,
    };
    const cancel = tenant.request(request, logLevel, once, origin);
    return (reason) => {
      cancel(reason);
      end();
    };
  }
}
