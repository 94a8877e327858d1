import { onTestFinished, vi } from 'vitest';
import type { Server } from '../../../../src/core/server/server.ts';
import type { Adoption } from '../../../../src/core/session/record/adoption.ts';
import type { Session } from '../../../../src/core/session/session.ts';
import type { SessionHandle } from '../../../../src/core/session/session-handle.ts';
import type { SessionRecord } from '../../../../src/core/store/session-records.ts';
import type { ClusterOptions } from '../../../../src/features/cluster/cluster-parts.ts';
import { Directory } from '../../../../src/features/cluster/ownership/directory.ts';
import type { OwnershipGuard } from '../../../../src/features/cluster/ownership/guard.ts';
import type { Lease } from '../../../../src/features/cluster/ownership/lease.ts';
import { aRecord } from '../../../contract/log-writer.ts';
import { createTelemetry } from '../../../core/session/session-fixture.ts';
import { createMemoryClusterStore } from '../../../support/memory-cluster/memory-cluster-store.ts';

export const leaseMs = 6_000;
export const settledMs = leaseMs + 2_000;
export const key = 'k';
export const server = { name: 'everything', digest: 'digest-1' } as Server;
export const principal = { issuer: '', subject: '', client: '' };
export const visitor = { key, server, principal };

/** A directory on the memory store, whose owner is `owner`; all conditions of a takeover hold but that it is lost. */
export async function createDirectory(fields: Partial<SessionRecord> | 'no record' = {}) {
  let nowMs = 0;
  const store = createMemoryClusterStore({ maxEvents: 10, maxBytes: 10_000, maxAgeMs: 60_000, leaseMs }, () => nowMs);
  onTestFinished(() => store.close());
  await store.instances.join('owner');
  await store.instances.join('next');
  if (fields !== 'no record') await store.sessions.create(key, aRecord({ owner: 'owner', ...fields }));
  const state = {
    isHeld: true,
    dataAgeMs: settledMs,
    name: 'me',
    healthyForMs: settledMs,
    hadBreak: true,
    term: 1,
    refresh: async () => undefined,
  };
  const may = { adopt: true, end: false, successor: undefined as string | undefined };
  const ending = new Map<string, { readonly leavesNoRecord: boolean }>();
  const here = new Map<string, Session>();
  const adopted: Adoption[] = [];
  const handle = {} as SessionHandle;
  const find = vi.spyOn(store.sessions, 'find');
  const takeOver = vi.spyOn(store.sessions, 'takeOver');
  const options = {
    store: { ...store, healthyForMs: () => state.healthyForMs },
    limits: { leaseMs },
    find: (of: string) => here.get(of),
    adopt(of: string, at: Server, adoption: Adoption) {
      adopted.push(adoption);
      const session = { isReady: true, server: at, principal, protocolVersion: '2025-11-25' } as unknown as Session;
      here.set(of, session);
      return session;
    },
    findEnding: (of: string) => ending.get(of) ?? (may.end ? { leavesNoRecord: false } : undefined),
    currentServer: (name: string) => (name === server.name ? server : undefined),
    formerServer: () => undefined,
    mayAdopt: () => may.adopt,
    peers: {
      get names() {
        return may.successor === undefined ? [] : [may.successor];
      },
    },
    telemetry: createTelemetry(),
  };
  const guard = { handleOf: () => handle, opened: async () => undefined };
  const directory = new Directory(
    options as unknown as ClusterOptions,
    state as unknown as Lease,
    guard as unknown as OwnershipGuard,
  );
  /** The owner's lease lapses. */
  const lose = (): void => {
    nowMs += leaseMs;
  };
  return { directory, store, state, may, ending, here, adopted, handle, find, takeOver, lose };
}
