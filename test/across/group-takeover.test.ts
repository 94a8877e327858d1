import { expect, it, onTestFinished } from 'vitest';
import { Answer } from '../../src/core/call/answer.ts';
import { LiveTarget } from '../../src/core/call/live-target.ts';
import { CredentialMarks } from '../../src/core/keys/credential-marks.ts';
import { RequestStates } from '../../src/core/keys/request-state.ts';
import { configuredKeys } from '../../src/core/keys/state-keys.ts';
import { type Envelope, readEnvelope } from '../../src/core/protocol/modern/envelope.ts';
import { anyChange, ChangeThrottle } from '../../src/features/eras/modern/changes/change-throttle.ts';
import { Groups } from '../../src/features/eras/modern-on-legacy/groups.ts';
import { never, nobody } from '../core/session/session-fixture.ts';
import { createCluster, type Instance, takeoverMs } from '../features/cluster/two-instances/cluster-fixture.ts';
import { createFakeServer, readMessage } from '../support/fake-backend.ts';
import { acceptsBoth, createFakeReply, type FakeReply } from '../support/fake-reply.ts';
import { modernBody } from '../support/modern-client.ts';

const uri = 'test://a';
const updated = 'notifications/resources/updated';

/** A server of each process that answers everything, and tells of an update to those who have subscribed. */
function createServer() {
  const handshake = { protocolVersion: '2025-11-25', capabilities: { resources: { subscribe: true }, tools: {} } };
  const subscribed = new WeakSet<object>();
  return createFakeServer(({ id, method }, backend) => {
    if (method === 'resources/subscribe') subscribed.add(backend);
    if (method === 'tools/call' && subscribed.has(backend))
      backend.says({ jsonrpc: '2.0', method: updated, params: { uri } });
    const serverInfo = { name: 'fake', version: '1' };
    const result = method === 'initialize' ? { ...handshake, serverInfo } : { content: [] };
    if (id !== undefined) backend.says({ jsonrpc: '2.0', id, result });
  });
}

/** Two instances that serve modern clients of one legacy server. */
async function createFixture() {
  const teller: { current?: ChangeThrottle } = {};
  const onGroupChange = (topic: string, text = anyChange) => teller.current?.notify(topic, text);
  const fake = createServer();
  const cluster = await createCluster({ onGroupChange, requestIdleMs: never }, { open: fake.open });
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
  const ask = (groups: Groups, method: string, params: object): FakeReply => {
    const request = readMessage(modernBody(method, params, { id: 'mine' }));
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
  const update = async (): Promise<void> => {
    const call = ask(atB, 'tools/call', { name: 'update' });
    await pass();
    expect(call.given?.kind).toBe('json');
  };
  await update();
  expect(heard()).toEqual(['notifications/subscriptions/acknowledged', updated]);

  a.line.cut(); // killed
  await pass(takeoverMs);
  await update(); // which brings the session to the other instance
  expect(fake.opened).toHaveLength(2);
  await update(); // of which the next server tells nobody
  const before = heard().length;
  await pass(3_000);
  expect(heard().length).toBeGreaterThan(before);
  const after = heard().length;
  await update();
  expect(heard()).toHaveLength(after + 1);
});
