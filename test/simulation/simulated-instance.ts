import { RerunPolicy } from '../../src/core/call/rerun.ts';
import { Sessions } from '../../src/core/registry/sessions.ts';
import type { Server } from '../../src/core/server/server.ts';
import type { SessionTelemetry } from '../../src/core/session/session-events.ts';
import { unreadMeter } from '../../src/core/util/telemetry/meter.ts';
import { Cluster } from '../../src/features/cluster/cluster.ts';
import { handshake, never, wideLimits } from '../core/session/session-fixture.ts';
import { createFakeServer, type FakeBackend, type FakeServer } from '../support/fake-backend.ts';
import type { Random } from './random.ts';
import type { RedisLine } from './redis-line.ts';
import type { SimulatedNetwork } from './simulated-network.ts';
import { SimulatedOutput } from './simulated-output.ts';
import type { SimulatedRedis } from './simulated-redis.ts';
import type { SimulatedReply } from './simulated-reply.ts';
import { callText, initializedText, initializeText, noteText, progressText, resultText } from './texts.ts';
import type { VirtualClock } from './virtual-clock.ts';

export const leaseMs = 6_000;

/** What the code under test must never do, as the simulation notices it. */
export interface Witness {
  /** A server received this call. */
  ran(marker: string): void;
  /** A promise is broken. */
  violated(what: string): void;
  /** The code under test reported an event. */
  reported(type: string, reason: string): void;
  /** The code under test reported a fault of its own. */
  failed(cause: unknown): void;
}

/** What an instance is made of. */
export interface InstanceParts {
  readonly name: string;
  readonly clock: VirtualClock;
  readonly redis: SimulatedRedis;
  readonly random: Random;
  readonly witness: Witness;
  /** When a JSON answer becomes a stream. */
  readonly streamAfterMs: number;
  /** The most calls that a session may have in flight. */
  readonly maxCalls: number;
  readonly network: SimulatedNetwork;
}

/** A gateway: its sessions and its part of the cluster, with its own servers. */
export class SimulatedInstance {
  readonly name: string;
  readonly sessions: Sessions;
  readonly server: Server;
  readonly line: RedisLine;
  readonly #fake: FakeServer;
  readonly #parts: InstanceParts;
  readonly #replies = new Set<SimulatedReply>();
  readonly #outputs = new WeakMap<FakeBackend, SimulatedOutput>();
  #notes = 0;
  state: 'alive' | 'draining' | 'dead' = 'alive';

  constructor(parts: InstanceParts) {
    const { name, clock, redis, random, witness, streamAfterMs, maxCalls, network } = parts;
    this.#parts = parts;
    this.name = name;
    this.line = redis.connect(name, random);
    this.#fake = createFakeServer((message, backend, text) => this.#serve(message, backend, text));
    this.server = {
      name: 's',
      digest: 'd',
      open: this.#fake.open,
      startTimeoutMs: 15_000,
      isRemote: false,
      onBackendExit: 'restore',
      reruns: new RerunPolicy(),
    };
    const telemetry: SessionTelemetry = {
      emit: (event) => {
        if (event.type === 'session-failed') witness.failed(event.cause);
        else witness.reported(event.type, 'reason' in event ? String(event.reason) : '');
      },
      delivered: { live: unreadMeter, replayed: unreadMeter },
    };
    const { store } = this.line;
    const limits = {
      leaseMs,
      leaseRenewMs: 2_000,
      leaseMarginMs: 1_000,
      storeWaitMs: 1_000,
      reconnectDelayMs: 500,
      slowReaderMs: 10_000,
    };
    this.sessions = clock.as(
      name,
      () =>
        new Sessions({
          ...wideLimits,
          maxCalls,
          streamAfterMs,
          graceMs: 1_000,
          slowReaderMs: 10_000,
          reconnectDelayMs: 500,
          store,
          telemetry,
          maxSessions: 100,
          recordTtlMs: never,
          sessionIdleMs: never,
          abandonedMs: never,
          connections: { store, maxEventBytes: 10_000 },
          cluster: {
            leaseMs: limits.leaseMs,
            create: (host) => new Cluster({ ...host, store, limits, peers: network.transport(name) }),
          },
        }),
    );
    clock.as(name, () => void this.sessions.cluster?.listen());
  }

  get backends(): readonly FakeBackend[] {
    return this.#fake.living;
  }

  /** A client's connection to this instance, which breaks with the instance. */
  connect(reply: SimulatedReply): void {
    this.#replies.add(reply);
  }

  disconnect(reply: SimulatedReply): void {
    this.#replies.delete(reply);
  }

  get replies(): readonly SimulatedReply[] {
    return [...this.#replies];
  }

  /**
   * As `kill -9` does: nothing of this instance runs any more, and all its connections break.
   * @param hostIsLost its host does not close the connections of other instances either
   */
  kill(hostIsLost: boolean): void {
    this.state = 'dead';
    const { network } = this.#parts;
    if (hostIsLost) network.vanish(this.name);
    else network.reset(this.name);
    this.line.cut();
    for (const reply of this.replies) reply.breakOff();
    this.#parts.clock.kill(this.name);
  }

  /** As SIGTERM does. */
  drain(graceMs: number): void {
    this.state = 'draining';
    const { clock } = this.#parts;
    clock.after(0, this.name, () => {
      this.sessions.drain(graceMs).then(() => {
        this.state = 'dead';
        for (const reply of this.replies) reply.breakOff();
      });
    });
  }

  /** The server's program: it answers each call after some progress. */
  #serve(message: Record<string, unknown>, backend: FakeBackend, text: string): void {
    const { clock, random, witness, name, maxCalls } = this.#parts;
    const { id, method } = message;
    const output = this.#outputOf(backend);
    const later = (delayMs: number, said: string): void => clock.after(delayMs, name, () => output.write(said));
    const answer = (delayMs: number, result: object): void =>
      later(delayMs, JSON.stringify({ jsonrpc: '2.0', id, result }));
    const expectText = (expected: string): void => {
      if (text !== expected) witness.violated(`a server got ${text} instead of ${expected}`);
    };
    if (method === 'initialize') {
      const { clientInfo } = message['params'] as { readonly clientInfo: { readonly name: string } };
      expectText(initializeText(clientInfo.name));
      return answer(random.time(1, 400), handshake);
    }
    if (method === 'notifications/initialized') return expectText(initializedText);
    if (method !== 'tools/call') {
      if (id !== undefined && method !== undefined) answer(1, {});
      return;
    }
    const params = message['params'] as { arguments: { marker: string; steps: number } };
    const { marker, steps } = params.arguments;
    witness.ran(marker);
    output.calls += 1;
    if (output.calls > maxCalls) witness.violated(`${marker}: ${output.calls} calls of its session at once (P8)`);
    expectText(callText(Number(id), marker, steps));
    const isSlow = random.chance(0.4);
    let atMs = random.time(0.1, 50);
    for (let step = 1; step <= steps; step += 1) {
      later(atMs, progressText(marker, step));
      if (random.chance(0.2)) {
        clock.after(atMs, name, () => {
          this.#notes += 1;
          output.write(noteText(`${name}-${backend.pid}`, this.#notes));
        });
      }
      // A burst arrives in one read, or step by step.
      if (random.chance(0.6))
        atMs += random.chance(isSlow ? 0.7 : 0.1) ? random.between(0, 3_000) : random.time(0.1, 500);
    }
    clock.after(atMs + random.time(0.1, 100), name, () => {
      output.calls -= 1;
      output.write(resultText(Number(id), marker));
    });
  }

  #outputOf(backend: FakeBackend): SimulatedOutput {
    const { clock, random, name } = this.#parts;
    const output = this.#outputs.get(backend) ?? new SimulatedOutput(backend, clock, random, name);
    this.#outputs.set(backend, output);
    return output;
  }
}
