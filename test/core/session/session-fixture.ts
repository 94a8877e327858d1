import { expect } from 'vitest';
import { RerunPolicy } from '../../../src/core/call/rerun.ts';
import type { Server } from '../../../src/core/server/server.ts';
import type { SessionEndReason } from '../../../src/core/session/end-reason.ts';
import type { SessionDropReason, SessionTelemetry } from '../../../src/core/session/session-events.ts';
import type { SessionOptions } from '../../../src/core/session/session-options.ts';
import { unreadMeter } from '../../../src/core/util/telemetry/meter.ts';
import { createFakeServer, type FakeServer } from '../../support/fake-backend.ts';
import { createInbox, type Inbox } from '../../support/wait-for.ts';

/** Longer than any test. */
export const never = 2 ** 30;

export const nobody = { issuer: '', subject: '', client: '' };

/** Limits that no test meets by chance, and no time that passes by itself. */
export const wideLimits: SessionOptions = {
  streamAfterMs: never,
  commitAfterMs: never,
  graceMs: never,
  requestIdleMs: never,
  requestTotalMs: never,
  maxCalls: 100,
  maxSharedCalls: 100,
  maxQueuedBytes: 1_000_000,
  reconnectDelayMs: 2_000,
  slowReaderMs: never,
  maxAgeMs: never,
  maxEventBytes: 10_000,
  logLimits: { maxEvents: 1_000, maxBytes: 1_000_000 },
  storeWaitMs: 1_000,
};

/** Telemetry that nobody reads. */
export const silentTelemetry: SessionTelemetry = {
  emit: () => undefined,
  delivered: { live: unreadMeter, replayed: unreadMeter },
};

/** Telemetry that keeps what was emitted. */
export interface RecordingTelemetry extends SessionTelemetry {
  readonly ends: Inbox<SessionEndReason>;
  readonly adoptions: { readonly pending: number }[];
  readonly drops: SessionDropReason[];
  readonly failures: unknown[];
  readonly clusterFailures: unknown[];
}

export function createTelemetry(): RecordingTelemetry {
  const ends = createInbox<SessionEndReason>();
  const adoptions: { pending: number }[] = [];
  const drops: SessionDropReason[] = [];
  const failures: unknown[] = [];
  const clusterFailures: unknown[] = [];
  return {
    ...{ ends, adoptions, drops, failures, clusterFailures },
    delivered: silentTelemetry.delivered,
    emit(event) {
      if (event.type === 'session-ended') ends.push(event.reason);
      if (event.type === 'session-adopted') adoptions.push({ pending: event.pending });
      if (event.type === 'session-message-dropped') drops.push(event.reason);
      if (event.type === 'session-failed') failures.push(event.cause);
      if (event.type === 'store-failed') clusterFailures.push(event.cause);
    },
  };
}

/** What the server of a fixture answers to `initialize`. */
export const handshake = { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } };

/** A server that answers `initialize` at once, and nothing else by itself. */
export function createServer(fields: Partial<Server> = {}): { server: Server; fake: FakeServer } {
  const fake = createFakeServer((message, backend) => {
    if (message['method'] === 'initialize') backend.says({ jsonrpc: '2.0', id: message['id'], result: handshake });
  });
  const server: Server = {
    name: 's',
    digest: 'd',
    open: fake.open,
    startTimeoutMs: never,
    isRemote: false,
    onBackendExit: 'restore',
    reruns: new RerunPolicy(),
    ...fields,
  };
  return { server, fake };
}

export const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
};

export const request = (id: string | number, method = 'tools/call', params: object = { name: 'x' }) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});
export const response = (id: string | number, result: unknown = {}) => ({
  jsonrpc: '2.0',
  id,
  // A result is an object (2025-11-25, basic): tests that only tell results apart pass a value.
  result: typeof result === 'object' ? result : { value: result },
});
export const note = (data: unknown) => ({
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level: 'info', data },
});
export const errorTo = (id: string | number, reason: string) =>
  expect.objectContaining({ id, error: expect.objectContaining({ data: { reason } }) });
