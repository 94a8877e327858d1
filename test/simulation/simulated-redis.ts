import type { EventId } from '../../src/core/protocol/wire/event-id.ts';
import type { NewEvent } from '../../src/core/store/event-log.ts';
import type { ClusterStore } from '../../src/core/store/store.ts';
import { never } from '../core/session/session-fixture.ts';
import { createMemoryClusterStore } from '../support/memory-cluster/memory-cluster-store.ts';
import { entropy, Random } from './random.ts';
import { type Execute, RedisLine } from './redis-line.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The limits of the simulated store. */
export interface RedisLimits {
  readonly leaseMs: number;
  readonly maxEvents: number;
  /** How many replicas follow the master. Each failover uses one up. */
  readonly replicas: number;
  /** True for Redis Cluster: only the answers to commands with the same key keep their order. */
  readonly isCluster: boolean;
}

/** The longest time by which replicas lag behind the master. */
const maxLagMs = 20;

/** Redis: one store that all instances share, which can lose its data, or the newest part of them. */
export class SimulatedRedis {
  readonly #clock: VirtualClock;
  readonly #limits: RedisLimits;
  #store: ClusterStore;
  #replicas: ClusterStore[];
  /** The commands that the replicas have not seen yet, in order, each with the time when the master ran it. */
  #unreplicated: { readonly command: Execute; readonly ranAtMs: number }[] = [];
  #replicationIsBroken = false;
  #generation = 0;
  readonly #lines: RedisLine[] = [];
  /** How often data were lost, and when last. */
  losses = 0;
  lostAtMs = Number.NEGATIVE_INFINITY;
  /** Every event that a master has stored: its session, epoch, stream and number. */
  readonly #stored = new Set<string>();
  /** How many commands failovers have lost. */
  lostCommands = 0;
  /** How often a replica took over. */
  failovers = 0;

  constructor(clock: VirtualClock, limits: RedisLimits) {
    this.#clock = clock;
    this.#limits = limits;
    [this.#store, ...this.#replicas] = this.#createAll();
  }

  get store(): ClusterStore {
    return this.#store;
  }

  get isCluster(): boolean {
    return this.#limits.isCluster;
  }

  /** Counts the masters. A connection leads to one of them. */
  get generation(): number {
    return this.#generation;
  }

  get canFailOver(): boolean {
    return this.#replicas.length > 0 && !this.#replicationIsBroken;
  }

  /** Notes that the master has stored these events of a session. */
  noteStored(key: string, epoch: number, events: readonly NewEvent[]): void {
    for (const { stream, seq } of events) this.#stored.add(`${key} ${epoch} ${stream} ${seq}`);
  }

  /** True if the log had this event at some time, even if Redis has lost it since. */
  hasStored(key: string, { epoch, stream, seq }: EventId): boolean {
    return this.#stored.has(`${key} ${epoch} ${stream} ${seq}`);
  }

  connect(owner: string, random: Random): RedisLine {
    const line = new RedisLine(this.#clock, this, owner, random);
    this.#lines.push(line);
    return line;
  }

  /**
   * Runs a command at the master, and a little later at the replicas. A replica of Redis copies the effects of a command:
   * here it runs the command as of the time of the master, so that no lease has ended in between.
   */
  async execute(command: Execute, random: Random): Promise<unknown> {
    const { generation } = this;
    const ran = { command, ranAtMs: this.#clock.nowMs };
    const answer = await command(this.#store, 'master');
    if (this.#replicas.length === 0 || generation !== this.generation) return answer;
    const replicate = (): void => {
      const index = this.#unreplicated.indexOf(ran);
      if (index < 0 || this.#replicationIsBroken) return;
      for (const next of this.#unreplicated.splice(0, index + 1))
        for (const [at, replica] of this.#replicas.entries())
          this.#clock
            .asOf(next.ranAtMs, () => next.command(replica, at === 0 ? 'next' : 'other'))
            .catch(() => undefined);
    };
    this.#unreplicated.push(ran);
    this.#clock.after(random.between(0, maxLagMs), 'redis', replicate);
    return answer;
  }

  /**
   * The replicas do not follow any more. After a while the master is lost, and a replica takes over, without the commands
   * that it has not seen. All connections break, and come back after another while.
   */
  failOver(withoutMs: number, awayMs: number): void {
    this.#replicationIsBroken = true;
    this.#clock.after(withoutMs, 'redis', () => {
      const [promoted, ...others] = this.#replicas;
      this.#replicationIsBroken = false;
      if (promoted === undefined) return; // Redis has lost everything meanwhile
      if (this.#unreplicated.length > 0) {
        this.losses += 1;
        this.lostAtMs = this.#clock.nowMs;
        this.lostCommands += this.#unreplicated.length;
      }
      this.#unreplicated = [];
      this.#store = promoted;
      this.#replicas = others;
      this.#generation += 1;
      this.failovers += 1;
      for (const line of this.#lines) {
        line.cut();
        this.#clock.after(awayMs, 'redis', () => line.mend());
      }
    });
  }

  /** Redis restarts without its data. All connections break, and come back after a while. */
  restartEmpty(awayMs: number): void {
    this.losses += 1;
    this.lostAtMs = this.#clock.nowMs;
    for (const line of this.#lines) line.cut();
    this.#generation += 1;
    this.#unreplicated = [];
    [this.#store, ...this.#replicas] = this.#createAll();
    for (const line of this.#lines) this.#clock.after(awayMs, 'redis', () => line.mend());
  }

  /** The master first, then its replicas. All have the same random values. */
  #createAll(): [ClusterStore, ...ClusterStore[]] {
    const { replicas } = this.#limits;
    const seed = entropy.current.integer(0, 0xffff_ffff);
    const [master, ...others] = Array.from({ length: replicas + 1 }, () => this.#create(seed));
    return [master as ClusterStore, ...others];
  }

  #create(seed: number): ClusterStore {
    const { maxEvents, leaseMs } = this.#limits;
    const limits = { maxEvents, maxBytes: 10_000_000, maxAgeMs: never, leaseMs };
    const before = entropy.current;
    entropy.current = new Random(seed);
    const store = this.#clock.as('redis', () => createMemoryClusterStore(limits, () => this.#clock.nowMs));
    entropy.current = before;
    return store;
  }
}
