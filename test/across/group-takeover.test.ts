import { expect, it, onTestFinished, vi } from 'vitest';
import { Answer } from '../../src/core/call/answer.ts';
import { LiveTarget } from '../../src/core/call/live-target.ts';
import { CredentialMarks } from '../../src/core/keys/credential-marks.ts';
import { RequestStates } from '../../src/core/keys/request-state.ts';
import { configuredKeys } from '../../src/core/keys/state-keys.ts';
import { type Envelope, readEnvelope } from '../../src/core/protocol/modern/envelope.ts';
import type { CreateGroupRules } from '../../src/core/session/group-rules.ts';
import { anyChange, ChangeThrottle } from '../../src/features/eras/modern/changes/change-throttle.ts';
import { Groups } from '../../src/features/eras/modern-on-legacy/groups.ts';
import { SharedSession } from '../../src/features/eras/modern-on-legacy/session/shared-session.ts';
import { never, nobody } from '../core/session/session-fixture.ts';
import { createCluster, type Instance, takeoverMs } from '../features/cluster/two-instances/cluster-fixture.ts';
import { createFakeServer, readMessage } from '../support/fake-backend.ts';
import { acceptsBoth, createFakeReply, type FakeReply } from '../support/fake-reply.ts';
import { metaKeys, modernBody } from '../support/modern-client.ts';

vi.mock('node:timers/promises', () => import('../support/fake-delay.ts'));

const uri = 'test://a';
const updated = 'notifications/resources/updated';

/**
 * A server whose tool `ask` asks its client. Any other tool updates a resource, and the process tells of that if it knows
 * of a subscription.
 */
function createServer() {
  const handshake = { protocolVersion: '2025-11-25', capabilities: { resources: { subscribe: true }, tools: {} } };
  const subscribed = new WeakSet<object>();
  let asking: unknown;
  return createFakeServer(({ id, method, params, result: answer }, backend) => {
    const answers = (to: unknown, result: object): void => backend.says({ jsonrpc: '2.0', id: to, result });
    if (method === 'initialize') return answers(id, { ...handshake, serverInfo: { name: 'fake', version: '1' } });
    if (method === 'resources/subscribe') subscribed.add(backend);
    const { name } = (params ?? {}) as { name?: string };
    if (name === 'ask') {
      asking = id;
      backend.says({ jsonrpc: '2.0', id: 'question', method: 'elicitation/create', params: { message: 'who' } });
    } else if (id === 'question') answers(asking, { content: [answer] });
    else if (id !== undefined) {
      if (name !== undefined && subscribed.has(backend))
        backend.says({ jsonrpc: '2.0', method: updated, params: { uri } });
      answers(id, { content: [] });
    }
  });
}

/** Two instances that serve modern clients of one legacy server. */
async function createFixture() {
  const teller: { current?: ChangeThrottle } = {};
  const groupRules: CreateGroupRules = (...parts) =>
    new SharedSession(...parts, (topic, text = anyChange) => teller.current?.notify(topic, text));
  const fake = createServer();
  const cluster = await createCluster({ groupRules, requestIdleMs: never }, { open: fake.open });
  const { store } = cluster;
  teller.current = new ChangeThrottle(store.changes, () => undefined);
  const keys = configuredKeys(['k'.repeat(32)]);
  const groupsOf = ({ sessions, server }: Instance): Groups => {
    const groups = new Groups({
      ...{ sessions, server, records: store.sessions, changes: store.changes, values: store.values },
      ...{ isolation: () => 'shared', poolMax: 1, version: '1', requestIdleMs: never, settleMs: 1_000 },
      states: new RequestStates(keys),
      marks: new CredentialMarks(keys),
      maxListeners: 100,
      onFailed: (cause) => expect.unreachable(String(cause)),
      onIsolatedCall: () => undefined,
    });
    onTestFinished(() => groups.close());
    return groups;
  };
  const ask = (groups: Groups, method: string, params: object, capabilities: object = {}): FakeReply => {
    const meta = { [metaKeys.clientCapabilities]: capabilities };
    const request = readMessage(modernBody(method, params, { id: 'mine', meta }));
    const { envelope } = readEnvelope(request) as { envelope: Envelope };
    const reply = createFakeReply(acceptsBoth);
    const answer = new Answer(new LiveTarget(never), { era: 'modern', reply, ids: ['mine'], commitAfterMs: never });
    groups.request(request, envelope, { principal: nobody, forwarded: undefined }, answer);
    return reply;
  };
  const { a, b } = cluster;
  return { ...cluster, fake, ask, atA: groupsOf(a), atB: groupsOf(b) };
}

it('[R5.09] [P7] a subscription that the lost owner could not record is made again as soon as the next owner serves', async () => {
  const { a, pass, fake, ask, atA, atB } = await createFixture();
  const opening = ask(atA, 'tools/call', { name: 'x' });
  await pass();
  expect(opening.given?.kind).toBe('json');
  a.line.mend('amend'); // the store is full: it gives answers, and takes no new state of a client
  const listening = ask(atB, 'subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } });
  await pass();
  const heard = (): string[] => listening.sink.messages.map(({ method }) => method);
  const update = async (ms = 100): Promise<void> => {
    const call = ask(atB, 'tools/call', { name: 'update' });
    await pass(ms);
    expect(call.given?.kind).toBe('json');
  };
  await update();
  expect(heard()).toEqual(['notifications/subscriptions/acknowledged', updated]);

  a.line.cut(); // killed
  await pass(takeoverMs);
  await update(300); // which brings the session to the other instance
  expect(fake.opened).toHaveLength(2);
  await update(); // of which the next server tells nobody
  const before = heard().length;
  await pass(3_000);
  expect(heard().length).toBeGreaterThan(before);
  const after = heard().length;
  await update();
  expect(heard()).toHaveLength(after + 1);
});

it('[R4.09] [P2] [P3] an answer that its instance could not pass on is sent again, and lets the calls go on that wait', async () => {
  const { b, pass, fake, ask, atA, atB } = await createFixture();
  const call = (groups: Groups, params: object): FakeReply => ask(groups, 'tools/call', params, { elicitation: {} });
  const asked = call(atA, { name: 'ask' });
  await pass();
  if (asked.given?.kind !== 'json') return expect.unreachable();
  const { inputRequests, requestState } = asked.given.json.result;
  const [key] = Object.keys(inputRequests);
  const retry = { name: 'ask', inputResponses: { [String(key)]: { action: 'accept' } }, requestState };

  b.peers.cut();
  const lost = call(atB, retry);
  await pass(2 * takeoverMs);
  expect(lost.given).toMatchObject({ kind: 'fault', reason: 'owner_unreachable' });
  const waiting = call(atA, { name: 'update' });
  await pass(60_000);
  expect(waiting.given).toBeUndefined(); // it may wait for as long as the client of the question may take

  b.peers.mend();
  await pass(takeoverMs);
  const again = call(atB, retry);
  await pass(1_000);
  expect(again.given).toMatchObject({ kind: 'json', json: { result: { content: [{ action: 'accept' }] } } });
  expect(waiting.given?.kind).toBe('json');
  expect(fake.backend.sent.items.filter(({ id }) => id === 'question')).toHaveLength(1);
  expect(fake.backend.sent.items.filter(({ params }) => params?.name === 'ask')).toHaveLength(1);
});
