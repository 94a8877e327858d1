import { onTestFinished } from 'vitest';
import type { Isolation } from '../../../../src/config/servers/process-sharing.ts';
import { Answer } from '../../../../src/core/call/answer.ts';
import { LiveTarget } from '../../../../src/core/call/live-target.ts';
import { RerunPolicy } from '../../../../src/core/call/rerun.ts';
import { CredentialMarks } from '../../../../src/core/keys/credential-marks.ts';
import { RequestStates } from '../../../../src/core/keys/request-state.ts';
import { configuredKeys, type StateKeys } from '../../../../src/core/keys/state-keys.ts';
import { type Envelope, readEnvelope } from '../../../../src/core/protocol/modern/envelope.ts';
import type { Principal } from '../../../../src/core/protocol/principal.ts';
import { Sessions } from '../../../../src/core/registry/sessions.ts';
import type { CreateGroupRules } from '../../../../src/core/session/group-rules.ts';
import type { SessionOptions } from '../../../../src/core/session/session-options.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import type { Values } from '../../../../src/core/store/shared/shared-data.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { ChangeThrottle } from '../../../../src/features/eras/modern/changes/change-throttle.ts';
import { Groups } from '../../../../src/features/eras/modern-on-legacy/groups.ts';
import { SharedSession } from '../../../../src/features/eras/modern-on-legacy/session/shared-session.ts';
import { createTelemetry, never, nobody, wideLimits } from '../../../core/session/session-fixture.ts';
import { createFakeServer, type FakeBackend, readMessage } from '../../../support/fake-backend.ts';
import { acceptsBoth, createFakeReply, type FakeReply } from '../../../support/fake-reply.ts';
import { metaKeys, modernBody } from '../../../support/modern-client.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
type Json = any;

/** What a client's request is made of beside its method. */
export interface Sent {
  readonly params?: object;
  readonly principal?: Principal;
  readonly forwarded?: Record<string, string>;
  /** The capabilities that it declares. */
  readonly capabilities?: object;
  readonly logLevel?: string | undefined;
  readonly progressToken?: string;
}

export interface GroupsFixture {
  readonly isolation?: Isolation;
  readonly poolMax?: number;
  readonly limits?: Partial<SessionOptions>;
  readonly log?: { readonly maxEvents?: number; readonly maxBytes?: number; readonly maxAgeMs?: number };
  readonly onBackendExit?: 'restore' | 'end';
  /** The clock of the store, in milliseconds. */
  now?(): number;
  /** States never expire. */
  readonly endlessStates?: boolean;
  /** While it says so, the keys of states and the values of rounds cannot be had. */
  isAway?(): boolean;
  /** Answers what is sent to a backend, but for `initialize`, which is answered already. */
  onSend?(message: Json, backend: FakeBackend): void;
  /** Answers `initialize`; at once with some capabilities unless given. */
  onInitialize?(message: Json, backend: FakeBackend): void;
}

export const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };

/** Groups of a fake server, over real sessions and a store in memory. */
export function createGroups(options: GroupsFixture) {
  const {
    isolation = 'shared',
    poolMax = 1,
    onBackendExit = 'restore',
    limits,
    log,
    now,
    onSend,
    onInitialize,
    isAway = () => false,
  } = options;
  const store = createMemoryStore({ maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: never, ...log }, now);
  const fake = createFakeServer((message, backend) => {
    if (message['method'] !== 'initialize') onSend?.(message, backend);
    else if (onInitialize !== undefined) onInitialize(message, backend);
    else opens(message, backend);
  });
  const server = {
    ...{ name: 's', digest: 'd', open: fake.open, startTimeoutMs: never, isRemote: false },
    ...({ onBackendExit, reruns: new RerunPolicy() } as const),
  };
  const telemetry = createTelemetry();
  const teller = new ChangeThrottle(store.changes, (cause) => telemetry.emit({ type: 'store-failed', cause }));
  const limited = {
    ...wideLimits,
    ...limits,
    ...{
      store,
      telemetry,
      maxSessions: 100,
      recordTtlMs: never,
      sessionIdleMs: never,
      abandonedMs: never,
      connections: { store, maxEventBytes: 10_000 },
    },
    groupRules: (...parts: Parameters<CreateGroupRules>) =>
      new SharedSession(...parts, (topic, text = Buffer.alloc(0)) => teller.notify(topic, text)),
  };
  const sessions = new Sessions(limited);
  const failures: unknown[] = [];
  const notAway = async (): Promise<void> => {
    if (isAway()) throw new StoreUnavailable('unreachable');
  };
  const configured = configuredKeys(['k'.repeat(32)]);
  const keys: StateKeys = {
    all: () => notAway().then(() => configured.all()),
    reread: () => notAway().then(() => configured.reread()),
  };
  const values: Values = {
    get: (...of) => notAway().then(() => store.values.get(...of)),
    set: (...of) => notAway().then(() => store.values.set(...of)),
    keep: (...of) => notAway().then(() => store.values.keep(...of)),
  };
  const groups = new Groups({
    ...{
      sessions,
      records: store.sessions,
      changes: store.changes,
      values,
      server,
      isolation: () => isolation,
      poolMax,
      version: '1',
    },
    states: new RequestStates(keys, { now: options.endlessStates ? () => 0 : Date.now }),
    marks: new CredentialMarks(configured),
    requestIdleMs: limited.requestIdleMs,
    settleMs: 1_000,
    maxListeners: 100,
    onFailed: (cause) => failures.push(cause),
    onIsolatedCall: () => undefined,
  });
  onTestFinished(async () => {
    groups.close();
    await sessions.drain(0);
    await store.close();
  });
  return {
    ...{ fake, sessions, store, groups, telemetry, failures },
    /** Has a request of the modern era served. */
    ask(
      method: string,
      { params = {}, principal = nobody, forwarded, capabilities: declared = {}, logLevel, progressToken }: Sent = {},
    ): FakeReply {
      const meta = {
        ...(progressToken !== undefined && { progressToken }),
        [metaKeys.clientCapabilities]: declared,
        ...(logLevel !== undefined && { 'io.modelcontextprotocol/logLevel': logLevel }),
      };
      const request = readMessage(modernBody(method, params, { id: 'mine', meta }));
      const { envelope } = readEnvelope(request) as { envelope: Envelope };
      const reply = createFakeReply(acceptsBoth);
      const answer = new Answer(new LiveTarget(never), {
        era: 'modern',
        reply,
        ids: ['mine'],
        commitAfterMs: never,
      });
      groups.request(request, envelope, { principal, forwarded }, answer);
      return reply;
    },
  };
}

/** Opens the session that `initialize` asks for. */
export function opens({ id }: Json, backend: FakeBackend, more: object = {}): void {
  const serverInfo = { name: 'fake', version: '1' };
  backend.says({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities, serverInfo, ...more } });
}

/** What a reply has as its response, as JSON or on its stream. */
export async function responseOf(reply: FakeReply): Promise<Json> {
  const given = await reply.answered();
  if (given.kind === 'json') return given.json;
  if (given.kind === 'fault') return { id: given.id, error: { data: { reason: given.reason, ...given.data } } };
  await reply.sink.events.ended;
  return reply.sink.messages.at(-1);
}
