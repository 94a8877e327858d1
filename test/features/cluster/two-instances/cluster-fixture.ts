import { onTestFinished, vi } from 'vitest';
import { parseEventId } from '../../../../src/core/protocol/wire/event-id.ts';
import { Sessions, type SessionsOptions } from '../../../../src/core/registry/sessions.ts';
import type { Server } from '../../../../src/core/server/server.ts';
import type { SessionHandle } from '../../../../src/core/session/session-handle.ts';
import { keyFromId } from '../../../../src/core/session/session-key.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import type { ClusterStore } from '../../../../src/core/store/store.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { Cluster } from '../../../../src/features/cluster/cluster.ts';
import {
  createServer,
  createTelemetry,
  initialize,
  never,
  nobody,
  wideLimits,
} from '../../../core/session/session-fixture.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { createFakeReply, type FakeReply } from '../../../support/fake-reply.ts';
import { createMemoryClusterStore } from '../../../support/memory-cluster/memory-cluster-store.ts';
import { PeerBus, type PeerLine } from '../../../support/peer-exchange.ts';

export const leaseMs = 6_000;
/** After this time without a sign of life an owner has been replaced, whatever came first. */
export const takeoverMs = leaseMs + 3_000;

export const cluster = {
  ...wideLimits,
  leaseMs,
  leaseRenewMs: 2_000,
  leaseMarginMs: 1_000,
  storeWaitMs: 1_000,
};

/** What stands between an instance and the store, and the other instances. */
export interface Line {
  /** Nothing gets through any more, in either way. */
  cut(): void;
  /** Everything gets through again, but for this method of the store. */
  mend(except?: string): void;
}

/** The shared store over a line of its own. */
function overLine(store: ClusterStore, peers: PeerLine): { store: ClusterStore; line: Line } {
  let isCut = false;
  let healthySince = Number.NEGATIVE_INFINITY;
  let refused: string | undefined;
  const recovered: (() => void)[] = [];
  const guarded = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name) {
        const method = target[name as keyof T] as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          if (name === refused) throw new StoreUnavailable('unreachable');
          const answer = isCut ? undefined : await method.apply(target, args);
          if (isCut) throw new StoreUnavailable('unreachable');
          return answer;
        };
      },
    });
  const line: Line = {
    cut() {
      isCut = true;
      peers.cut();
    },
    mend(except) {
      isCut = false;
      refused = except;
      healthySince = performance.now();
      peers.mend();
      for (const listener of recovered) listener();
    },
  };
  return {
    line,
    store: {
      log: guarded(store.log),
      sessions: guarded(store.sessions),
      instances: guarded(store.instances),
      values: guarded(store.values),
      rates: guarded(store.rates),
      reservations: guarded(store.reservations),
      changes: guarded(store.changes),
      healthyForMs: () => (isCut ? 0 : performance.now() - healthySince),
      onRecovered: (listener) => void recovered.push(listener),
      close: async () => undefined,
    },
  };
}

/** One gateway of the cluster. */
function createInstance(
  shared: ClusterStore,
  bus: PeerBus,
  options: Partial<SessionsOptions>,
  fields: Partial<Server>,
) {
  const peers = bus.transport();
  const { store, line } = overLine(shared, peers.line);
  const { server, fake } = createServer(fields);
  const telemetry = createTelemetry();
  const sessions = new Sessions({
    ...wideLimits,
    ...{
      store,
      telemetry,
      maxSessions: 10,
      recordTtlMs: never,
      sessionIdleMs: never,
      abandonedMs: never,
      connections: { store: createMemoryStore({ ...wideLimits.logLimits, maxAgeMs: never }), maxEventBytes: 10_000 },
    },
    cluster: { leaseMs: cluster.leaseMs, create: (host) => new Cluster({ ...host, store, limits: cluster, peers }) },
    ...options,
  });
  const at = (id: string, version?: string): SessionHandle => {
    const session = sessions.anywhere({ key: keyFromId(id), server, principal: nobody, version });
    if (typeof session === 'string') throw new Error(session);
    return session;
  };
  return {
    ...{ sessions, server, fake, telemetry, line, at, peers: peers.line },
    post(id: string, message: unknown, reply = createFakeReply()): FakeReply {
      at(id).post({ messages: [readMessage(message)], isBatch: false }, reply);
      return reply;
    },
    get(id: string, lastEventId?: string): FakeReply {
      const reply = createFakeReply();
      at(id).listen(lastEventId === undefined ? undefined : parseEventId(lastEventId), reply);
      return reply;
    },
    remove(id: string): FakeReply {
      const reply = createFakeReply();
      at(id).remove(reply);
      return reply;
    },
  };
}

export type Instance = ReturnType<typeof createInstance>;

/**
 * Gateways in one process that share a memory store, on a clock that the test moves. All have joined, and the store is old
 * enough for what it does not know not to exist.
 * @param maxEvents so many events of a session are kept
 */
export async function createCluster(
  options: Partial<SessionsOptions> = {},
  fields: Partial<Server> = {},
  maxEvents = 1_000,
) {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'],
  });
  onTestFinished(() => void vi.useRealTimers());
  const store = createMemoryClusterStore({ maxEvents, maxBytes: 10_000_000, maxAgeMs: never, leaseMs });
  const bus = new PeerBus();
  const [a, b] = [createInstance(store, bus, options, fields), createInstance(store, bus, options, fields)];
  const instances = [a, b];
  const pass = async (ms = 300): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms));
  await pass(takeoverMs);
  onTestFinished(async () => {
    for (const { line } of instances) line.mend();
    const drained = Promise.all(instances.map(({ sessions }) => sessions.drain(0)));
    await pass(takeoverMs);
    await drained;
    await store.close();
  });
  /** Opens a session at an instance; the client has said that it is initialized. */
  const open = async ({ sessions, server, post }: Instance): Promise<string> => {
    const reply = createFakeReply();
    sessions.open(server, nobody, readMessage(initialize), reply);
    await pass(0);
    const id = reply.given?.kind === 'json' ? reply.given.headers?.['mcp-session-id'] : undefined;
    if (id === undefined) throw new Error('no session was opened');
    post(id, { jsonrpc: '2.0', method: 'notifications/initialized' });
    await pass(0);
    return id;
  };
  /** One more, that cannot reach the store yet. */
  const join = (): Instance => {
    const late = createInstance(store, bus, options, fields);
    late.line.cut();
    instances.push(late);
    return late;
  };
  return { a, b, store, bus, pass, open, join };
}
