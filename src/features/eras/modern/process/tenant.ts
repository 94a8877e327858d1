import type { CallAnswer } from '../../../../core/call/call-answer.ts';
import { type ForwardedHeaders, noHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../../../core/protocol/ids/own-ids.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import { revisionToRetry } from '../../../../core/protocol/modern/discovery.ts';
import { ownRequest } from '../../../../core/protocol/modern/envelope.ts';
import type { LogLevel } from '../../../../core/protocol/modern/log-levels.ts';
import type { SessionPermit } from '../../../../core/quota/session-permit.ts';
import type { Server } from '../../../../core/server/server.ts';
import type { Changes } from '../../../../core/store/shared/shared-data.ts';
import { SharedChanges } from '../changes/shared-changes.ts';
import { askShared, type CancelRequest, type RequestOrigin } from './shared-calls.ts';
import { SharedServer, type SharedServerOptions } from './shared-server.ts';
import type { TaskDirectory } from './task-directory.ts';

/** The parts that all tenants of a server share. */
export interface TenantHost extends Omit<SharedServerOptions, 'after' | 'onLost'> {
  /** The owners of the server's tasks, where other instances reach the same server; absent where none does. */
  readonly directory?: TaskDirectory | undefined;
  /** The newest revision of the modern era that the server and the gateway serve. */
  readonly revision: () => string;
}

/** The parts of one tenant. */
export interface TenantParts extends Pick<SharedServerOptions, 'after'> {
  /** Announces changes between instances; undefined where nothing is announced. */
  readonly changes: Changes | undefined;
  /** The tenant's name, the same on all instances and different from every other tenant's. */
  readonly topic: string;
  /** Counts the tenant's processes against a quota; undefined where no quota applies. */
  readonly permit: SessionPermit | undefined;
  /** True for the tenant of a single request or session, which ends with it. */
  readonly isForOne: boolean;
}

/** A call waits no longer than this for the gateway's own `tools/list`. */
const listTimeoutMs = 10_000;

/**
 * The clients that share one process of a modern server, with that process, its subscriptions and its tasks
 * (docs/decisions/0164). Nothing of it reaches clients of another tenant.
 */
export class Tenant extends SharedServer {
  /** The number of sessions that use the tenant. */
  users = 0;
  /** When the tenant was last seen in use, on the monotonic clock in milliseconds. */
  usedAt = performance.now();
  readonly isForOne: boolean;
  readonly #host: TenantHost;
  readonly #permit: SessionPermit | undefined;
  /** Undefined where there is only one instance, or where all instances reach the same server. */
  readonly #changes: SharedChanges | undefined;
  #ending: Promise<void> | undefined;

  constructor(host: TenantHost, { changes, topic, permit, isForOne, after }: TenantParts) {
    const { server, emit } = host;
    super({
      ...host,
      server: permit === undefined ? server : countStarts(server, permit),
      after,
      onReady: (revisions) => {
        host.onReady(revisions);
        this.#changes?.processReady();
      },
      onLost: () => this.#changes?.processLost(),
    });
    this.#host = host;
    this.#permit = permit;
    this.isForOne = isForOne;
    if (changes === undefined) return;
    this.#changes = new SharedChanges({
      changes,
      topic,
      listen: (notifications, answer) =>
        super.request(this.#ownRequest('subscriptions/listen', { notifications }), undefined, answer, {
          isOfProbe: true,
        }),
      onTruncated: () => emit({ type: 'filters-truncated', server: server.name }),
    });
  }

  /** True if the tenant must not be ended. */
  get isInUse(): boolean {
    return this.users > 0 || this.isBusy;
  }

  /** True once the tenant is ending: it takes no more requests. */
  get isEnding(): boolean {
    return this.#ending !== undefined;
  }

  override start(): void {
    this.#changes?.join();
    super.start();
  }

  /** As `SharedServer.request`; a subscription gets the changes of all instances. */
  override request(
    request: Message,
    logLevel: LogLevel | undefined,
    answer: CallAnswer,
    origin: RequestOrigin = {},
  ): CancelRequest {
    const { directory } = this.#host;
    const { requester } = origin;
    if (directory === undefined || requester === undefined) return this.#request(request, logLevel, answer, origin);
    return directory.request(request, answer, requester, this.tasks, (target) =>
      this.#request(request, logLevel, target, origin),
    );
  }

  #request(request: Message, logLevel: LogLevel | undefined, answer: CallAnswer, origin: RequestOrigin): CancelRequest {
    const changes = this.#changes;
    changes?.join();
    if (changes === undefined || request.method !== 'subscriptions/listen')
      return super.request(request, logLevel, answer, origin);
    const send = (target: CallAnswer): CancelRequest => super.request(request, logLevel, target, origin);
    // A session's calls must not overtake its subscription, and go to the process of this instance.
    return changes.listen(request, answer, origin.isOfSession !== true, send);
  }

  /** Gets a page of the server's list of tools; undefined if the server does not answer in time. */
  async listTools(
    cursor: string | undefined,
    headers: ForwardedHeaders = noHeaders,
    isRepeat = false,
  ): Promise<Buffer | undefined> {
    const request = this.#ownRequest('tools/list', cursor === undefined ? {} : { cursor });
    const send = (answer: CallAnswer): CancelRequest => super.request(request, undefined, answer, { headers });
    const response = await askShared(send, listTimeoutMs);
    if (typeof response !== 'object') return undefined;
    // The server has started for this request, which then names a revision that it may not serve.
    if (!isRepeat && revisionToRetry(response) !== undefined) return this.listTools(cursor, headers, true);
    return response.text;
  }

  /**
   * Ends the tenant in order (P9); sessions are served until they have ended. Resolves when no process is left.
   * Idempotent: a later call does not change the grace of the first one.
   */
  end(graceMs = 0, sessionsEnded?: Promise<unknown>): Promise<void> {
    this.#ending ??= this.#end(graceMs, sessionsEnded);
    return this.#ending;
  }

  async #end(graceMs: number, sessionsEnded?: Promise<unknown>): Promise<void> {
    this.#changes?.drain();
    await this.drain(graceMs, sessionsEnded);
    this.#permit?.ending();
    this.#permit?.ended();
    await this.#changes?.close();
  }

  #ownRequest(method: string, params: Readonly<Record<string, unknown>>): Message {
    const { version, revision } = this.#host;
    return ownRequest(nextOwnId(), method, params, { version, protocolVersion: revision() });
  }
}

/** Returns the server with each start of a process counted. */
const countStarts = (server: Server, permit: SessionPermit): Server => ({
  ...server,
  open: (events, opening) => {
    permit.started();
    return server.open(events, opening);
  },
});
