import { describe, expect, it, vi } from 'vitest';
import { parseCredential } from '../../../../src/core/protocol/http/client-credentials.ts';
import { initialize, nobody, note, request } from '../../../core/session/session-fixture.ts';
import { type FakeBackend, readMessage } from '../../../support/fake-backend.ts';
import { acceptsBoth, createFakeReply, type FakeReply } from '../../../support/fake-reply.ts';
import { createCluster, takeoverMs } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

const bringing = (token: string): FakeReply => createFakeReply(acceptsBoth, { forwarded: { TOKEN: token } });
const withCredentials = (as: 'variables' | 'headers') =>
  createCluster({}, { credentials: { as, parts: new Map([['TOKEN', parseCredential('{header:x-token}') ?? []]]) } });
const startedWith = (backend: FakeBackend) => backend.openedWith?.headers?.();
const methodsOf = (backend: FakeBackend) => backend.sent.items.map(({ method }) => method);

describe('a server process that was started with credentials of its client', () => {
  it('[P12] is the only place of the credentials, which the gateway keeps for no later process', async () => {
    const { a, pass } = await withCredentials('variables');
    const opening = bringing('first');
    a.sessions.open(a.server, nobody, readMessage(initialize), opening);
    expect(a.fake.backend.headers[0]).toEqual({ TOKEN: 'first' });
    await pass();
    const id = opening.given?.kind === 'json' ? (opening.given.headers?.['mcp-session-id'] ?? '') : '';
    a.post(id, note('x'), bringing('second'));
    await pass();
    expect(startedWith(a.fake.backend)).toEqual({});
    const first = a.fake.backend;
    first.ends();
    await pass(60_000);
    expect(a.fake.backend).toBe(first);
    a.post(id, note('x'), bringing('third'));
    await pass();
    const second = a.fake.backend;
    expect([second === first, startedWith(second)]).toEqual([false, {}]);
    second.ends();
    await pass(60_000);
    expect(a.fake.backend).toBe(second);
  });

  it('and is lost is started again only by a request that brings them', async () => {
    const { a, open, pass } = await withCredentials('variables');
    const id = await open(a);
    a.post(id, note('x'), bringing('old'));
    await pass();
    const lost = a.fake.backend;
    lost.ends();
    await pass(60_000);
    a.get(id); // of a client that brings nothing
    await pass(60_000);
    expect(a.fake.backend).toBe(lost);
    a.post(id, request(1), bringing('new'));
    await pass();
    expect(a.fake.backend).not.toBe(lost);
    expect(methodsOf(a.fake.backend)).toEqual(['initialize', 'notifications/initialized', 'tools/call']);
    expect(a.fake.backend.headers[0]).toEqual({ TOKEN: 'new' });
  });

  it('[P3] and is lost is started again at once for a call to run again, while other calls are answered', async () => {
    const { a, open, pass } = await withCredentials('variables');
    const id = await open(a);
    const listing = a.post(id, request('list', 'tools/list', {}), bringing('of the list'));
    const calling = a.post(id, request('call'), bringing('of the call'));
    await pass();
    a.fake.backend.ends();
    await pass();
    expect(methodsOf(a.fake.backend)).toEqual(['initialize', 'notifications/initialized', 'tools/list']);
    expect(a.fake.backend.headers[0]).toEqual({ TOKEN: 'of the list' });
    expect(calling.given).toMatchObject({ kind: 'fault', reason: 'server_exited', id: 'call' });
    expect(listing.given).toBeUndefined();
  });

  it('is not started again if its session has ended meanwhile', async () => {
    const { a, open, pass } = await withCredentials('variables');
    const id = await open(a);
    const lost = a.fake.backend;
    lost.ends();
    await pass();
    a.at(id).remove(bringing('last'));
    await pass();
    expect(a.fake.backend === lost || a.fake.backend.isClosed).toBe(true);
  });

  it('is started by a new owner with those of the request that made it take over', async () => {
    const { a, b, open, pass } = await withCredentials('variables');
    const id = await open(a);
    a.line.cut();
    b.post(id, request('r', 'tools/list', {}), bringing('of the request'));
    await pass(takeoverMs);
    expect(methodsOf(b.fake.backend)).toEqual(['initialize', 'notifications/initialized', 'tools/list']);
    expect(b.fake.backend.headers[0]).toEqual({ TOKEN: 'of the request' });
  });
});

it('a remote server that gets credentials as headers is restored at once, with the newest', async () => {
  const { a, open, pass } = await withCredentials('headers');
  const id = await open(a);
  a.post(id, note('x'), bringing('newest'));
  await pass();
  const lost = a.fake.backend;
  lost.ends();
  await pass();
  expect(a.fake.backend).not.toBe(lost);
  expect(startedWith(a.fake.backend)).toEqual({ TOKEN: 'newest' });
});
