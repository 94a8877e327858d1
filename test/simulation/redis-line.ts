import type { AppendOutcome, EventLog } from '../../src/core/store/event-log.ts';
import type { ClusterStore } from '../../src/core/store/store.ts';
import { StoreUnavailable } from '../../src/core/store/store-unavailable.ts';
import type { Random } from './random.ts';
import type { SimulatedRedis } from './simulated-redis.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The delays of one way between an instance and Redis, in milliseconds. */
const fastestMs = 0.1;
const slowestMs = 12;

/** A command without an answer after this time has an unknown outcome. */
const answerWithinMs = 5_000;

const parts = ['log', 'sessions', 'instances', 'values', 'rates', 'reservations', 'changes'] as const;

/** A store runs a command as the master, as the replica that takes over next, or as another replica. */
type Role = 'master' | 'next' | 'other';

/** Runs a command of an instance in a store. */
export type Execute = (store: ClusterStore, role: Role) => Promise<unknown>;

/** A command that Redis has not answered. */
interface Command {
  readonly reject: (error: Error) => void;
  isOpen: boolean;
}

/**
 * The connections of one instance to Redis. Commands and their answers need time and keep their order. If the
 * connection breaks, no open command gets an answer, although Redis may still run it.
 */
export class RedisLine {
  readonly store: ClusterStore;
  readonly #clock: VirtualClock;
  readonly #redis: SimulatedRedis;
  readonly #owner: string;
  readonly #random: Random;
  readonly #open = new Set<Command>();
  readonly #recovered: (() => void)[] = [];
  /** The names under which the instance has joined. */
  readonly names = new Set<string>();
  #isCut = false;
  #healthySinceMs: number;
  #stalledUntilMs = 0;
  /** Each connection keeps the order of its commands. */
  readonly #arrivesAtMs = new Map<string, number>();
  readonly #answersAtMs = new Map<string, number>();

  constructor(clock: VirtualClock, redis: SimulatedRedis, owner: string, random: Random) {
    this.#clock = clock;
    this.#redis = redis;
    this.#owner = owner;
    this.#random = random;
    this.#healthySinceMs = clock.nowMs;
    const guarded = Object.fromEntries(parts.map((part) => [part, this.#guard(part)]));
    this.store = {
      ...(guarded as unknown as ClusterStore),
      healthyForMs: () => (this.#isCut ? 0 : clock.nowMs - this.#healthySinceMs),
      onRecovered: (listener) => void this.#recovered.push(listener),
      close: async () => undefined,
    };
  }

  /** The connection breaks and stays broken. */
  cut(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    for (const command of [...this.#open]) {
      this.#clock.after(this.#random.between(0, 5), this.#owner, () => this.#fail(command));
    }
  }

  /** Nothing passes for a while, in both directions, and nothing is lost. */
  stall(forMs: number): void {
    this.#stalledUntilMs = Math.max(this.#stalledUntilMs, this.#clock.nowMs + forMs);
  }

  /** The connection is there again. */
  mend(): void {
    if (!this.#isCut) return;
    this.#isCut = false;
    this.#healthySinceMs = this.#clock.nowMs;
    this.#clock.after(0, this.#owner, () => {
      if (!this.#isCut) for (const listener of this.#recovered) listener();
    });
  }

  #guard(part: (typeof parts)[number]): object {
    return new Proxy(
      {},
      {
        get:
          (_, name) =>
          (...args: unknown[]) =>
            this.#command(part, String(name), args),
      },
    );
  }

  #command(part: (typeof parts)[number], name: string, args: unknown[]): Promise<unknown> {
    if (name === 'join') this.names.add(String(args[0]));
    const key = this.#redis.isCluster ? String(args[0]) : '';
    const connection = `commands ${key}`;
    return new Promise((resolve, reject) => {
      const command: Command = { reject, isOpen: true };
      this.#open.add(command);
      if (this.#isCut) {
        this.#clock.after(this.#random.between(1, 50), this.#owner, () => this.#fail(command));
        return;
      }
      const { generation } = this.#redis;
      const run = this.#runner(part, name, args);
      this.#clock.after(answerWithinMs, this.#owner, () => this.#fail(command));
      const arriveMs = this.#inOrder(this.#arrivesAtMs, connection);
      const isLostWhenCut = this.#random.chance(0.5);
      this.#clock.after(arriveMs, 'redis', () => {
        // A broken connection may still have delivered the command.
        if ((this.#isCut || !command.isOpen) && isLostWhenCut) return;
        if (generation !== this.#redis.generation) return; // its server is gone
        const done = this.#redis.execute(run, this.#random);
        done.then(
          (value) => this.#answer(command, connection, () => resolve(value)),
          (error: unknown) => this.#answer(command, connection, () => reject(error)),
        );
      });
    });
  }

  /** A command as each store runs it. */
  #runner(part: (typeof parts)[number], name: string, args: unknown[]): Execute {
    return async (store, role) => {
      const target = store[part] as unknown as Record<string, (...args: unknown[]) => unknown>;
      if (name !== 'append' || role !== 'master') return target[name]?.(...args);
      const outcome = (await target['append']?.(...args)) as AppendOutcome;
      const [key, epoch, , events] = args as Parameters<EventLog['append']>;
      const isStored = outcome.outcome === 'stored' || outcome.outcome === 'already';
      if (isStored) this.#redis.noteStored(key, epoch, events);
      return outcome;
    };
  }

  #answer(command: Command, connection: string, settle: () => void): void {
    if (this.#isCut) return; // `cut` fails the command
    const answerMs = this.#inOrder(this.#answersAtMs, connection);
    this.#clock.after(answerMs, this.#owner, () => {
      if (!command.isOpen || this.#isCut) return;
      command.isOpen = false;
      this.#open.delete(command);
      settle();
    });
  }

  #fail(command: Command): void {
    if (!command.isOpen) return;
    command.isOpen = false;
    this.#open.delete(command);
    command.reject(new StoreUnavailable('unreachable'));
  }

  /** The delay of the next message of a connection: random, but never before the last one. */
  #inOrder(times: Map<string, number>, connection: string): number {
    const { nowMs } = this.#clock;
    const delayMs = this.#random.chance(0.9)
      ? this.#random.between(fastestMs, 1)
      : this.#random.between(fastestMs, slowestMs);
    const atMs = Math.max(times.get(connection) ?? 0, this.#stalledUntilMs, nowMs + delayMs);
    times.set(connection, atMs);
    return atMs - nowMs;
  }
}
