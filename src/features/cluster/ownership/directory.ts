import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { sessionRevision } from '../../../core/protocol/known-revisions.ts';
import { ownsOrShares } from '../../../core/protocol/principal.ts';
import type { Server } from '../../../core/server/server.ts';
import { isRevisionOf, type SessionLookup } from '../../../core/session/lookup.ts';
import { prepareAdoption } from '../../../core/session/record/adoption.ts';
import type { Session } from '../../../core/session/session.ts';
import { sessionName } from '../../../core/session/session-events.ts';
import type { SessionHandle } from '../../../core/session/session-handle.ts';
import { retryWhileUnavailable } from '../../../core/store/retry-unavailable.ts';
import type { SessionRecord } from '../../../core/store/session-records.ts';
import { ifUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import { BoundedMap, type ByteBudget, emptyEntryBytes } from '../../../core/util/bounded-map.ts';
import type { ClusterOptions } from '../cluster-parts.ts';
import type { FailedAttempt, LookupFault, SessionLocation } from '../forward/forwarded-request.ts';
import type { OwnershipGuard } from './guard.ts';
import { type Lease, settlingMs } from './lease.ts';

/** How many records are cached, so that a request to another instance's session asks the store for nothing (P8). */
const maxRemembered = 10_000;

/** What requests need of a record. The rest of it, which the client and the server have said, can be large. */
type KnownRecord = ReturnType<typeof knownRecord>;

const knownRecord = ({ server, serverDigest, principal, owner, epoch, protocolVersion }: SessionRecord) => ({
  server,
  serverDigest,
  principal,
  owner,
  epoch,
  protocolVersion,
});

/** A longer name of a user is not cached. */
const recordBudget: ByteBudget<string, KnownRecord> = {
  maxBytes: 16 * 1024 * 1024,
  maxEntryBytes: 64 * 1024,
  bytesOf: (key, { server, principal }) => {
    const texts = [key, server, principal.issuer, principal.subject, principal.client];
    return texts.reduce((sum, { length }) => sum + length + emptyEntryBytes, 0);
  },
};

/** A request waits for the end of a takeover pause if that is no longer than this (P3). */
const shortPauseMs = 1_000;

/**
 * After this many denials in a row to one request, an owner is believed not to have the session that is registered for
 * it.
 */
const maxDenials = 3;

/** A session to take over, and the headers of the client's request, which its server may need. */
type TakeoverLookup = Pick<SessionLookup, 'key' | 'server' | 'forwarded'>;

/**
 * How the previous owner was lost. `nobody`: the session was released, or this instance took it over and missed the
 * answer.
 */
type OwnerLoss = 'nobody' | 'lost' | 'denied';

/** Finds the instance that owns a session, and takes over sessions of lost instances (docs/decisions/0015). */
export class Directory {
  readonly #options: ClusterOptions;
  readonly #lease: Lease;
  readonly #guard: OwnershipGuard;
  readonly #records = new BoundedMap<string, KnownRecord>(maxRemembered, recordBudget);
  readonly #takeovers = new Map<string, Promise<SessionLocation>>();
  /** Failed attempts after which a pause was made. */
  readonly #paused = new WeakSet<FailedAttempt>();

  constructor(options: ClusterOptions, lease: Lease, guard: OwnershipGuard) {
    this.#options = options;
    this.#lease = lease;
    this.#guard = guard;
  }

  /** Whether the session exists and the client may use it. */
  async admits(lookup: SessionLookup): Promise<'yes' | LookupFault | 'later'> {
    const { key, server, version } = lookup;
    const session = this.#options.find(key);
    const here = session && admissionSubject(session);
    const matches = (known: AdmissionSubject): boolean => isAdmitted(known, lookup);
    const record = here !== undefined && matches(here) ? here : await this.#findRecord(key, matches);
    if (record === 'later') return 'later';
    if (record === undefined) return { fault: 'unknown_session' };
    if (!isRevisionOf(record, version)) return { fault: 'unsupported_version' };
    return this.#serverOf(record, server) === undefined ? { fault: 'other_configuration' } : 'yes';
  }

  /**
   * The server of a session, as configured when the session was opened; undefined if that configuration is not known
   * here.
   */
  #serverOf({ serverDigest }: { readonly serverDigest: string }, current: Server): Server | undefined {
    return serverDigest === current.digest ? current : this.#options.formerServer(current.name, serverDigest);
  }

  /** Whether streams of an admitted session begin with a priming event. */
  primes(key: string): boolean {
    const record = this.#options.find(key) ?? this.#records.get(key);
    return record !== undefined && sessionRevision(record.protocolVersion).primesStreams;
  }

  /**
   * Finds the owner of the session.
   * @param failed the owner of the previous attempt, and how that attempt ended
   * @param passesOn an instance that is about to stop may name another one that takes the session over (P9)
   */
  async locate(lookup: SessionLookup, failed: FailedAttempt | undefined, passesOn = false): Promise<SessionLocation> {
    const { key } = lookup;
    const handle = this.handleHere(key);
    if (handle !== undefined) return { here: handle };
    if (failed !== undefined && this.#records.get(key)?.owner === failed.instance) this.#records.delete(key);
    if (this.#options.findEnding(key)?.leavesNoRecord) return { fault: 'unknown_session' };
    let record = await this.#findRecord(key);
    if (this.#isLeft(record) && !this.#options.mayAdopt()) {
      // The cached record can be older than the takeover by another instance.
      this.#records.delete(key);
      record = await this.#findRecord(key);
    }
    if (record === 'later') return 'later';
    if (record === undefined) return { fault: 'unknown_session' };
    const { owner } = record;
    if (this.#isLeft(record)) {
      return this.#options.mayAdopt()
        ? this.#takeOver(lookup, record, 'nobody')
        : this.#locateSuccessor(key, record, passesOn && failed === undefined);
    }
    // The owner's replies would not reach an instance that has no lease.
    if (!this.#lease.isHeld) return 'later';
    if (owner !== failed?.instance) return { instance: owner, epoch: record.epoch };
    if (failed.why !== 'moved') return this.#takeOver(lookup, record, 'lost');
    // Denials of another epoch do not count: the owner has taken the session over again since.
    if (failed.times >= maxDenials && failed.epoch === record.epoch) return this.#takeOver(lookup, record, 'denied');
    // The owner may only be about to get the session, or to end it. It is asked again after a pause.
    if (this.#paused.has(failed)) return { instance: owner, epoch: record.epoch };
    this.#paused.add(failed);
    return 'later';
  }

  /** True for the record of a session that nobody owns, or that names this instance although it has no such session. */
  #isLeft(record: KnownRecord | undefined | 'later'): boolean {
    return typeof record === 'object' && (record.owner === '' || record.owner === this.#lease.name);
  }

  /** This instance is about to stop. Another one takes the session over for the request, once it is released (P9). */
  async #locateSuccessor(key: string, { owner, epoch }: KnownRecord, passesOn: boolean): Promise<SessionLocation> {
    const isEnding = this.#options.findEnding(key) !== undefined;
    if (owner !== '' && passesOn && isEnding) return { fault: 'draining', isPassing: 'soon' };
    const successor = owner === '' && passesOn ? await this.findSuccessor() : undefined;
    return successor === undefined ? { fault: 'draining' } : { instance: successor, epoch, adopts: true };
  }

  /** Takes over a session that nobody owns, in place of an instance that is about to stop. */
  async takeOverReleased(key: string, forwarded: ForwardedHeaders | undefined): Promise<void> {
    this.#records.delete(key);
    const record = await this.#findRecord(key);
    if (typeof record !== 'object' || record.owner !== '') return;
    const server = this.#options.currentServer(record.server);
    if (server !== undefined) await this.#takeOver({ key, server, forwarded }, record, 'nobody');
  }

  /** The session if it is one of this instance and ready. */
  handleHere(key: string): SessionHandle | undefined {
    const session = this.#options.find(key);
    return session?.isReady ? this.#guard.handleOf(session) : undefined;
  }

  /**
   * The record of a session if it matches. A record of another principal takes the same time to refuse as a missing
   * one, even if it is cached here (P11).
   */
  async #findRecord(
    key: string,
    matches: (record: KnownRecord) => boolean = () => true,
  ): Promise<KnownRecord | undefined | 'later'> {
    const known = this.#records.get(key);
    if (known !== undefined && matches(known)) return known;
    const record = await this.#options.store.sessions.find(key).catch(ifUnavailable('later'));
    if (record === 'later') return 'later';
    const found = record && knownRecord(record);
    if (found === undefined || !matches(found)) return (await this.isSettled()) ? undefined : 'later';
    this.#records.set(key, found);
    return found;
  }

  /** True if a record that the store lacks does not exist: owners had the time to register again. */
  async isSettled(): Promise<boolean> {
    const { store, limits } = this.#options;
    const lease = this.#lease;
    await lease.refresh(); // the data may be younger than at the last renewal of the lease
    const healthyMs = lease.hadBreak ? store.healthyForMs() : Number.POSITIVE_INFINITY;
    return lease.isHeld && Math.min(healthyMs, lease.dataAgeMs) >= limits.leaseMs + settlingMs;
  }

  /** True while a session that cannot be used is being opened, taken over or ended here. */
  isChanging(key: string): boolean {
    const { find, findEnding } = this.#options;
    return findEnding(key) !== undefined || find(key) !== undefined || this.#takeovers.has(key);
  }

  /** True if an instance holds its lease. If the store does not answer for a lease, the instance counts as dead. */
  async isAlive(instance: string): Promise<boolean> {
    const { store, limits } = this.#options;
    const check = () => store.instances.areAlive([instance]);
    const [holdsLease] = await retryWhileUnavailable(check, AbortSignal.timeout(limits.leaseMs)).catch(() => []);
    return holdsLease === true;
  }

  /** One of the other instances, which can take sessions over in place of this one; undefined if there is none. */
  async findSuccessor(): Promise<string | undefined> {
    const { store, peers } = this.#options;
    const names = peers?.names ?? [];
    const alive = await store.instances.areAlive(names).catch(() => []);
    const living = names.filter((_, index) => alive[index] === true);
    return living[Math.floor(Math.random() * living.length)];
  }

  /** Resolves when no takeover is under way. Once `mayAdopt` is false, no takeover brings a session any more. */
  async settled(): Promise<void> {
    while (this.#takeovers.size > 0) await Promise.allSettled(this.#takeovers.values());
  }

  /** Runs one takeover at a time for each session. */
  #takeOver(lookup: TakeoverLookup, from: KnownRecord, loss: OwnerLoss): Promise<SessionLocation> {
    const { key } = lookup;
    const handle = this.handleHere(key);
    if (handle !== undefined) return Promise.resolve({ here: handle }); // taken over while the record was looked up
    const running = this.#takeovers.get(key);
    if (running !== undefined) return running;
    const takeover = this.#tryToTakeOver(lookup, from, loss)
      .catch(ifUnavailable('later'))
      .finally(() => this.#takeovers.delete(key));
    this.#takeovers.set(key, takeover);
    return takeover;
  }

  async #tryToTakeOver(lookup: TakeoverLookup, from: KnownRecord, loss: OwnerLoss): Promise<SessionLocation> {
    const { key, forwarded } = lookup;
    const { store, limits, mayAdopt, adopt, telemetry } = this.#options;
    const { leaseMs } = limits;
    const lease = this.#lease;
    const server = this.#serverOf(from, lookup.server);
    if (server === undefined) return { fault: 'other_configuration' };
    if (!mayAdopt()) return { fault: 'draining' };
    if (!lease.isHeld) return 'later';
    const isStoreSure = (): boolean => store.healthyForMs() >= leaseMs && lease.dataAgeMs >= leaseMs + settlingMs;
    this.#records.delete(key);
    let lostInstance: string | undefined;
    if (loss !== 'nobody') {
      const [isAlive] = await store.instances.areAlive([from.owner]);
      // The owner is alive: only a message was lost, or this instance had another name when it asked. A denial by the
      // owner itself still counts.
      if (isAlive && loss === 'lost') return { instance: from.owner, epoch: from.epoch };
      if (!isAlive) {
        if (!isStoreSure() || !(await store.instances.declareDead(from.owner))) return 'later';
        await lease.refresh(); // a store that lost its data has no leases either
        if (!isStoreSure() || !lease.isHeld) return 'later';
        lostInstance = from.owner;
      }
    }
    const { term } = lease;
    const takeover = await store.sessions.takeOver(key, from, lease.name);
    if (takeover.outcome === 'worn_out') {
      telemetry.emit({ type: 'takeover-limit-reached', name: sessionName(key, server.name) });
      return { fault: 'unknown_session' };
    }
    if (takeover.outcome === 'paused')
      return { fault: 'takeover_paused', isPassing: takeover.pauseMs <= shortPauseMs ? 'soon' : true };
    if (takeover.outcome !== 'taken') return 'later'; // the caller looks again, with all checks
    const adoption = mayAdopt() ? await prepareAdoption(store.log, key, takeover.record, takeover.log) : undefined;
    // A drain that began meanwhile does not wait for this session. It is released again for the next instance (P9).
    if (adoption === undefined || !mayAdopt()) {
      await store.sessions.release(key, takeover.record.epoch);
      return { fault: 'draining' };
    }
    const session = adopt(key, server, { ...adoption, forwarded, lostInstance });
    detach('cluster', this.#guard.opened(session, term));
    const here = this.handleHere(key);
    return here === undefined ? 'later' : { here };
  }
}

/** The values of a session of this instance that decide admission. */
const admissionSubject = ({ server, principal, protocolVersion }: Session) => ({
  server: server.name,
  serverDigest: server.digest,
  principal,
  protocolVersion,
});

/** A session of this instance or a record, for the decision whether a client may use the session. */
type AdmissionSubject = KnownRecord | ReturnType<typeof admissionSubject>;

const isAdmitted = (subject: AdmissionSubject, { server, principal }: SessionLookup): boolean =>
  subject.server === server.name && ownsOrShares(subject.principal, principal, server.authorizesClients);
