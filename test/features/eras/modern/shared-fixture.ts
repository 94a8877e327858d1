import type { CallAnswer } from '../../../../src/core/call/call-answer.ts';
import { RerunPolicy } from '../../../../src/core/call/rerun.ts';
import type { ModernDropReason } from '../../../../src/core/ops/shared-server-events.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { readBody } from '../../../../src/core/protocol/message/message.ts';
import type { LogLevel } from '../../../../src/core/protocol/modern/log-levels.ts';
import type { Server } from '../../../../src/core/server/server.ts';
import type { RequestOrigin } from '../../../../src/features/eras/modern/process/shared-calls.ts';
import { type SharedProcessLimits, SharedServer } from '../../../../src/features/eras/modern/process/shared-server.ts';
import { createFakeServer, type FakeBackend, type FakeServer } from '../../../support/fake-backend.ts';
import { createInbox, type Inbox } from '../../../support/wait-for.ts';

export const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';

/** What a client got, in order. */
export interface Client {
  readonly answer: CallAnswer;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  readonly got: Inbox<any>;
  /** It does not wait any more. */
  leave(): void;
}

export interface Shared {
  readonly server: FakeServer;
  readonly shared: SharedServer;
  readonly observed: Inbox<readonly [string, ...unknown[]]>;
  readonly dropped: (ModernDropReason | undefined)[];
  /** Sends a request of a client of its own. */
  send(request: object | string, logLevel?: LogLevel, origin?: RequestOrigin): Client;
  /** The id that the newest backend knows the n-th request by; the first is the gateway's `server/discover`. */
  numberOf(n: number): number;
}

export const discovered = { supportedVersions: ['2026-07-28'], capabilities: {} };

const limits: SharedProcessLimits = {
  maxSharedCalls: 1_000,
  maxQueuedBytes: 1024 * 1024,
  graceMs: 60_000,
  requestIdleMs: 60_000,
  requestTotalMs: 60_000,
};

/** A shared server whose processes answer `server/discover`, and everything else as a test says. */
export function createShared({
  onSend = () => undefined,
  startTimeoutMs = 10_000,
  isOfOneUser = false,
  ...more
}: Partial<SharedProcessLimits> & {
  readonly onSend?: (message: Record<string, unknown>, backend: FakeBackend) => void;
  readonly startTimeoutMs?: number;
  readonly isOfOneUser?: boolean;
} = {}): Shared {
  const server = createFakeServer((message, backend) => {
    if (message['method'] !== 'server/discover') return onSend(message, backend);
    backend.says({ jsonrpc: '2.0', id: message['id'], result: discovered });
  });
  return sharedOf(server, { ...limits, ...more }, startTimeoutMs, {}, isOfOneUser);
}

/** A shared server in front of any fake one. */
export function sharedOf(
  server: FakeServer,
  given: Partial<SharedProcessLimits> = {},
  startTimeoutMs = 10_000,
  more: Partial<Server> = {},
  isOfOneUser = false,
): Shared {
  const observed = createInbox<readonly [string, ...unknown[]]>();
  const dropped: (ModernDropReason | undefined)[] = [];
  const shared = new SharedServer({
    server: {
      ...{ name: 'fake', digest: '', open: server.open, isRemote: false },
      ...{ startTimeoutMs, onBackendExit: 'restore', reruns: new RerunPolicy() },
      ...more,
    },
    version: '1.2.3',
    limits: { ...limits, ...given },
    isOfOneUser: () => isOfOneUser,
    emit({ type, server: _, ...details }) {
      if ('text' in details) dropped.push(details.reason);
      else observed.push([type, details]);
    },
    onReady: (revisions) => observed.push(['revisions', revisions]),
    onLost: () => observed.push(['lost']),
    onNotModern: () => observed.push(['notModern']),
  });
  return {
    ...{ server, shared, observed, dropped },
    send(request, logLevel, origin) {
      const client = createClient();
      const leave = shared.request(readRequest(request), logLevel, client.answer, origin);
      return { ...client, leave };
    },
    numberOf: (n) => server.backend.sent.items[n].id as number,
  };
}

/** A client that notes what it gets. */
export function createClient(): Omit<Client, 'leave'> {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  const got = createInbox<any>();
  return {
    got,
    answer: {
      message({ text }) {
        got.push(JSON.parse(text.toString()));
        return true;
      },
      response: ({ text }, status) => got.push({ status, ...JSON.parse(text.toString()) }),
      fault: (reason: Reason) => got.push(reason),
    },
  };
}

export function readRequest(value: object | string) {
  const body = readBody(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), 100);
  const [first] = body.ok ? body.messages : [];
  if (first?.ok !== true) throw new Error('not a message');
  return first.message;
}

export const call = (id: unknown, method = 'tools/call', params: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});
