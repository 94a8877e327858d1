import type { Reason } from '../../protocol/faults.ts';
import { isSame } from '../../protocol/principal.ts';
import { hasPrimingEvent } from '../../protocol/revisions.ts';
import type { Server } from '../../server/server.ts';
import { isRevisionOf, type SessionLookup } from '../../session/lookup.ts';
import { type Adoption, prepareAdoption } from '../../session/record/adoption.ts';
import { readUsedScopes } from '../../session/record/client-state.ts';
import { coversAll } from '../../session/record/used-scopes.ts';
import type { Session } from '../../session/session.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import type { SessionRecord } from '../../store/session-records.ts';
import type { Store } from '../../store/store.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import type { FailedAttempt } from '../forward/forwarding-host.ts';
import type { Lease } from './lease.ts';

/** What the directory needs. */
export interface DirectoryOptions {
  readonly store: Store;
  readonly lease: Lease;
  readonly leaseMs: number;
  /** The session of this instance with this key, ready or not. */
  find(key: string): Session | undefined;
  /** A server as it was configured before, by its name and digest: its sessions go on for a while. */
  formerServer(name: string, digest: string): Server | undefined;
  /** A session of this instance for clients. */
  handleOf(session: Session): SessionHandle;
  /** Makes a session that was taken over in this term one of this instance. */
  adopt(key: string, server: Server, adoption: Adoption, term: number): void;
  /** Why a session is not to be had that is registered for this instance, and is not held here any more. */
  endingHere(key: string): Reason | undefined;
  /** True if the store was away since the start: only then what it lacks may be what it lost with its last writes. */
  hadBreak(): boolean;
  /** A session was ended instead of taken over: its owners were lost too often. */
  onTakeoverLimit(key: string, server: Server): void;
  /** False while no session may be taken over: the instance is about to stop. */
  mayAdopt(): boolean;
}

/**
 * What is known of where a session is. `later`: it cannot be known now; ask again. A fault that `isPassing` is one for
 * requests; a stream can wait for its end.
 */
export type SessionLocation =
  | { readonly here: SessionHandle }
  | { readonly instance: string; readonly epoch: number }
  | { readonly fault: Reason; readonly isPassing?: true }
  | 'later';

/** Records that are remembered, so that a request to another instance's session asks the store for nothing (P8). */
const maxRemembered = 10_000;

/** Time for owners to register again in a store that lost its data, beyond a lease. */
const settlingMs = 2_000;

/** A request waits for the end of a pause before the next takeover that is no longer than this (P3). */
const shortPauseMs = 1_000;

/** An owner that tells one request so often that it does not have the session that is registered for it, does not have it. */
const maxDenials = 3;

/** Who is known to have given a session up. `nobody` has a released one, or one that this instance took over without hearing of it. */
type Loss = 'nobody' | 'lost' | 'denied';

/** Knows which instance holds a session, and takes over those of instances that are lost (docs/decisions/0015). */
export class Directory {
  readonly #options: DirectoryOptions;
  readonly #records = new Map<string, SessionRecord>();
  readonly #takeovers = new Map<string, Promise<SessionLocation>>();
  /** Denials after which a pause was made. */
  readonly #paused = new WeakSet<FailedAttempt>();

  constructor(options: DirectoryOptions) {
    this.#options = options;
  }

  /**
   * Whether there is a session that this visitor may use.
   * @param isFresh what the session has used by now counts, not what it had when its record was last looked up
   */
  async admits(visitor: SessionLookup, isFresh = false): Promise<'yes' | { readonly fault: Reason } | 'later'> {
    const { key, server, version } = visitor;
    const session = this.#options.find(key);
    const here = session && recordOf(session);
    const isCurrent = !isFresh || visitor.scopes === undefined;
    const isFor = (known: Admitting): boolean => isVisitor(known, visitor);
    const record = here !== undefined && isFor(here) ? here : await this.#find(key, isFor, isCurrent);
    if (record === 'later') return 'later';
    if (record === undefined) return { fault: 'unknown_session' };
    if (!isRevisionOf(record, version)) return { fault: 'unsupported_version' };
    return this.#serverOf(record, server) === undefined ? { fault: 'other_configuration' } : 'yes';
  }

  /** The server of a session, as it was configured when that was opened; undefined if that is not known here. */
  #serverOf({ serverDigest }: { readonly serverDigest: string }, current: Server): Server | undefined {
    return serverDigest === current.digest ? current : this.#options.formerServer(current.name, serverDigest);
  }

  /** Whether streams of a session that was admitted begin with a priming event. */
  primes(key: string): boolean {
    const record = this.#options.find(key) ?? this.#records.get(key);
    return record !== undefined && hasPrimingEvent(record.protocolVersion);
  }

  /**
   * Who holds the session.
   * @param failed the owner that was asked last, and what came of it
   */
  async locate(visitor: SessionLookup, failed: FailedAttempt | undefined): Promise<SessionLocation> {
    const { key } = visitor;
    const held = this.#held(key);
    if (held !== undefined) return { here: held };
    if (failed !== undefined && this.#records.get(key)?.owner === failed.instance) this.#records.delete(key);
    const ending = this.#options.endingHere(key);
    if (ending !== undefined) return { fault: ending };
    const record = await this.#find(key);
    if (record === 'later') return 'later';
    if (record === undefined) return { fault: 'unknown_session' };
    const { owner } = record;
    if (owner === '' || owner === this.#options.lease.name) return this.#takeOver(visitor, record, 'nobody');
    // The owner's replies would not find an instance that has no lease.
    if (!this.#options.lease.isHeld) return 'later';
    if (owner !== failed?.instance) return { instance: owner, epoch: record.epoch };
    if (failed.why !== 'moved') return this.#takeOver(visitor, record, 'lost');
    // Of another epoch it was not asked yet: it has taken the session over by itself since.
    if (failed.denials >= maxDenials && failed.epoch === record.epoch) return this.#takeOver(visitor, record, 'denied');
    // It may only be about to get the session, or to end it. After a pause it is asked again.
    if (this.#paused.has(failed)) return { instance: owner, epoch: record.epoch };
    this.#paused.add(failed);
    return 'later';
  }

  #held(key: string): SessionHandle | undefined {
    const session = this.#options.find(key);
    return session?.isReady ? this.#options.handleOf(session) : undefined;
  }

  /**
   * The record of a session, if it is one for who asks. One of somebody else's takes as long as one that is not there, what
   * ever is known of it here (P11).
   * @param isCurrent what is remembered is good enough
   */
  async #find(
    key: string,
    isFor: (record: SessionRecord) => boolean = () => true,
    isCurrent = true,
  ): Promise<SessionRecord | undefined | 'later'> {
    const known = isCurrent ? this.#records.get(key) : undefined;
    if (known !== undefined && isFor(known)) return known;
    try {
      const found = await this.#options.store.sessions.find(key);
      if (found === undefined || !isFor(found)) return (await this.#isSettled()) ? undefined : 'later';
      this.#remember(key, found);
      return found;
    } catch (cause) {
      if (cause instanceof StoreUnavailable) return 'later';
      throw cause;
    }
  }

  /** True if what the store does not have does not exist: owners had the time to register again. */
  async #isSettled(): Promise<boolean> {
    const { store, lease, leaseMs, hadBreak } = this.#options;
    await lease.refresh(); // the data may be younger than they were when the lease was renewed last
    const healthyMs = hadBreak() ? store.healthyForMs() : Number.POSITIVE_INFINITY;
    return lease.isHeld && Math.min(healthyMs, lease.dataAgeMs) >= leaseMs + settlingMs;
  }

  #remember(key: string, record: SessionRecord): void {
    const [oldest] = this.#records.keys();
    if (this.#records.size >= maxRemembered && oldest !== undefined) this.#records.delete(oldest);
    this.#records.set(key, record);
  }

  /** True while this instance takes the session over. */
  isTakingOver(key: string): boolean {
    return this.#takeovers.has(key);
  }

  /** Resolves when no takeover is under way. Once `mayAdopt` says no, none brings a session any more. */
  async settled(): Promise<void> {
    while (this.#takeovers.size > 0) await Promise.allSettled(this.#takeovers.values());
  }

  /** One at a time for each session. */
  #takeOver(visitor: SessionLookup, from: SessionRecord, loss: Loss): Promise<SessionLocation> {
    const { key } = visitor;
    const held = this.#held(key);
    if (held !== undefined) return Promise.resolve({ here: held }); // taken over while the record was looked up
    const running = this.#takeovers.get(key);
    if (running !== undefined) return running;
    const takeover = this.#tryToTakeOver(visitor, from, loss).finally(() => this.#takeovers.delete(key));
    this.#takeovers.set(key, takeover);
    return takeover;
  }

  async #tryToTakeOver(visitor: SessionLookup, from: SessionRecord, loss: Loss): Promise<SessionLocation> {
    const { key, forwarded } = visitor;
    const { store, lease, leaseMs, mayAdopt, adopt, onTakeoverLimit } = this.#options;
    const server = this.#serverOf(from, visitor.server);
    if (server === undefined) return { fault: 'other_configuration' };
    if (!mayAdopt()) return { fault: 'draining' };
    if (!lease.isHeld) return 'later';
    const isSure = (): boolean => store.healthyForMs() >= leaseMs && lease.dataAgeMs >= leaseMs + settlingMs;
    try {
      this.#records.delete(key);
      if (loss !== 'nobody') {
        const [isAlive] = await store.instances.areAlive([from.owner]);
        // It lives: only a letter was lost, or this instance had another name when it asked. Its own word counts, though.
        if (isAlive && loss === 'lost') return { instance: from.owner, epoch: from.epoch };
        if (!isAlive) {
          if (!isSure() || !(await store.instances.declareDead(from.owner))) return 'later';
          await lease.refresh(); // a store that lost its data has no leases either
          if (!isSure() || !lease.isHeld) return 'later';
        }
      }
      const { term } = lease;
      const taken = await store.sessions.takeOver(key, from, lease.name);
      if (taken.outcome === 'worn_out') {
        onTakeoverLimit(key, server);
        return { fault: 'unknown_session' };
      }
      if (taken.outcome === 'paused')
        return taken.pauseMs <= shortPauseMs ? 'later' : { fault: 'takeover_paused', isPassing: true };
      if (taken.outcome !== 'taken') return 'later'; // it is looked for again, with all care
      const adoption = mayAdopt() ? await prepareAdoption(store.log, key, taken.record, taken.log) : undefined;
      // A drain that began meanwhile does not wait for this session: it is given up again, for the next instance to take (P9).
      if (adoption === undefined || !mayAdopt()) {
        await store.sessions.release(key, taken.record.epoch);
        return { fault: 'draining' };
      }
      adopt(key, server, { ...adoption, forwarded }, term);
    } catch (cause) {
      if (cause instanceof StoreUnavailable) return 'later';
      throw cause;
    }
    const here = this.#held(key);
    return here === undefined ? 'later' : { here };
  }
}

/** What is looked at of a session that is held here. */
const recordOf = ({ server, principal, protocolVersion, usedScopes }: Session) => ({
  server: server.name,
  serverDigest: server.digest,
  principal,
  protocolVersion,
  usedScopes,
});

/** What decides whether a session is there for a visitor, as it is held here or as its record says. */
type Admitting = SessionRecord | ReturnType<typeof recordOf>;

function isVisitor(of: Admitting, { server, principal, scopes }: SessionLookup): boolean {
  if (of.server !== server.name || !isSame(of.principal, principal)) return false;
  return scopes === undefined || coversAll(scopes, 'usedScopes' in of ? of.usedScopes : readUsedScopes(of.clientState));
}
