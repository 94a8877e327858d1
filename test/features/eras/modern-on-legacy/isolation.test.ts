import { describe, expect, it } from 'vitest';
import type { Isolation } from '../../../../src/config/servers/process-sharing.ts';
import type { FakeBackend } from '../../../support/fake-backend.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { createGroups, opens, responseOf, type Sent } from './groups-fixture.ts';

const ada = { issuer: 'https://login.example', subject: 'ada', client: 'app' };
const bob = { ...ada, subject: 'bob' };
const pairs: [what: string, one: Sent, other: Sent][] = [
  ['principals', { principal: ada }, { principal: bob }],
  ['principals of other issuers', { principal: ada }, { principal: { ...ada, issuer: 'https://other.example' } }],
  ['clients of one principal', { principal: ada }, { principal: { ...ada, client: 'other' } }],
  ['credentials', { forwarded: { authorization: 'a' } }, { forwarded: { authorization: 'b' } }],
  ['credentials, of which one has none', { forwarded: { authorization: 'a' } }, {}],
];
const elicitation = { capabilities: { elicitation: {} } };
const call = { params: { name: 'x', arguments: {} } };

/** A server that answers each call with which process has it, and says so of itself. */
const fixture = (isolation: Isolation = 'principal') => {
  const groups = createGroups({
    isolation,
    onInitialize: (message, backend) => opens(message, backend, { instructions: `${backend.pid}` }),
    onSend: ({ id, method }, backend: FakeBackend) => {
      if (id !== undefined && method !== undefined) backend.says({ jsonrpc: '2.0', id, result: { pid: backend.pid } });
    },
  });
  const pidOf = async (sent: Sent, method = 'tools/call'): Promise<number> =>
    (await responseOf(groups.ask(method, { ...call, ...sent }))).result.pid;
  const discoveredBy = async (sent: Sent): Promise<string> =>
    (await responseOf(groups.ask('server/discover', sent))).result.instructions;
  return { ...groups, pidOf, discoveredBy };
};

describe('modern clients of a legacy server', () => {
  it('[R6.09b] share a process that the gateway initialized once, within their group', async () => {
    const { pidOf, fake } = fixture();
    const pids = await Promise.all(Array.from({ length: 20 }, () => pidOf({ principal: { ...ada } })));
    expect(new Set(pids).size).toBe(1);
    const initialized = fake.backend.sent.items.filter(({ method }) => String(method).includes('initialize'));
    expect(initialized.map(({ method }) => method)).toEqual(['initialize', 'notifications/initialized']);
  });

  it('[R6.09b] do not share a process where isolation gives each request its own', async () => {
    const { pidOf, fake } = fixture('request');
    const pids = await Promise.all(Array.from({ length: 5 }, () => pidOf({ principal: ada })));
    expect(new Set(pids).size).toBe(5);
    await waitFor(() => fake.living.length === 0, { what: 'all processes to end' });
  });

  it('[R6.09b] that declare different capabilities are different groups', async () => {
    const { pidOf } = fixture();
    const [none, some] = [await pidOf({}), await pidOf(elicitation)];
    expect(some).not.toBe(none);
    expect([await pidOf({}), await pidOf(elicitation)]).toEqual([none, some]);
  });
});

describe.each(['tools/list', 'tools/call', 'server/discover'])('[P3] the answer of %s', (method) => {
  it.each([
    ['its error', { error: { code: -5, message: 'Set API_KEY first', data: { key: 'API_KEY' } } }],
    ['what is wrong with its answer', { result: { protocolVersion: 20241007 } }],
  ])('is, if the server refuses `initialize`, %s', async (_, answer) => {
    const { ask } = createGroups({
      onInitialize: ({ id }, backend) => backend.says({ jsonrpc: '2.0', id, ...answer }),
    });
    const { id, error } = await responseOf(ask(method, call));
    expect(id).toBe('mine');
    if ('error' in answer) expect(error).toEqual(answer.error);
    else expect(error.data).toMatchObject({ reason: 'bad_response', problem: expect.stringContaining('initialize') });
  });
});

describe.each(pairs)('[P11] modern clients of a legacy server that are two %s', (_, one, other) => {
  it('[R6.09b] have separate processes, whoever came last', async () => {
    const { pidOf } = fixture();
    const [first, second] = [await pidOf(one), await pidOf(other)];
    expect(second).not.toBe(first);
    expect([await pidOf(one), await pidOf(other), await pidOf(one)]).toEqual([first, second, first]);
  });

  it.each(['request', 'principal'] as const)(
    '[R3.05] each get only the server’s own answer to initialize (isolation %s)',
    async (isolation) => {
      const { discoveredBy } = fixture(isolation);
      const [first, second] = [await discoveredBy(one), await discoveredBy(other)];
      expect(second).not.toBe(first);
      expect([await discoveredBy(one), await discoveredBy(other)]).toEqual([first, second]);
    },
  );

  it('[R3.05] each get a list that was fetched for them', async () => {
    const { pidOf } = fixture();
    const lists = [];
    for (const sent of [one, other, one]) lists.push(await pidOf(sent, 'tools/list'));
    expect(lists[1]).not.toBe(lists[0]);
    expect(lists[2]).toBe(lists[0]);
  });

  it('[R3.05] [R5.10] each get the changes of their own processes', async () => {
    const { ask, pidOf, fake } = fixture();
    const listen = (sent: Sent) =>
      ask('subscriptions/listen', { ...sent, params: { notifications: { toolsListChanged: true } } });
    const pids = [await pidOf(one), await pidOf(other)];
    const streams = [listen(one), listen(other)];
    for (const stream of streams) {
      await stream.answered();
      await stream.sink.events.next(({ data = '' }) => data.includes('acknowledged'), { what: 'the acknowledgement' });
    }
    for (const [n, pid] of pids.entries()) {
      const backend = fake.opened.find((each) => each.pid === pid);
      backend?.says({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
      await streams[n]?.sink.events.next(({ data = '' }) => data.includes('list_changed'), { what: 'the change' });
    }
    expect(streams.map(({ sink }) => sink.messages.length)).toEqual([2, 2]);
  });

  it('[R4.06] cannot resume a call of the other', async () => {
    const { ask, fake } = createGroups({
      onSend: ({ id, method, result }, backend) => {
        if (method === 'tools/call')
          backend.says({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: `${id}` } });
        if (result !== undefined) {
          const { id: called } = backend.sent.items.findLast((message) => message.method === 'tools/call');
          backend.says({ jsonrpc: '2.0', id: called, result: { content: [] } });
        }
      },
    });
    const { result } = await responseOf(ask('tools/call', { ...call, ...one, ...elicitation }));
    const inputResponses = Object.fromEntries(
      Object.keys(result.inputRequests).map((key) => [key, { action: 'accept' }]),
    );
    const params = { ...call.params, inputResponses, requestState: result.requestState };
    const stolen = await responseOf(ask('tools/call', { ...other, ...elicitation, params }));
    expect(stolen.error.data.reason).toBe('bad_request_state');
    expect(fake.opened).toHaveLength(1);
    const own = await responseOf(ask('tools/call', { ...one, ...elicitation, params }));
    expect(own.result.resultType).toBe('complete');
  });
});
