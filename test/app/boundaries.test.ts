import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { anonymousIdentity } from '../../src/core/auth/identity.ts';
import { Authorization } from '../../src/core/auth/scopes/authorization.ts';
import { ScopeRules } from '../../src/core/auth/scopes/scope-rules.ts';
import type { Backend, BackendEnd, BackendEvents } from '../../src/core/backend/backend.ts';
import { linkBackends } from '../../src/core/backend/link/link.ts';
import { SessionCalls } from '../../src/core/call/session-calls.ts';
import type { HttpContext } from '../../src/core/http/http-context.ts';
import { createHttpServer } from '../../src/core/http/http-server.ts';
import { type MessagePolicy, MessageReceiver } from '../../src/core/http/pipeline/receive-messages.ts';
import { receivePost } from '../../src/core/http/pipeline/receive-post.ts';
import { respondWithJson } from '../../src/core/http/respond.ts';
import { createFaultReporter, redactFault } from '../../src/core/ops/log/fault-log.ts';
import { anonymous } from '../../src/core/protocol/principal.ts';
import { Sweep } from '../../src/core/registry/upkeep.ts';
import { ChangeSubscribers } from '../../src/core/store/shared/followers.ts';
import { StoreUnavailable } from '../../src/core/store/store-unavailable.ts';
import { contain, detach, reportFault, reportFaultsTo, type Seam } from '../../src/core/util/boundary.ts';
import { MessageTap } from '../../src/features/console/message-tap.ts';
import { hashedName } from '../../src/features/redis/keys.ts';
import { createRedisChanges } from '../../src/features/redis/shared/redis-changes.ts';
import { openSessions } from '../core/session/open-sessions.ts';
import { call as callOf, createShared } from '../features/eras/modern/shared-fixture.ts';
import { asMessage } from '../support/as-message.ts';
import { createFakeServer } from '../support/fake-backend.ts';
import { createFakeReply } from '../support/fake-reply.ts';
import { createInbox, turn } from '../support/wait-for.ts';

/** What the log and the counter were told. */
let lines: { level: number; seam: string; err: { message: string; stack: string } }[];
let counted: Seam[];
let outages: unknown[];
let restore: () => void;

beforeEach(() => {
  lines = [];
  counted = [];
  outages = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const reporter = createFaultReporter(
    logger,
    (seam) => void counted.push(seam),
    (cause) => void outages.push(cause),
  );
  restore = reportFaultsTo(reporter);
});
afterEach(() => restore());

const slip = new TypeError('a slip');

function throwSlip(): never {
  throw slip;
}

/** One fault was stopped at this seam: logged at error with its stack, and counted. */
function expectFaults(...seams: Seam[]): void {
  expect(counted).toEqual(seams);
  expect(lines.map(({ level, seam }) => [level, seam])).toEqual(seams.map((seam) => [50, seam]));
  for (const { err } of lines) expect(err.stack).toMatch(/^\w+: .*\n\s+at /);
}

describe('a boundary', () => {
  it.each<[string, (end: (cause: unknown) => void) => void]>([
    ['work that throws', (end) => contain('store', throwSlip, end)],
    ['work that rejects', (end) => contain('store', async () => throwSlip(), end)],
    ['a promise that is left alone', (end) => detach('store', Promise.reject(slip), end)],
  ])('[C-08] stops %s, has the one thing ended, logs and counts', async (_, begin) => {
    const ends: unknown[] = [];
    begin((cause) => ends.push(cause));
    await turn();
    expect(ends).toEqual([slip]);
    expectFaults('store');
  });

  it('[C-08] also stops what the end of the thing throws', () => {
    contain('admin', throwSlip, throwSlip);
    expectFaults('admin', 'admin');
  });

  it('without a reporter throws, so that no test passes over a fault', () => {
    restore();
    reportFaultsTo(undefined as never);
    onTestFinished(() => restore());
    expect(() => reportFault('store', slip)).toThrow(slip);
  });

  it('a store that is away is an outage, and no fault', () => {
    contain('session', () => {
      throw new StoreUnavailable('unreachable');
    });
    expectFaults();
    expect(outages).toHaveLength(1);
  });

  it('[P12] shows no text of a peer that an error quotes, also as a cause', () => {
    const quoting = (): unknown => {
      try {
        return JSON.parse('canary-secret');
      } catch (cause) {
        return cause;
      }
    };
    const coded = Object.assign(new TypeError('canary-secret'), { code: 'ERR_INVALID_CHAR', input: 'canary-secret' });
    for (const cause of [quoting(), coded, new Error('own', { cause: quoting() }), 'canary-secret'])
      reportFault('request', cause);
    expect(lines).toHaveLength(4);
    expect(JSON.stringify(lines)).not.toContain('canary');
    expect(redactFault(new Error('own')).message).toBe('own');
  });
});

describe('a request', () => {
  async function serve(listener: Parameters<typeof createHttpServer>[1]): Promise<string> {
    const limits = {
      bodyTimeoutMs: 10_000,
      connectionIdleMs: 10_000,
      maxConnections: 10,
      slowReaderMs: 1_000,
    };
    const web = createHttpServer({ certificate: undefined, ...limits }, listener);
    web.server.listen(0, '127.0.0.1');
    await once(web.server, 'listening');
    onTestFinished(() => web.close(0));
    return `http://127.0.0.1:${(web.server.address() as AddressInfo).port}`;
  }
  const isFine = async (url: string): Promise<void> => expect((await fetch(`${url}/fine`)).status).toBe(200);
  const fine = '/fine';

  it('[E-03] that throws is answered with internal, and the next one on the same connection as ever', async () => {
    const url = await serve(({ path, outgoing }) =>
      path === fine ? respondWithJson(outgoing, 200, '{}') : throwSlip(),
    );
    const answer = await fetch(url);
    expect([answer.status, await answer.json()]).toMatchObject([500, { error: { data: { reason: 'internal' } } }]);
    await isFine(url);
    expectFaults('request');
  });

  it('[E-03] whose response has begun loses its connection, and no other does', async () => {
    const url = await serve(({ path, outgoing }) => {
      if (path === fine) return respondWithJson(outgoing, 200, '{}');
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write(': begun\n\n');
      throwSlip();
    });
    await expect(fetch(url).then((answer) => answer.text())).rejects.toThrow();
    await isFine(url);
    expectFaults('request');
  });

  it('[E-03] whose body was read is answered under its id', async () => {
    const noScopes = new ScopeRules({ requiredScopes: [], toolScopes: {} });
    const authorization = new Authorization({ rules: noScopes, resourceMetadata: new Map() });
    const slipping: MessagePolicy<HttpContext> = { createReply: () => createFakeReply(), dispatch: throwSlip };
    const receiver = new MessageReceiver(slipping, { server: { name: 'git' }, authorization, maxDepth: 10 }, 'http');
    const url = await serve((context) => {
      context.sender = { identity: anonymousIdentity, principal: anonymous, forwarded: {} };
      if (context.path === fine) respondWithJson(context.outgoing, 200, '{}');
      else receivePost(context, 1_000, true, receiver);
    });
    const body = '{"jsonrpc":"2.0","id":"seven","method":"ping"}';
    const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    expect([answer.status, await answer.json()]).toMatchObject([500, { id: 'seven', error: { code: -32603 } }]);
    await isFine(url);
    expectFaults('request');
  });

  it('[E-03] that writes after its end harms nobody', async () => {
    const url = await serve(({ outgoing }) => {
      respondWithJson(outgoing, 200, '{}');
      outgoing.write('more');
    });
    await isFine(url);
    expectFaults('request');
  });
});

describe('a session', () => {
  it('[C-09] ends alone as internal when the routing of one line throws', async () => {
    const { open, telemetry } = openSessions();
    const [one, other] = [await open(), await open()];
    const { attribute } = SessionCalls.prototype;
    vi.spyOn(SessionCalls.prototype, 'attribute').mockImplementation(function (this: SessionCalls, ...args) {
      if (args[0].text.includes('poison')) throwSlip();
      return attribute.apply(this, args);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const [hit, spared] = [one.call(1), other.call(1)];
    one.backend.says({ jsonrpc: '2.0', method: 'notifications/poison' }, { jsonrpc: '2.0', id: 1, result: {} });
    other.backend.says({ jsonrpc: '2.0', id: 1, result: { fine: true } });
    expect(await hit.answered()).toMatchObject({ kind: 'fault', reason: 'internal' });
    expect(await spared.answered()).toMatchObject({ kind: 'json' });
    expect(await telemetry.ends.next()).toBe('internal');
    expect(telemetry.failures).toEqual([slip]);
    await vi.waitFor(() => expect(one.backend.isClosed).toBe(true));
    expect(other.backend.isClosed).toBe(false);
  });

  it('[C-09] ends as internal when the last lines of a server that exits throw', async () => {
    const { open, telemetry } = openSessions();
    const { backend, call } = await open();
    const { attribute } = SessionCalls.prototype;
    vi.spyOn(SessionCalls.prototype, 'attribute').mockImplementation(function (this: SessionCalls, ...args) {
      if (args[0].text.includes('poison')) throwSlip();
      return attribute.apply(this, args);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const hit = call(1);
    backend.says({ jsonrpc: '2.0', method: 'notifications/poison' });
    backend.ends();
    expect(await hit.answered()).toMatchObject({ kind: 'fault' });
    await telemetry.ends.next();
    expect(telemetry.failures).toEqual([slip]);
  });
});

describe('a backend', () => {
  function openContained(events: Partial<BackendEvents>, throwing: Partial<Backend> = {}) {
    const ends = createInbox<BackendEnd>();
    const fake = createFakeServer();
    const open = linkBackends((own, options) => Object.assign(fake.open(own, options), throwing), []);
    const all = {
      onMessages: () => undefined,
      onNoise: () => undefined,
      onUnanswered: () => undefined,
      onEnd: (end: BackendEnd) => ends.push(end),
    };
    return { ends, fake, backend: open({ ...all, ...events }) };
  }

  it.each<[string, Partial<BackendEvents>]>([
    ['messages', { onMessages: throwSlip }],
    ['a text that is no message', { onNoise: throwSlip }],
    ['unanswered requests', { onUnanswered: throwSlip }],
    ['a state', { onState: throwSlip }],
  ])('[S-01] ends as failed, once, when what hears of %s throws', async (_, events) => {
    const { ends, fake } = openContained(events);
    fake.backend.says({ jsonrpc: '2.0', method: 'x' }, 'no message');
    fake.backend.leaves([1], 'server_unreachable');
    fake.backend.tells('state');
    expect(await ends.next()).toMatchObject({ reason: 'failed', cause: slip });
    await turn();
    expect([ends.items.length, fake.backend.isClosed]).toEqual([1, true]);
    expectFaults('backend');
  });

  it('[S-01] ends as failed when it throws at a message', async () => {
    const { ends, backend } = openContained({}, { send: throwSlip });
    expect(backend.send(asMessage('{}'))).toBe('ended');
    expect(await ends.next()).toMatchObject({ reason: 'failed' });
    expectFaults('backend');
  });

  it('[S-01] that cannot be opened ends as failed', async () => {
    const ends = createInbox<BackendEnd>();
    const backend = linkBackends(
      throwSlip,
      [],
    )({
      onMessages: () => undefined,
      onNoise: () => undefined,
      onUnanswered: () => undefined,
      onEnd: (end) => ends.push(end),
    });
    expect(await ends.next()).toMatchObject({ reason: 'failed' });
    expect(backend.send(asMessage('{}'))).toBe('ended');
    await backend.close();
    expectFaults('backend');
  });

  it('whose end is heard by what throws has ended', async () => {
    const { fake } = openContained({ onEnd: throwSlip });
    fake.backend.ends();
    await turn();
    expectFaults('backend');
  });
});

describe('a shared process', () => {
  it('[S-01] ends the one call at whose answer something throws, and goes on for the others', async () => {
    const { server, send, shared, observed } = createShared();
    const [hit, spared] = [send(callOf('a')), send(callOf('b'))];
    await observed.next(([what]) => what === 'shared-server-ready');
    const faults: string[] = [];
    Object.assign(hit.answer, { response: throwSlip, fault: (reason: string) => faults.push(reason) });
    const [, first, second] = server.backend.sent.items;
    server.backend.says({ jsonrpc: '2.0', id: first.id, result: {} }, { jsonrpc: '2.0', id: second.id, result: {} });
    expect(faults).toEqual(['internal']);
    expect(await spared.got.next()).toMatchObject({ id: 'b', result: {} });
    expect(server.opened).toHaveLength(1);
    expectFaults('shared_process');
    await shared.drain(0);
  });
});

describe('a listener of the store', () => {
  it('[C-12] that throws is told that it missed something, and the others hear the change', () => {
    const followers = new ChangeSubscribers();
    const heard: string[] = [];
    followers.add('t', { onChange: throwSlip, onMissed: () => void heard.push('missed') });
    followers.add('t', { onChange: (text) => void heard.push(text.toString()), onMissed: () => undefined });
    followers.notify('t', Buffer.from('change'));
    expect(heard).toEqual(['missed', 'change']);
    expectFaults('store');
  });

  it('[C-12] of Redis hears the changes behind one that throws and behind an entry that is none, and an outage is no fault', async () => {
    const entry = (number: number, text: string) => [
      Buffer.from(`${number}-0`),
      ['n', String(number), 'topic', hashedName('t'), 'text', text].map((part) => Buffer.from(part)),
    ];
    const replies: (() => unknown)[] = [
      () => [['s', [entry(1, 'bad'), entry(2, 'good')]]],
      () => {
        throw new StoreUnavailable('unreachable');
      },
      () => [['s', [[Buffer.from('3-0'), null]]]],
      () => [['s', [entry(4, 'last')]]],
    ];
    const access = { run: async () => [], keys: { changes: 'c' } };
    const client = {
      status: 'ready',
      xreadBuffer: async () => (replies.shift() ?? (() => new Promise(() => undefined)))(),
      disconnect: () => undefined,
    };
    type Arguments = Parameters<typeof createRedisChanges>;
    const changes = createRedisChanges(
      access as unknown as Arguments[0],
      () => client as never as ReturnType<Arguments[1]>,
    );
    onTestFinished(() => changes.close());
    const heard = createInbox<string>();
    await changes.subscribe('t', {
      onChange: (text) => (text.toString() === 'bad' ? throwSlip() : heard.push(text.toString())),
      onMissed: () => heard.push('missed'),
    });
    await heard.next((text) => text === 'last');
    expect(heard.items.filter((text) => text !== 'missed')).toEqual(['good', 'last']);
    expect(heard.items).toContain('missed');
    expectFaults('store', 'store');
  });
});

describe('a watcher of the status page', () => {
  it('[C-08] that throws harms no message that passes', () => {
    const flow = new MessageTap(false);
    flow.watch({ owner: { server: 's' }, onMessage: throwSlip });
    flow.passed({ server: 's' }, 'server', asMessage('{"jsonrpc":"2.0","method":"x"}'));
    expectFaults('admin');
  });
});

describe('a timer', () => {
  it('[C-08] of a sweep that throws once runs again', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let runs = 0;
    const sweep = new Sweep(() => {
      runs += 1;
      if (runs === 1) throwSlip();
    });
    sweep.notice(4);
    vi.advanceTimersByTime(2);
    sweep.stop();
    expect(runs).toBe(2);
    expectFaults('background');
  });
});
