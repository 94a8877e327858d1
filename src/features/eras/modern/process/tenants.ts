import type { Isolation } from '../../../../config/servers/process-sharing.ts';
import type { Reason } from '../../../../core/protocol/faults.ts';
import type { Principal } from '../../../../core/protocol/principal.ts';
import type { Sessions } from '../../../../core/registry/sessions.ts';
import type { Changes } from '../../../../core/store/shared/shared-data.ts';
import { detach } from '../../../../core/util/boundary.ts';
import { principalKey } from './task-owners.ts';
import { Tenant, type TenantHost } from './tenant.ts';

export interface TenantsOptions {
  readonly host: TenantHost;
  readonly isolation: Isolation;
  /** Announces changes between instances; undefined if there is only one instance. */
  readonly changes: Changes | undefined;
  /** Counts the processes of users; absent where no quota applies. */
  readonly room?: Pick<Sessions, 'acquireProcess'> | undefined;
  /** An unused process is ended after this many milliseconds. */
  readonly idleMs: number;
}

/** The longest interval between two searches for unused tenants, in milliseconds. */
const maxSweepMs = 30_000;

/**
 * How long a tenant without a process is kept, in milliseconds: it remembers how often its process has ended lately.
 */
const withoutProcessMs = 60_000;

/**
 * Chooses the process of a modern server for each request (docs/decisions/0164). Depending on the isolation that is the
 * process of all clients, of the user, or of the request alone. A user's process is started at the first use and ended
 * when it is unused.
 */
export class Tenants {
  readonly #options: TenantsOptions;
  /** The tenant of all clients; undefined where users are isolated. */
  readonly common: Tenant | undefined;
  readonly #byKey = new Map<string, Tenant>();
  /** Requests of one user mostly carry the same object: looking that up costs less than building its key. */
  readonly #byPrincipal = new WeakMap<Principal, Tenant>();
  /** Ending tenants, by their keys: a successor waits for them. */
  readonly #ending = new Map<string, Promise<void>>();
  /** All tenants that may have a process, including ending ones. */
  readonly #all = new Set<Tenant>();
  #sweep: NodeJS.Timeout | undefined;
  #isDraining = false;

  constructor(options: TenantsOptions) {
    this.#options = options;
    const { host, isolation, changes } = options;
    if (isolation !== 'shared') return;
    const topic = `modern ${host.server.digest} ${host.server.name}`;
    this.common = new Tenant(host, { changes, topic, permit: undefined, isForOne: false });
    this.#all.add(this.common);
  }

  /** The clients' calls in flight, at all tenants. */
  get callsInFlight(): number {
    let calls = 0;
    for (const { callsInFlight } of this.#all) calls += callsInFlight;
    return calls;
  }

  /**
   * Returns the tenant of this user, or one for this request or session alone; or the reason why there may be none.
   * @param isOfSession true if the request is of a session, which was admitted before
   */
  find(principal: Principal, isOfSession: boolean): Tenant | Reason {
    if (this.common !== undefined) return this.common;
    if (this.#options.isolation === 'request') return this.#create(principal, isOfSession);
    const found = this.#byPrincipal.get(principal);
    if (found?.isEnding === false) return found;
    const key = principalKey(principal);
    const tenant = this.#byKey.get(key) ?? this.#create(principal, isOfSession, key);
    if (typeof tenant !== 'string') this.#byPrincipal.set(principal, tenant);
    return tenant;
  }

  /** A session uses a tenant, which does not end before `leave`. */
  enter(principal: Principal): Tenant | Reason {
    const tenant = this.find(principal, true);
    if (typeof tenant !== 'string') tenant.users += 1;
    return tenant;
  }

  leave(tenant: Tenant): void {
    tenant.users -= 1;
    tenant.usedAt = performance.now();
    this.endIfForOne(tenant);
  }

  /** The request or the session of a tenant is over. */
  endIfForOne(tenant: Tenant): void {
    if (tenant.isForOne) detach('shared_process', this.#end(tenant));
  }

  /** Resolves when the process of the tenant is gone. */
  async #end(tenant: Tenant): Promise<void> {
    await tenant.end();
    this.#all.delete(tenant);
  }

  /** Ends all tenants in order (P9); sessions are served until they have ended. Resolves when no process is left. */
  async drain(graceMs: number, sessionsEnded: Promise<unknown> = Promise.resolve()): Promise<void> {
    this.#isDraining = true;
    clearInterval(this.#sweep);
    const ended = (tenant: Tenant): Promise<void> => tenant.end(graceMs, sessionsEnded);
    await Promise.all([...Array.from(this.#all, ended), ...this.#ending.values()]);
    // A session may have created another tenant meanwhile.
    await Promise.all(Array.from(this.#all, (tenant) => tenant.end()));
    this.#all.clear();
  }

  #create(principal: Principal, isOfSession: boolean, key?: string): Tenant | Reason {
    const { host, room, changes } = this.#options;
    if (this.#isDraining && !isOfSession) return 'draining';
    const { isRemote, sharesProcess, name, digest } = host.server;
    // A single request with a process of its own counts as a session of the user.
    const use = { server: { isRemote }, principal, isProcess: key !== undefined || isOfSession };
    const permit = room?.acquireProcess(use, isOfSession && sharesProcess !== true);
    if (typeof permit === 'string') return permit;
    const tenant = new Tenant(host, {
      topic: `modern ${digest} ${name} ${key}`,
      permit,
      isForOne: key === undefined,
      changes: key === undefined ? undefined : changes,
      after: key === undefined ? undefined : this.#ending.get(key),
    });
    this.#all.add(tenant);
    if (key === undefined) return tenant;
    this.#byKey.set(key, tenant);
    this.#sweep ??= setInterval(() => this.#endUnused(), this.#sweepMs).unref();
    return tenant;
  }

  get #sweepMs(): number {
    return Math.min(maxSweepMs, Math.ceil(this.#options.idleMs / 4));
  }

  #endUnused(): void {
    const { idleMs } = this.#options;
    const now = performance.now();
    for (const [key, tenant] of this.#byKey) {
      if (tenant.isInUse) tenant.usedAt = now;
      const keptMs = tenant.isRunning ? idleMs : Math.min(idleMs, withoutProcessMs);
      if (now - tenant.usedAt < keptMs) continue;
      this.#byKey.delete(key);
      const ending = this.#end(tenant).finally(() => {
        if (this.#ending.get(key) === ending) this.#ending.delete(key);
      });
      this.#ending.set(key, ending);
    }
    if (this.#byKey.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}
