import { onTestFinished } from 'vitest';
import type { CallTelemetry } from '../../../../src/core/call/call-events.ts';
import { uncountedSessionPermit } from '../../../../src/core/quota/session-permit.ts';
import type { Server } from '../../../../src/core/server/server.ts';
import { prepareAdoption } from '../../../../src/core/session/record/adoption.ts';
import { Session } from '../../../../src/core/session/session.ts';
import type { SessionParts } from '../../../../src/core/session/session-options.ts';
import type { PendingCall, StoredEvent } from '../../../../src/core/store/event-log.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import { aRecord, createLogWriter, epoch } from '../../../contract/log-writer.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { createFakeReply, type FakeReply } from '../../../support/fake-reply.ts';
import { turn, waitFor } from '../../../support/wait-for.ts';
import * as fixture from '../session-fixture.ts';
import { type request, response, wideLimits } from '../session-fixture.ts';

export const key = 'k';
const text = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

interface Left {
  /** What the lost owner wrote, as [stream, message]. */
  readonly events?: readonly (readonly [number, unknown])[];
  /** What it had not answered; the text is kept unless `isKept` says no, as for calls that are not run again. */
  readonly calls?: readonly { stream: number; message: ReturnType<typeof request>; isKept?: boolean }[];
  readonly server?: Partial<Server>;
  /** Where the lost owner's backend stood, after so many of the events. */
  readonly place?: { readonly state: string; readonly after: number; readonly isFirst?: boolean };
  readonly protocolVersion?: string;
  /** The resources that the client listens to. */
  readonly subscriptions?: readonly string[];
  readonly telemetry?: CallTelemetry;
}

/** A session that a lost owner left, taken over. */
export async function adopt({
  events = [],
  calls = [],
  server: fields = {},
  protocolVersion = '2025-11-25',
  place,
  subscriptions = [],
  telemetry: observer,
}: Left = {}) {
  const store = createMemoryStore({ maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: fixture.never });
  const { server, fake } = fixture.createServer(fields);
  const telemetry = fixture.createTelemetry();
  const { state, after: seq, isFirst = true } = place ?? { state: '', after: 0 };
  const said = {
    subscriptions: subscriptions.map((uri) => [
      uri,
      JSON.stringify(fixture.request(uri, 'resources/subscribe', { uri })),
    ]),
  };
  const saved = { ...(place && { backend: { state, at: { epoch, seq }, isFirst } }) };
  const record = aRecord({
    clientState: text(saved),
    clientSaid: text(said),
    initialize: text(fixture.initialize),
    initialized: text(response(0, { ...fixture.handshake, protocolVersion })),
    protocolVersion,
  });
  await store.sessions.create(key, record);
  const made = createLogWriter(store, key).make(
    ...events.map(([stream, data]) => ({ stream, text: String(text(data)) })),
  );
  const pending = calls.map(
    ({ stream, message, isKept = true }): PendingCall => ({
      ...{ stream, id: message.id, method: message.method },
      text: isKept ? text(message) : undefined,
    }),
  );
  const first = (stream: number): number => made.findIndex((event) => event.stream === stream);
  await store.log.append(
    key,
    epoch,
    0,
    made.map((event, index) =>
      index === first(event.stream)
        ? { ...event, opens: pending.filter(({ stream }) => stream === event.stream) }
        : event,
    ),
  );
  const taken = await store.sessions.takeOver(key, { owner: 'instance-1', epoch }, 'instance-2');
  if (taken.outcome !== 'taken') throw new Error(taken.outcome);
  let onEnding = (): void => undefined;
  const parts: SessionParts = {
    ...{
      key,
      server,
      principal: fixture.nobody,
      instance: () => ({ name: 'instance-2', term: 1 }),
      store,
      options: wideLimits,
      telemetry: { ...telemetry, ...(observer && { calls: observer }) },
    },
    storeSignal: new AbortController().signal,
    permit: uncountedSessionPermit,
  };
  const adoption = await prepareAdoption(store.log, key, taken.record, taken.log);
  const { epoch: now, initialize } = taken.record;
  const session = new Session(
    parts,
    { epoch: now, initialize, adoption },
    { onReady: () => undefined, onEnding: () => onEnding(), onEnded: () => undefined },
  );
  onTestFinished(async () => {
    await session.end('deleted');
    await store.close();
  });
  /** The new server is there and knows what the lost one did. */
  const restored = () => waitFor(() => fake.opened.length > 0 && fake.backend.sent.items.length > 0 && fake.backend);
  const stored = async (stream: number): Promise<readonly StoredEvent[]> => {
    const read = await store.log.read(key, stream, undefined, 1_000);
    return read.outcome === 'ok' ? read.events : [];
  };
  /** What is in the log of a stream, from the new owner. */
  const written = async (stream: number) => {
    await turn();
    const events = (await stored(stream)).filter((event) => event.epoch === now);
    return events.map(({ data, last }) => ({ message: data.length > 0 ? JSON.parse(data.toString()) : '', last }));
  };
  const post = (message: unknown, again = false): FakeReply => {
    const reply = createFakeReply();
    session.post({ messages: [readMessage(message)], isBatch: false, again }, reply);
    return reply;
  };
  const listenToEnd = (listener: () => void): void => {
    onEnding = listener;
  };
  return { session, store, fake, telemetry, now, restored, stored, written, post, onEnding: listenToEnd };
}

/** Progress of the call with this token. */
export const progress = (value: number, progressToken = 't') => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: value },
});
