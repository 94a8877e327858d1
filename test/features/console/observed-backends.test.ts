import type { PassedMessage } from '@mcp-gangway/console';
import { expect, test } from 'vitest';
import type { BackendEvents } from '../../../src/core/backend/backend.ts';
import { linkBackends } from '../../../src/core/backend/link/link.ts';
import type { Message } from '../../../src/core/protocol/message/message.ts';
import { MessageTap } from '../../../src/features/console/message-tap.ts';
import { ObservedBackends } from '../../../src/features/console/observed-backends.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeServer } from '../../support/fake-backend.ts';

const silent: BackendEvents = {
  onMessages: () => undefined,
  onNoise: () => undefined,
  onUnanswered: () => undefined,
  onEnd: () => undefined,
};
const owner = { server: 'files', session: 'abcd1234' };
const message = (value: object): Message => asMessage({ jsonrpc: '2.0', ...value });

function open(inspects = false) {
  const flow = new MessageTap(inspects);
  const backends = new ObservedBackends(flow);
  const server = createFakeServer();
  const passed: PassedMessage[] = [];
  const watch = (of: { server: string; session?: string } = owner) =>
    flow.watch({ owner: of, onMessage: (each) => passed.push(each) });
  return {
    flow,
    backends,
    server,
    passed,
    watch,
    start: () => linkBackends(server.open, [backends.observe(owner.server)])(silent, owner),
  };
}

test('what a session says is seen both ways while somebody looks at it, and not before and after', () => {
  const { server, passed, watch, flow, start } = open();
  const backend = start();
  backend.send(message({ id: 1, method: 'ping' }));
  const unwatch = watch();
  backend.send(message({ id: 2, method: 'tools/call', params: { name: 'search', arguments: { q: 'secret-text' } } }));
  server.backend.says(
    { jsonrpc: '2.0', method: 'notifications/progress' },
    { jsonrpc: '2.0', id: 2, result: {} },
    'noise',
  );
  server.backend.says({ jsonrpc: '2.0', id: 9, error: { code: -32000, message: 'no' } });
  unwatch();
  expect(flow.isWatched).toBe(false);
  backend.send(message({ id: 3, method: 'ping' }));
  expect(passed.map(({ from, kind, method, isError }) => [from, kind, method, isError])).toEqual([
    ['client', 'request', 'tools/call', undefined],
    ['server', 'noise', undefined, undefined],
    ['server', 'notification', 'notifications/progress', undefined],
    ['server', 'response', 'tools/call', false],
    ['server', 'response', undefined, true],
  ]);
  expect(passed[3]?.ms).toBeGreaterThanOrEqual(0);
  expect(passed[3]?.answers).toBe(passed[0]?.number);
  expect(passed[0]?.name).toBe('search');
  const sent = message({ id: 2, method: 'tools/call', params: { name: 'search', arguments: { q: 'secret-text' } } });
  expect(passed[0]?.size).toBe(sent.text.length);
  expect(JSON.stringify(passed)).not.toContain('secret-text');
});

test('ids of the two sides are not mixed up: a client may answer 1 while its own 1 is open', () => {
  const { server, passed, watch, start } = open();
  const backend = start();
  watch();
  backend.send(message({ id: 1, method: 'tools/call' }));
  server.backend.says({ jsonrpc: '2.0', id: 1, method: 'elicitation/create' });
  backend.send(message({ id: 1, result: {} }));
  server.backend.says({ jsonrpc: '2.0', id: '1', result: {} }, { jsonrpc: '2.0', id: 1, result: {} });
  expect(passed.slice(2).map(({ method }) => method)).toEqual(['elicitation/create', undefined, 'tools/call']);
});

test('nobody who looks at another session sees it', () => {
  const { passed, watch, start } = open();
  const backend = start();
  watch({ server: 'files', session: 'other' });
  watch({ server: 'files' });
  backend.send(message({ id: 1, method: 'ping' }));
  expect(passed).toEqual([]);
});

test('with contents, what looks like a credential is left out, and a long text is cut', () => {
  const { passed, watch, start } = open(true);
  const backend = start();
  watch();
  backend.send(message({ id: 1, method: 'tools/call', params: { arguments: { path: '/tmp', password: 'hunter2' } } }));
  backend.send(message({ id: 2, method: 'x', params: { text: 'y'.repeat(100_000) } }));
  expect(passed[0]?.text).toContain('"path":"/tmp","password":"•••"');
  expect(passed[1]?.text?.length).toBeLessThan(4_200);
});

test('a restart closes the backends of that server alone, and the next ones count as restarts', async () => {
  const { backends, server } = open();
  const ends: unknown[] = [];
  const openFirst = linkBackends(server.open, [backends.observe(owner.server)]);
  const first = (events: BackendEvents) => openFirst({ ...events, onEnd: ({ reason }) => ends.push(reason) }, owner);
  const other = linkBackends(server.open, [backends.observe('mail')]);
  first(silent);
  other(silent);
  const [one, two] = server.opened;
  expect(backends.restart('files')).toBe(1);
  await Promise.resolve();
  expect([one?.isClosed, two?.isClosed]).toEqual([true, false]);
  expect([...backends.live()].map((each) => each.server)).toEqual(['mail']);
  first(silent);
  expect([...backends.live()].map((each) => [each.server, each.restarts])).toEqual([
    ['files', 1],
    ['mail', 0],
  ]);
  expect(ends).toEqual(['exited']); // as a loss, which is restored
  expect(backends.countsOf(owner)).toEqual({ messages: 0, calls: 0, restarts: 1 });
  backends.forget(owner.session);
  expect(backends.countsOf(owner)).toBeUndefined();
});

test('a handshake counts as a message, and not as a call', () => {
  const { backends, server } = open();
  const backend = linkBackends(server.open, [backends.observe(owner.server)])(silent, owner);
  for (const [id, method] of ['initialize', 'ping', 'tools/call'].entries()) backend.send(message({ id, method }));
  expect(backends.countsOf(owner)).toMatchObject({ messages: 3, calls: 2 });
});

test('[P8] the end of a session of a view forgets the backends of all its servers, and of no other session', () => {
  const { backends, server } = open();
  const owners = [owner, { server: 'mail', session: owner.session }, { server: 'mail', session: 'other' }] as const;
  for (const { server: name, session } of owners)
    linkBackends(server.open, [backends.observe(name)])(silent, { session });
  expect(owners.map((each) => backends.countsOf(each) === undefined)).toEqual([false, false, false]);
  backends.forget(owner.session);
  expect(owners.map((each) => backends.countsOf(each) === undefined)).toEqual([true, true, false]);
  expect([...backends.live()].map(({ session }) => session)).toEqual(['other']);
});

test('a tool that failed is an error; the URI of a resource is not shown', () => {
  const { server, passed, watch, start } = open();
  const backend = start();
  watch();
  backend.send(message({ id: 1, method: 'tools/call', params: { name: 'x'.repeat(200) } }));
  server.backend.says({ jsonrpc: '2.0', id: 1, result: { isError: true, content: [] } });
  backend.send(message({ id: 2, method: 'resources/read', params: { uri: 'file:///secret', name: 'secret' } }));
  expect(passed.map(({ name, isError }) => [name, isError])).toEqual([
    ['x'.repeat(128), undefined],
    [undefined, true],
    [undefined, undefined],
  ]);
});

test('a call that the gateway fails ends with the fault, and one that is sent again is the same call', () => {
  const { flow, server, passed, watch, start } = open();
  const backend = start();
  watch();
  backend.send(message({ id: 1, method: 'tools/call' }));
  flow.failed(owner, 1, 'outcome_unknown');
  expect(passed[1]).toMatchObject({ kind: 'fault', fault: 'outcome_unknown', answers: 1, method: 'tools/call' });
  backend.send(message({ id: 2, method: 'ping' }));
  backend.send(message({ id: 2, method: 'ping' }));
  server.backend.says({ jsonrpc: '2.0', id: 2, result: {} });
  expect(passed.slice(2)).toMatchObject([{ number: 3 }, { number: 4, repeats: 3 }, { kind: 'response', answers: 3 }]);
  flow.failed({ ...owner, session: 'other' }, 1, 'server_exited');
  expect(passed).toHaveLength(5);
});
