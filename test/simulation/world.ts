import { reportFaultsTo, type Seam } from '../../src/core/util/boundary.ts';
import { leftEntries } from './left-entries.ts';
import { entropy, Random } from './random.ts';
import { SimulatedClient } from './simulated-client.ts';
import { leaseMs, SimulatedInstance } from './simulated-instance.ts';
import { SimulatedNetwork } from './simulated-network.ts';
import { SimulatedRedis } from './simulated-redis.ts';
import { VirtualClock } from './virtual-clock.ts';

/** The outcome of one simulation. */
export interface Outcome {
  readonly seed: number;
  /** What broke a promise; empty if nothing did. */
  readonly violations: readonly string[];
  /** What happened, in order: the same for the same seed. */
  readonly trace: readonly string[];
  readonly calls: number;
  /** How the calls ended: `result`, a reason, or `lost`. */
  readonly ends: Readonly<Record<string, number>>;
  readonly steps: number;
  readonly virtualMs: number;
}

/** Faults happen during this time. */
const stormMs = 40_000;

/** After the storm, every call that its client still waits for has ended within this time (P3). */
const calmMs = 90_000;

/** For how long after a loss of data the instances may register again (docs/decisions/0015). */
const settlingMs = 2_000;

/** The sizes of a world, which the seed chooses. */
const largest = { instances: 4, clients: 5, calls: 12, faults: 24 };

/** The faults of a gentle world. */
const gentleFaults = ['breakConnections', 'slowClients', 'slowLink'];

const allFaults = [
  ...['kill', 'kill', 'drain', 'freeze', 'freeze', 'cutFromRedis', 'cutFromRedis', 'stall', 'stall'],
  ...['breakConnections', 'breakConnections', 'breakConnections', 'slowClients'],
  ...['crashServers', 'crashServers', 'restartRedis', 'failOver', 'failOver'],
  ...['cutLink', 'cutLink', 'cutLink', 'blockLink', 'blockOneDirection', 'slowLink'],
];

/** Several gateways, a Redis, servers and clients on one virtual clock. A seed decides everything that happens. */
class World {
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #redis: SimulatedRedis;
  readonly #instances: SimulatedInstance[] = [];
  readonly #clients: SimulatedClient[] = [];
  readonly #ran = new Map<string, number>();
  readonly #violations: string[] = [];
  readonly #trace: string[] = [];
  readonly #seed: number;
  readonly #network: SimulatedNetwork;
  readonly #maxCalls: number;
  /** No instance, server or data is lost in such a world, only connections of clients. */
  readonly #isGentle: boolean;

  constructor(seed: number, clock: VirtualClock) {
    this.#seed = seed;
    this.#clock = clock;
    this.#random = new Random(seed);
    entropy.current = new Random(seed + 1);
    const random = this.#random;
    this.#isGentle = random.chance(0.2);
    this.#maxCalls = random.chance(0.3) ? random.integer(1, 3) : 100;
    const limits = {
      leaseMs,
      maxEvents: random.chance(0.2) ? 8 : 1_000,
      replicas: random.chance(0.4) ? random.integer(1, 2) : 0,
      isCluster: random.chance(0.3),
    };
    this.#redis = this.#clock.as('redis', () => new SimulatedRedis(this.#clock, limits));
    this.#network = new SimulatedNetwork(this.#clock, random);
  }

  /** A fault of the gateway that a boundary has stopped. */
  reported(seam: Seam, cause: unknown): void {
    this.#violated(`a fault at ${seam}: ${messages(cause)}`);
  }

  async run(): Promise<Outcome> {
    const random = this.#random;
    const clock = this.#clock;
    for (let n = random.integer(2, largest.instances); n > 0; n -= 1) this.#startInstance();
    await clock.pass(leaseMs + 4_000); // Redis is old enough for what it does not know not to exist
    for (let n = random.integer(2, largest.clients); n > 0; n -= 1) this.#startClient();
    for (let n = random.integer(0, largest.faults); n > 0; n -= 1)
      clock.after(random.between(0, stormMs), 'world', () => this.#fault());
    await clock.pass(stormMs);
    this.#calm();
    for (let waitedMs = 0; waitedMs < calmMs && !this.#clients.every(({ isDone }) => isDone); waitedMs += 1_000)
      await clock.pass(1_000);
    this.#checkCalls();
    if (this.#isGentle) await this.#checkKnownOutcomes();
    await this.#stopAll();
    return this.#outcome();
  }

  #startInstance(): void {
    const instance: SimulatedInstance = new SimulatedInstance({
      name: `i${this.#instances.length + 1}`,
      clock: this.#clock,
      redis: this.#redis,
      random: this.#random,
      network: this.#network,
      witness: {
        ran: (marker) => {
          const times = (this.#ran.get(marker) ?? 0) + 1;
          this.#ran.set(marker, times);
          this.#say(`${instance.name} runs ${marker}`);
          this.#checkOwner(marker, instance);
          if (times > 1) this.#violated(`${marker}: ran ${times} times`);
        },
        violated: (what) => this.#violated(what),
        reported: (type, reason) => {
          if (type === 'session-adopted') this.#say(`${instance.name}: ${type}`);
          if (type === 'takeover-limit-reached' || type === 'session-ended')
            this.#say(`${instance.name}: ${type} ${reason}`);
        },
        failed: (cause) => this.#violated(`a fault of the gateway: ${messages(cause)}`),
      },
      streamAfterMs: this.#random.pick([0, 100, 2_000]),
      maxCalls: this.#maxCalls,
    });
    this.#instances.push(instance);
  }

  /** Only the owner of a session passes its calls on, as the store knows the owner at that time (P6). */
  #checkOwner(marker: string, { name, line }: SimulatedInstance): void {
    const key = this.#clients.find((client) => marker.startsWith(`${client.name}/`))?.sessionKey;
    if (key === undefined) return;
    // Redis may have forgotten who took the session over last. Until its instances notice, it is no judge.
    if (this.#clock.nowMs - this.#redis.lostAtMs < leaseMs + settlingMs) return;
    this.#redis.store.sessions.find(key).then((record) => {
      if (record === undefined || line.names.has(record.owner)) return;
      this.#violated(`${marker}: ${name} passed it on, although another instance owns the session`);
    });
  }

  #startClient(): void {
    this.#clients.push(
      new SimulatedClient({
        name: `c${this.#clients.length + 1}`,
        clock: this.#clock,
        random: this.#random,
        calls: this.#random.integer(3, largest.calls),
        route: () => {
          const alive = this.#alive;
          return alive.length === 0 ? undefined : this.#random.pick(alive);
        },
        violated: (what) => this.#violated(what),
        hasStored: (key, at) => this.#redis.hasStored(key, at),
        hasLostData: () => this.#redis.losses > 0,
        say: (what) => this.#say(what),
        ran: (marker) => this.#ran.get(marker) ?? 0,
      }),
    );
  }

  get #alive(): SimulatedInstance[] {
    return this.#instances.filter(({ state }) => state === 'alive');
  }

  /** One fault, somewhere. */
  #fault(): void {
    const random = this.#random;
    const instance = random.pick(this.#alive);
    if (instance === undefined) return this.#startInstance();
    const { name, line } = instance;
    // Much happens near the length of a lease.
    const forMs = random.chance(0.5) ? random.time(1, 20_000) : random.between(0.5 * leaseMs, 2.5 * leaseMs);
    const replace = (): void => this.#clock.after(forMs, 'world', () => this.#startInstance());
    const kinds: Readonly<Record<string, () => void>> = {
      kill: () => {
        instance.kill(random.chance(0.3));
        replace();
      },
      drain: () => {
        instance.drain(random.time(1, 10_000));
        replace();
      },
      freeze: () => {
        this.#clock.freeze(name);
        this.#clock.after(forMs, 'world', () => this.#clock.thaw(name));
      },
      cutFromRedis: () => {
        line.cut();
        this.#clock.after(forMs, 'redis', () => line.mend());
      },
      stall: () => line.stall(forMs),
      breakConnections: () => {
        for (const reply of instance.replies) if (random.chance(0.7)) reply.breakOff();
      },
      slowClients: () => {
        for (const reply of instance.replies) {
          reply.setSlow(true);
          this.#clock.after(forMs, 'world', () => reply.setSlow(false));
        }
      },
      crashServers: () => {
        this.#clock.after(0, name, () => {
          for (const backend of instance.backends) if (random.chance(0.7)) backend.ends();
        });
      },
      restartRedis: () => this.#redis.restartEmpty(forMs),
      failOver: () => {
        if (this.#redis.canFailOver) this.#redis.failOver(random.time(1, 3_000), forMs);
      },
      ...this.#linkFaults(name, forMs),
    };
    const weighted = this.#isGentle ? gentleFaults : allFaults;
    const kind = random.pick(weighted);
    this.#say(`${kind} ${name} for ${Math.round(forMs)} ms`);
    kinds[kind]?.();
  }

  /** Faults of the connections between an instance and another one. */
  #linkFaults(name: string, forMs: number): Readonly<Record<string, () => void>> {
    const random = this.#random;
    const others = this.#alive.filter((each) => each.name !== name);
    const other = others.length === 0 ? name : random.pick(others).name;
    return {
      cutLink: () => this.#network.cut(name, other),
      blockLink: () => {
        this.#network.block(name, other, forMs);
        this.#network.block(other, name, forMs);
      },
      blockOneDirection: () => this.#network.block(name, other, forMs),
      slowLink: () => this.#network.slow(name, other, random.time(1, 3_000), forMs),
    };
  }

  /** Everything works from now on. */
  #calm(): void {
    this.#say('calm');
    this.#network.calm();
    for (const { name, line, state } of this.#instances) {
      if (state === 'dead') continue;
      this.#clock.thaw(name);
      line.mend();
    }
    if (this.#alive.length === 0) this.#startInstance();
  }

  #checkCalls(): void {
    for (const client of this.#clients) {
      for (const { marker, end, isLost } of client.calls) {
        if (end === undefined && !isLost) this.#violated(`${marker}: no end`);
        const isForgotten = end?.kind === 'fault' && end.reason === 'unknown_session';
        if (end?.kind === 'fault' && end.reason === 'internal') this.#violated(`${marker}: an internal error`);
        if (isForgotten && this.#redis.losses === 0) this.#violated(`${marker}: its session is forgotten`);
      }
    }
  }

  /** The result of a call that is in the log of its session is known: no client is told that its outcome is unknown. */
  async #checkKnownOutcomes(): Promise<void> {
    for (const client of this.#clients) {
      for (const { marker, end } of client.calls) {
        const isUnknown = end?.kind === 'fault' && end.reason === 'outcome_unknown';
        if (!isUnknown || client.sessionKey === undefined) continue;
        if (await this.#isInLog(client.sessionKey, marker)) this.#violated(`${marker}: its outcome is in the log`);
      }
    }
  }

  /** True if the log has the result of a call. The first owner of a session numbers its streams from 1 on. */
  async #isInLog(key: string, marker: string): Promise<boolean> {
    for (let stream = 1; stream <= largest.calls; stream += 1) {
      const read = await this.#redis.store.log.read(key, stream, undefined, 1_000);
      const last = read.outcome === 'ok' ? read.events.at(-1) : undefined;
      if (last?.last && last.data.toString().includes(`"text":"${marker}"`)) return true;
    }
    return false;
  }

  /** Ends all instances in order. No server may be left. */
  async #stopAll(): Promise<void> {
    // What an instance keeps for one that has ended, or has another name now, is only forgotten while it goes on itself.
    await this.#clock.pass(leaseMs + 5_000);
    const left = this.#instances.filter(({ state }) => state !== 'dead');
    for (const instance of left) {
      for (const reply of instance.replies) reply.breakOff();
      instance.drain(0);
      await this.#clock.pass(leaseMs + 5_000);
    }
    await this.#clock.pass(20_000);
    for (const { name, backends, state, sessions } of left) {
      // What an instance keeps for a session, a request or a peer must not outlive it (P8).
      const [timers, open] = [this.#clock.tasksOf(name), [...sessions.all].length];
      for (const entries of leftEntries(sessions)) this.#violated(`${name}: entries are left in ${entries}`);
      if (timers > 0) this.#violated(`${name}: ${timers} timers are left`);
      if (open > 0) this.#violated(`${name}: ${open} sessions are left`);
      if (state !== 'dead') this.#violated(`${name}: it does not end`);
      if (backends.length > 0) this.#violated(`${name}: ${backends.length} servers are left`);
    }
  }

  #violated(what: string): void {
    this.#say(`VIOLATION ${what}`);
    this.#violations.push(what);
  }

  #say(what: string): void {
    this.#trace.push(`${Math.round(this.#clock.elapsedMs)} ${what}`);
  }

  #outcome(): Outcome {
    const calls = this.#clients.flatMap((client) => client.calls);
    const ends: Record<string, number> = {};
    for (const { marker, end, isLost } of calls) {
      const how = end?.kind === 'fault' ? end.reason : (end?.kind ?? (isLost ? 'lost' : 'none'));
      ends[how] = (ends[how] ?? 0) + 1;
      this.#say(`${marker} ${how}`);
    }
    return {
      seed: this.#seed,
      violations: this.#violations,
      trace: this.#trace,
      calls: calls.length,
      ends,
      steps: this.#clock.steps,
      virtualMs: this.#clock.elapsedMs,
    };
  }
}

/**
 * Runs one simulation. The same seed and the same code have the same outcome. The clock rules before anything exists:
 * a store that was made earlier would sweep at real times, and keep its world in memory for ever.
 */
export async function simulate(seed: number): Promise<Outcome> {
  const clock = new VirtualClock();
  const uninstall = clock.install(new Random(seed + 2).next);
  let restoreReporter: (() => void) | undefined;
  try {
    const world = new World(seed, clock);
    restoreReporter = reportFaultsTo((seam, cause) => world.reported(seam, cause));
    return await world.run();
  } finally {
    restoreReporter?.();
    uninstall();
  }
}

/** The messages of an error and of its causes. */
const messages = (error: unknown): string =>
  error instanceof Error && error.cause !== undefined
    ? `${String(error)}: ${messages(error.cause)}`
    : String(error instanceof Error ? (error.stack ?? error) : error);
