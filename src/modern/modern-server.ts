import type { ModernAnswer, ModernCallAnswer } from '../call/modern-answer.ts';
import type { Reason } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import { type Message, memberValue } from '../protocol/message/message.ts';
import type { LogLevel } from '../protocol/modern/log-levels.ts';
import type { RequestHeaders } from '../protocol/modern/mirrored-headers.ts';
import type { Principal } from '../protocol/principal.ts';
import { anonymous, isSameUser } from '../protocol/principal.ts';
import { type Era, modernRevisions } from '../protocol/revisions.ts';
import type { ProcessCapacity } from '../quota/process-capacity.ts';
import type { Isolation } from '../server/isolation.ts';
import type { Changes } from '../store/shared/changes.ts';
import type { TaskOwnerStore } from '../store/shared/owners.ts';
import { detach } from '../util/boundary.ts';
import { type EraEvidence, EraFinder, type EraFinderOptions } from './era-finder.ts';
import type { CancelRequest, RequestOrigin } from './process/shared-calls.ts';
import type { SharedProcessLimits } from './process/shared-process-limits.ts';
import { TaskDirectory } from './process/task-directory.ts';
import type { TaskRequester } from './process/task-owners.ts';
import type { Tenant, TenantHost } from './process/tenant.ts';
import { Tenants } from './process/tenants.ts';
import { type ParamFault, ToolHeaders } from './process/tool-headers.ts';
import { SessionAccess } from './session-access.ts';

/** What a configured server needs to be served to clients of the modern era. */
export interface ModernServerOptions extends EraFinderOptions {
  readonly limits: SharedProcessLimits;
  /** What instances tell each other; undefined if there is one alone. */
  readonly changes?: Changes | undefined;
  /** What instances that reach one server tell each other of its tasks; undefined if there is one alone. */
  readonly owners?: TaskOwnerStore | undefined;
  /** Who shares its process, or a connection to it; `shared` where it is not said. */
  readonly isolation?: Isolation;
  /** Counts the processes of users; absent where nothing is counted. */
  readonly room?: ProcessCapacity | undefined;
  /** A process that nobody uses is ended after so many milliseconds, unless all clients share it. */
  readonly idleMs?: number;
}

/** Whose a session is. */
export interface SessionOwner {
  readonly principal: Principal;
}

/** What a client's request brings beside its text. */
export interface ClientOrigin extends TaskRequester {
  /** Of the client's request, for the server. */
  readonly forwarded?: ForwardedHeaders | undefined;
}

/**
 * A configured server as clients of the modern era meet it: of which era it is, found out at their first request and then
 * remembered, and if it is of theirs, the processes that they share as `isolation` says.
 */
export class ModernServer {
  readonly #options: ModernServerOptions;
  readonly #isolation: Isolation;
  readonly #tenants: Tenants;
  /** What is known of the tools where each request has a process of its own; they are all alike. */
  readonly #toolsOfAll = new ToolHeaders({ list: (cursor, headers) => this.#listTools(cursor, headers) });
  readonly #finder: EraFinder;
  #revisions: readonly string[] = modernRevisions;

  constructor(options: ModernServerOptions) {
    this.#options = options;
    const { server, version, limits, observer, changes, isolation = 'shared', room } = options;
    const { idleMs = Number.POSITIVE_INFINITY } = options;
    this.#finder = new EraFinder(options);
    this.#isolation = isolation;
    const open = observer.seeBackends?.(server.name, server.open) ?? server.open;
    const host: TenantHost = {
      ...{ server: { ...server, open }, version, limits, observer },
      directory: this.#directory(),
      revision: () => this.revision,
      onReady: (revisions) => {
        this.#revisions = revisions;
      },
      onNotModern: () => this.#finder.forget(),
    };
    this.#tenants = new Tenants({ host, isolation, changes: server.isRemote ? undefined : changes, room, idleMs });
  }

  #directory(): TaskDirectory | undefined {
    const { server, owners, limits, observer } = this.#options;
    // The tasks of a process end with it, and no other instance has it.
    if (owners === undefined || !server.isRemote) return undefined;
    return new TaskDirectory({
      ...{ topic: `${server.digest} ${server.name}`, owners, maxMs: limits.requestMaxMs },
      onFailed: (cause) => observer.failed(server.name, cause),
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

  /** The era as far as it is known. */
  get era(): Era | undefined {
    return this.#finder.era;
  }

  /** What its clients have in flight: calls, and streams of subscriptions. */
  get inFlight(): { readonly calls: number; readonly streams: number } {
    return this.#tenants.inFlight;
  }

  /** True if all clients share one process. */
  get isShared(): boolean {
    return this.#tenants.common !== undefined;
  }

  /** Starts the process ahead, if it is known that there will be one. */
  start(): void {
    if (this.#options.era === 'modern') this.#tenants.common?.start();
  }

  /** As `EraFinder.find`. */
  findEra(headers?: ForwardedHeaders, seen?: EraEvidence, isProbe = false): Promise<Era | Reason> {
    return this.#finder.find(headers, seen, isProbe);
  }

  /** Checks the mirrored parameters of a `tools/call`. */
  checkParams(call: Message, headers: RequestHeaders, origin: ClientOrigin): ParamFault | Promise<ParamFault> {
    const { principal, forwarded } = origin;
    if (this.#isolation === 'request') {
      return this.#toolsOfAll.check(call, memberValue(call, 'params', 'name'), headers, forwarded);
    }
    const tenant = this.#tenants.of(principal, false);
    // The call itself is told why there is no process for it.
    return typeof tenant === 'string' ? undefined : tenant.checkParams(call, headers, forwarded);
  }

  /** Hands a request to the server that its client waits for. */
  request(request: Message, logLevel: LogLevel | undefined, answer: ModernAnswer, origin: ClientOrigin): void {
    const { server, observer } = this.#options;
    const { principal, forwarded } = origin;
    const cancel = this.#request(request, logLevel, answer, principal, {
      headers: forwarded,
      asker: principal === anonymous || isSameUser(principal, anonymous) ? undefined : origin,
    });
    answer.onGone((why) => {
      cancel();
      if (why === 'slow') observer.clientCut(server.name);
    });
  }

  /** The way of a session of the legacy era to the server; whoever takes it leaves it when the session is over. */
  forSession({ principal }: SessionOwner): SessionAccess {
    const isApart = this.#isolation === 'request';
    return new SessionAccess({
      name: this.name,
      revision: () => this.revision,
      take: () => {
        const tenant = isApart ? this.#tenants.apart(principal, true) : this.#tenants.of(principal, true);
        if (typeof tenant !== 'string') tenant.users += 1;
        return tenant;
      },
      leave: (tenant) => {
        tenant.users -= 1;
        tenant.usedAt = performance.now();
        if (isApart) detach('shared_process', this.#tenants.end(tenant));
      },
    });
  }

  /** As `request`, for a question whether the server is well, which no client waits for; where all share a process. */
  probe(request: Message, answer: ModernCallAnswer): CancelRequest {
    return this.#request(request, undefined, answer, anonymous, { isOfSession: true, isOfProbe: true });
  }

  /** Passes on a notification of a client. Returns why it was not taken. */
  notify(notification: Message, { principal, forwarded }: ClientOrigin): Reason | undefined {
    if (this.#isolation === 'request') {
      // Each request has a process of its own: there is none that this could be for.
      this.reportUnplaced(notification.text);
      return undefined;
    }
    const tenant = this.#tenants.of(principal, false);
    return typeof tenant === 'string' ? tenant : tenant.notify(notification, forwarded);
  }

  /** A notification of a client has no process to go to. */
  reportUnplaced(text: Buffer): void {
    this.#options.observer.dropped(this.name, 'unplaced', text);
  }

  /** Ends the server in order (P9); sessions are served until they have ended. Resolves when no process is left. */
  async drain(graceMs: number, sessionsEnded?: Promise<unknown>): Promise<void> {
    await Promise.all([this.#tenants.drain(graceMs, sessionsEnded), this.#finder.close()]);
  }

  #request(
    request: Message,
    logLevel: LogLevel | undefined,
    answer: ModernCallAnswer,
    principal: Principal,
    origin: RequestOrigin,
  ): CancelRequest {
    const isApart = this.#isolation === 'request';
    const tenant = isApart
      ? this.#tenants.apart(principal, false, this.#toolsOfAll)
      : this.#tenants.of(principal, false);
    if (typeof tenant === 'string') {
      answer.fault(tenant);
      return () => undefined;
    }
    return isApart
      ? this.#requestOnce(tenant, request, logLevel, answer, origin)
      : tenant.request(request, logLevel, answer, origin);
  }

  /** A request with a process of its own, which ends with it. */
  #requestOnce(
    tenant: Tenant,
    request: Message,
    logLevel: LogLevel | undefined,
    answer: ModernCallAnswer,
    origin: RequestOrigin,
  ): CancelRequest {
    const end = (): void => detach('shared_process', this.#tenants.end(tenant));
    const once: ModernCallAnswer = {
      message: (text) => answer.message(text),
      response(text, status, isError) {
        answer.response(text, status, isError);
        end();
      },
      fault(reason, data) {
        answer.fault(reason, data);
        end();
      },
      awaitsStart: () => answer.awaitsStart?.(),
      started: () => answer.started?.(),
    };
    const cancel = tenant.request(request, logLevel, once, origin);
    return (reason) => {
      cancel(reason);
      end();
    };
  }

  async #listTools(cursor: string | undefined, headers: ForwardedHeaders): Promise<Buffer | undefined> {
    const tenant = this.#tenants.apart(anonymous, false, this.#toolsOfAll);
    if (typeof tenant === 'string') return undefined;
    try {
      return await tenant.listTools(cursor, headers);
    } finally {
      detach('shared_process', this.#tenants.end(tenant));
    }
  }
}
