import type { PeerHost, PeerTransport } from '../../src/features/cluster/peers/peer-request.ts';
import { type Carry, PeerExchange } from '../support/peer-exchange.ts';
import type { Random } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The delay of one way between two instances, in milliseconds. */
const fastestMs = 0.05;
const slowestMs = 2;

/** An instance notices after this time that a connection is half-open, as by its pings. */
const silenceMs = 6_000;

/** A connection that is not made within this time is given up. */
const connectMs = 2_000;

/** A request that is under way. */
interface OpenExchange {
  readonly exchange: PeerExchange;
  readonly from: string;
  readonly to: string;
  /** Something was lost: nothing arrives any more. */
  isBroken: boolean;
  /** When the next thing arrives at each end. */
  readonly arrivesAtMs: { [end: string]: number };
}

/** The network between the instances. Each direction between two can fail by itself. */
export class SimulatedNetwork {
  readonly clock: VirtualClock;
  readonly #random: Random;
  /** The instances that listen, by the name of their machine. */
  readonly #hosts = new Map<string, PeerHost>();
  readonly #open = new Set<OpenExchange>();
  /** The machine of each name that an instance has had. */
  readonly #machines = new Map<string, string>();
  /** The directions `from to` in which nothing passes, and those that are slow, with their delay. */
  readonly #blocked = new Set<string>();
  readonly #slow = new Map<string, number>();
  /** How many times something was sent. */
  writes = 0;

  constructor(clock: VirtualClock, random: Random) {
    this.clock = clock;
    this.#random = random;
  }

  #delay(from: string, to: string): number {
    return this.#random.between(fastestMs, slowestMs) + (this.#slow.get(`${from} ${to}`) ?? 0);
  }

  /** All connections between two instances break at once, for both. */
  cut(one: string, other: string): void {
    for (const open of [...this.#open])
      if ((open.from === one && open.to === other) || (open.from === other && open.to === one)) this.#break(open);
  }

  /** Nothing passes in one direction for a while. Neither end is told. */
  block(from: string, to: string, forMs: number): void {
    const way = `${from} ${to}`;
    this.#blocked.add(way);
    this.clock.after(forMs, 'world', () => this.#blocked.delete(way));
  }

  /** All takes longer in one direction for a while. Nothing is lost. */
  slow(from: string, to: string, byMs: number, forMs: number): void {
    const way = `${from} ${to}`;
    this.#slow.set(way, byMs);
    this.clock.after(forMs, 'world', () => this.#slow.delete(way));
  }

  /** A host is gone: its connections stay half-open, and nobody listens. */
  vanish(name: string): void {
    this.#hosts.delete(name);
    for (const open of this.#open) if (open.from === name || open.to === name) this.#loseSomething(open);
  }

  /** The process of an instance is killed: its system closes the connections. */
  reset(name: string): void {
    this.#hosts.delete(name);
    for (const open of [...this.#open]) if (open.from === name || open.to === name) this.#break(open);
  }

  calm(): void {
    this.#blocked.clear();
    this.#slow.clear();
  }

  /** The way of one instance to the others. */
  transport(own: string): PeerTransport {
    const others = (): PeerHost[] => [...this.#hosts].filter(([name]) => name !== own).map(([, host]) => host);
    let host: PeerHost | undefined;
    return {
      attach: (attached) => {
        host = attached;
      },
      listen: async () => {
        if (host !== undefined) this.#hosts.set(own, host);
      },
      ask: (to, request, body, listener) => {
        const open: OpenExchange = {
          exchange: new PeerExchange(
            listener,
            {
              toOwner: (act) => this.#carry(open, 'to', act),
              toIngress: (act) => this.#carry(open, 'from', act),
              split: (text) => this.#split(text),
            },
            () => this.#open.delete(open),
          ),
          from: own,
          to: this.#machines.get(to) ?? '',
          isBroken: false,
          arrivesAtMs: {},
        };
        const target = this.#hosts.get(open.to);
        const isUnreachable = this.#blocked.has(`${own} ${open.to}`) || this.#blocked.has(`${open.to} ${own}`);
        if (target === undefined || isUnreachable) {
          this.clock.after(isUnreachable ? connectMs : this.#delay(own, to), own, () => open.exchange.fail());
        } else {
          this.#open.add(open);
          // An instance denies what is for an earlier name.
          const serve: PeerHost['serve'] = (...asked) =>
            target.name() === to ? target.serve(...asked) : asked[2].deny('moved');
          open.exchange.begin({ name: () => to, serve }, request, body);
        }
        return open.exchange;
      },
      get states() {
        return { reachable: others().length, unreachable: [] };
      },
      get names() {
        return others().map((each) => each.name());
      },
      publish: () => void (host && this.#machines.set(host.name(), own)),
      isRenamed: (name) => {
        const there = this.#hosts.get(this.#machines.get(name) ?? '');
        return there !== undefined && there.name() !== name;
      },
      forget: () => undefined,
      close: async () => {
        this.#hosts.delete(own);
        for (const open of [...this.#open]) if (open.from === own || open.to === own) this.#break(open);
      },
    };
  }

  /** A connection may break between any two bytes. */
  #split(text: Buffer): readonly Buffer[] {
    if (text.length < 2 || !this.#random.chance(0.3)) return [text];
    const at = this.#random.integer(1, text.length - 1);
    return [text.subarray(0, at), text.subarray(at)];
  }

  /** What one end sends arrives in order. What cannot pass is lost, and the connection is half-open. */
  #carry(open: OpenExchange, end: 'from' | 'to', act: Parameters<Carry>[0]): void {
    this.writes += 1;
    const [sender, receiver] = end === 'to' ? [open.from, open.to] : [open.to, open.from];
    if (this.#blocked.has(`${sender} ${receiver}`)) this.#loseSomething(open);
    if (open.isBroken) return;
    const atMs = Math.max(open.arrivesAtMs[end] ?? 0, this.clock.nowMs + this.#delay(sender, receiver));
    open.arrivesAtMs[end] = atMs;
    this.clock.after(atMs - this.clock.nowMs, receiver, () => {
      if (!open.isBroken) act();
    });
  }

  /** Both ends notice the loss by the silence. */
  #loseSomething(open: OpenExchange): void {
    if (open.isBroken) return;
    open.isBroken = true;
    this.clock.after(silenceMs, open.from, () => open.exchange.fail());
    this.clock.after(silenceMs, open.to, () => open.exchange.leaveOwner());
  }

  #break(open: OpenExchange): void {
    open.isBroken = true;
    this.#open.delete(open);
    this.clock.after(0, open.from, () => open.exchange.fail());
    this.clock.after(0, open.to, () => open.exchange.leaveOwner());
  }
}
