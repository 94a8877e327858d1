import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Instances, LeaseRenewal, MailboxMessage } from '../../store/instances.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { detach } from '../../util/boundary.ts';
import { Acks } from '../link/acks.ts';

/** What a lease needs. */
export interface LeaseOptions {
  readonly instances: Instances;
  /** How long the store keeps the lease after a renewal. */
  readonly leaseMs: number;
  readonly renewMs: number;
  /** So long before its end the lease is no longer relied on. */
  readonly marginMs: number;
  /** What all letters in a mailbox have together at most. */
  readonly mailboxMaxBytes: number;
  /** A letter came. In order for each sender; called again with the next one only after it returned. */
  onPeerMessage(letter: MailboxMessage): void;
  /** The lease was not relied on for a while, but nobody had it: what waited can go on. */
  onHeld(): void;
  /** The instance has another name; what was sent to or from the old one is lost. */
  onRenamed(): void;
  /** What is owned here has to be registered again: a new term has begun. */
  onTerm(): void;
  onFailed(cause: unknown): void;
}

/** The pause after a call of the store that failed. */
const pauseMs = 100;

/** Room is freed at once when it is such a part of a mailbox. */
const partsFreedAtOnce = 16;

/** Faults are reported once they have lasted so long. */
const toleratedMs = 1_000;

/**
 * This instance among the others: its name, its lease, and the loop that renews the lease and reads the mailbox. If the
 * loop dies the lease lapses with it, so that a dead reader looks dead (docs/design.md, D3).
 */
export class Lease {
  /** Counts the times from which on everything owned here has to be registered again; 0 before the first lease. */
  term = 0;
  readonly #options: LeaseOptions;
  readonly #receipts: Acks;
  #name = newName();
  #isJoined = false;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #sentAt = Number.NEGATIVE_INFINITY;
  #renewing: Promise<void> | undefined;
  #said: LeaseRenewal | undefined;
  #saidAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #loop: Promise<void> | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    const { instances, mailboxMaxBytes, onFailed } = options;
    this.#receipts = new Acks({ instances, atOnceBytes: mailboxMaxBytes / partsFreedAtOnce, onFailed });
  }

  /** The name of this instance. One that lost its lease takes another: a name never lives twice. */
  get name(): string {
    return this.#name;
  }

  /**
   * True while nobody can have declared this instance dead. Counted from when the last confirmed renewal was sent, on the
   * monotonic clock, which goes on while the process is stopped (P6).
   */
  get isHeld(): boolean {
    return performance.now() < this.#heldUntil - this.#options.marginMs;
  }

  /** How long ago the store confirmed that this instance lives. */
  get unconfirmedMs(): number {
    return performance.now() - this.#saidAt;
  }

  /** How old the store's data are, at least; 0 if that is not known. */
  get dataAgeMs(): number {
    return this.#said === undefined ? 0 : this.#said.dataAgeMs + performance.now() - this.#saidAt;
  }

  /** Asks the store now: what is known after it was not known before. */
  async refresh(): Promise<void> {
    await this.#renewing; // it may have been answered before what the caller saw
    await this.#renew();
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Begins a new term: what was written last may be lost. */
  beginTerm(): void {
    if (!this.#isJoined || this.#isClosed) return;
    this.term += 1;
    this.#options.onTerm();
  }

  /**
   * Gives the lease up, and takes what is in the mailbox still. A letter must wake the loop for that: the caller has sent
   * one to this instance itself before.
   */
  async close(): Promise<void> {
    const { instances } = this.#options;
    this.#isClosed = true;
    if (!this.#isJoined) return;
    await this.#loop;
    this.#heldUntil = Number.NEGATIVE_INFINITY;
    try {
      await instances.leave(this.#name);
      const rest = await instances.receive(this.#name, 1);
      for (const letter of rest?.messages ?? []) this.#take(letter);
    } catch (cause) {
      // Without the store the lease lapses by itself, and so does the mailbox.
      if (!(cause instanceof StoreUnavailable)) this.#options.onFailed(cause);
    }
  }

  /** True once the lease is known to be held; false if it is lost. Letters wait meanwhile. */
  async #isSure(): Promise<boolean> {
    while (this.#isJoined && !this.isHeld && !this.#isClosed) {
      await this.#renew();
      if (!this.isHeld) await delay(pauseMs, undefined, { ref: false });
    }
    return this.#isJoined;
  }

  async #run(): Promise<void> {
    const { instances, renewMs } = this.#options;
    let failingSince: number | undefined;
    while (!this.#isClosed) {
      try {
        if (!this.#isJoined) await this.#join();
        // A renewal that is under way may fail, and is to be tried again then, or say that the lease is lost.
        const dueMs = this.#renewing !== undefined ? pauseMs : Math.max(1, this.#sentAt + renewMs - performance.now());
        const name = this.#name;
        const delivery = await instances.receive(name, Math.ceil(Math.min(dueMs, renewMs)));
        // A letter to a name that is dead is not acted on: its sender has turned to somebody else.
        if (delivery !== undefined && (await this.#isSure())) {
          for (const letter of delivery.messages) this.#take(letter);
          this.#receipts.add(name, delivery);
        }
        // Only here: if the mailbox cannot be read, nobody may take this instance for one that serves.
        if (performance.now() >= this.#sentAt + renewMs) detach('cluster', this.#renew());
        failingSince = undefined;
      } catch (cause) {
        // A connection that is being made, or made again, is no news yet.
        failingSince ??= performance.now();
        if (performance.now() - failingSince >= toleratedMs) this.#options.onFailed(cause);
        // A missing right is not granted within a moment, and each attempt to join leaves a mailbox behind for a while.
        const isRefused = cause instanceof StoreUnavailable && cause.reason === 'refused';
        await delay(isRefused ? renewMs : pauseMs, undefined, { ref: false });
      }
    }
  }

  #take(letter: MailboxMessage): void {
    try {
      this.#options.onPeerMessage(letter);
    } catch (cause) {
      this.#options.onFailed(cause); // one bad letter must not end the loop, and with it the lease
    }
  }

  async #join(): Promise<void> {
    const sentAt = performance.now();
    this.#name = newName();
    this.#note(await this.#options.instances.join(this.#name), sentAt);
    this.#isJoined = true;
    if (this.term > 0) this.#options.onRenamed();
    this.beginTerm();
  }

  /** One at a time. Never rejects. */
  #renew(): Promise<void> {
    if (!this.#isJoined || this.#isClosed) return Promise.resolve();
    this.#renewing ??= this.#askToRenew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #askToRenew(): Promise<void> {
    const sentAt = performance.now();
    this.#sentAt = sentAt;
    try {
      const before = this.#said?.storeGeneration;
      const said = await this.#options.instances.renew(this.#name);
      const wasHeld = this.isHeld; // now: it may have lapsed while the store was asked
      this.#note(said, sentAt);
      if (!said.held) {
        this.#heldUntil = Number.NEGATIVE_INFINITY;
        this.#isJoined = false;
      } else if (said.storeGeneration !== before) this.beginTerm();
      else if (!wasHeld) this.#options.onHeld();
    } catch (cause) {
      this.#sentAt = sentAt - this.#options.renewMs + pauseMs; // soon again
      this.#options.onFailed(cause);
    }
  }

  #note(said: LeaseRenewal, sentAt: number): void {
    this.#said = said;
    this.#saidAt = sentAt;
    this.#sentAt = sentAt;
    if (said.held) this.#heldUntil = sentAt + this.#options.leaseMs;
  }
}

const newName = (): string => randomUUID();
