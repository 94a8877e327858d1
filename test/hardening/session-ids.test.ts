import { afterEach, describe, expect, it } from 'vitest';
import type { BackendEvents } from '../../src/core/backend/backend.ts';
import { RerunPolicy } from '../../src/core/call/rerun.ts';
import { readBody } from '../../src/core/protocol/message/message.ts';
import { Sessions } from '../../src/core/registry/sessions.ts';
import type { Reply } from '../../src/core/reply/reply.ts';
import { Session } from '../../src/core/session/session.ts';
import { keyFromId } from '../../src/core/session/session-key.ts';
import { createMemoryStore } from '../../src/core/store/memory/memory-store.ts';
import { silentTelemetry } from '../core/session/session-fixture.ts';
import { asMessage } from '../support/as-message.ts';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { initialize, open } from '../support/http-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { withDeadline } from '../support/wait-for.ts';

const principal = { issuer: '', subject: '', client: '' };
const [initializing] = (() => {
  const text =
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}';
  const body = readBody(Buffer.from(text), 100);
  return body.ok ? body.messages.map((read) => (read.ok ? read.message : undefined)) : [];
})();

/** A server that answers `initialize` at once, without a process. */
const server = {
  name: 'instant',
  digest: 'd',
  startTimeoutMs: 60_000,
  isRemote: false,
  onBackendExit: 'end' as const,
  reruns: new RerunPolicy(),
  open: (events: BackendEvents) => ({
    pid: undefined,
    send() {
      const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };
      queueMicrotask(() => events.onMessages([asMessage({ jsonrpc: '2.0', id: 0, result })]));
      return 'sent' as const;
    },
    pause: () => undefined,
    resume: () => undefined,
    async close() {
      queueMicrotask(() => events.onEnd({ reason: 'closed', detail: 'closed' }));
    },
  }),
};

const nobody = () => undefined;

describe('session ids of one instance', () => {
  const store = createMemoryStore({ maxEvents: 10, maxBytes: 10_000, maxAgeMs: 60_000 });
  const sessions = new Sessions({
    store,
    telemetry: silentTelemetry,
    maxSessions: 20_000,
    recordTtlMs: 2 ** 30,
    sessionIdleMs: 600_000,
    abandonedMs: 600_000,
    connections: { store, maxEventBytes: 10_000 },
    streamAfterMs: 60_000,
    commitAfterMs: 60_000,
    requestIdleMs: 600_000,
    requestTotalMs: 600_000,
    maxCalls: 10,
    maxSharedCalls: 10,
    maxQueuedBytes: 10_000,
    graceMs: 1_000,
    reconnectDelayMs: 1_000,
    maxAgeMs: 60_000,
    slowReaderMs: 1_000,
    maxEventBytes: 10_000,
    logLimits: { maxEvents: 10, maxBytes: 10_000 },
    storeWaitMs: 1_000,
  });
  afterEach(async () => {
    await sessions.drain(0);
    await store.close();
  });

  function openOne(): Promise<string> {
    return new Promise((resolve, reject) => {
      const reply: Reply = {
        request: { accepts: { json: true, sse: false } },
        isGone: false,
        onGone: nobody,
        answer: (answer) => {
          if (answer.kind === 'json') resolve(answer.headers?.['mcp-session-id'] ?? '');
          else reject(new Error(answer.kind === 'fault' ? answer.reason : answer.kind));
        },
        stream: () => {
          throw new Error('a stream');
        },
      };
      if (initializing === undefined) throw new Error('initialize was not read');
      sessions.open(server, principal, initializing, reply);
    });
  }

  it('[S01] [R7.19] are visible ASCII, all different, with 128 random bits or more', async () => {
    const count = 10_000;
    const ids = await withDeadline(Promise.all(Array.from({ length: count }, openOne)), { deadlineMs: 30_000 });
    expect(sessions.all.length).toBe(count);
    expect(new Set(ids).size).toBe(count);
    for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]{22,128}$/);
    expect(new Set(ids.map((id) => id.length)).size).toBe(1);

    // Each bit is set in half of them, within six standard deviations (one false alarm in two million runs).
    const bytes = ids.map((id) => Buffer.from(id, 'base64url'));
    const bits = (bytes[0] as Buffer).length * 8;
    expect(bits).toBeGreaterThanOrEqual(128);
    const ones = Array.from(
      { length: bits },
      (_, bit) => bytes.filter((id) => ((id[bit >> 3] as number) >> (bit & 7)) & 1).length,
    );
    const fair = ones.filter((n) => Math.abs(n - count / 2) < 6 * Math.sqrt(count / 4));
    expect(fair.length).toBeGreaterThanOrEqual(128);
    // And no bit follows from its neighbour or from the id before.
    for (const next of [1, 8]) {
      const same = bytes.map((id) => (bitOf(id, 3) === bitOf(id, 3 + next) ? 1 : 0) as number).reduce((a, b) => a + b);
      expect(Math.abs(same - count / 2)).toBeLessThan(6 * Math.sqrt(count / 4));
    }
    const followed = bytes.filter(
      (id, index) => index > 0 && bitOf(id, 0) === bitOf(bytes[index - 1] as Buffer, 0),
    ).length;
    expect(Math.abs(followed - count / 2)).toBeLessThan(6 * Math.sqrt(count / 4));

    // Each opens its own session, for its server and its principal alone.
    const [first = ''] = ids;
    const at = ids.map((id) => sessions.anywhere({ key: keyFromId(id), server, principal }));
    expect(at.filter((session) => session instanceof Session)).toHaveLength(count);
    expect(new Set(at).size).toBe(count);
    expect(sessions.anywhere({ key: first, server: { ...server, name: 'other' }, principal })).toBe('unknown_session');
    for (const other of [
      { ...principal, issuer: 'x' },
      { ...principal, subject: 'x' },
      { ...principal, client: 'x' },
    ]) {
      expect(sessions.anywhere({ key: first, server, principal: other })).toBe('unknown_session');
    }
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'size', '']) {
      expect(sessions.anywhere({ key: name, server, principal })).toBe('unknown_session');
    }
  });
});

const bitOf = (id: Buffer, bit: number): number => ((id[bit >> 3] as number) >> (bit & 7)) & 1;

describe('what the gateway writes at info', () => {
  it('[S01] [S14] holds no session id, token, params, result, stderr, header or query', async () => {
    const gateway = await startGateway({ args: ['--defaults.onExit', 'end'], command: everythingFixture });
    const canaries: string[] = [];
    const canary = (what: string) => {
      const text = `canary-${what}-4711`;
      canaries.push(text);
      return text;
    };
    const headers = {
      Authorization: `Bearer ${canary('token')}`,
      Cookie: canary('cookie'),
      'User-Agent': canary('agent'),
      'X-Forwarded-For': canary('forwarded'),
    };
    const url = `${gateway.url}?access_token=${canary('query')}`;
    const session = await initialize(url, { headers });
    canaries.push(session.id);
    await session.request(
      'tools/call',
      { name: 'echo', arguments: { message: canary('params') }, _meta: { progressToken: canary('progress') } },
      { id: canary('id') },
    );
    await session.request(canary('method'), { a: canary('unknown-params') });
    await session.notify(canary('notification'), { b: canary('notified') });
    await session.respond(canary('response'), { c: canary('result') });
    await (await session.getStream(canary('event-id'))).answer();
    await (await session.send(`not JSON ${canary('not-json')}`)).answer();
    await (await session.send({ jsonrpc: '2.0', id: { x: canary('bad-id') }, method: 'ping' })).answer();
    await (
      await session.send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { 'Mcp-Session-Id': canary('unknown-session') })
    ).answer();
    await (
      await session.send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { Origin: 'https://refused.example' })
    ).answer();
    await (await open(`${gateway.baseUrl}/${canary('path')}`, { body: '{}' })).answer();
    // The server says things that nobody can use, and ends in the middle of a call.
    const raw = {
      name: 'raw_write',
      arguments: {
        text: `noise ${canary('noise')}\n{"jsonrpc":"2.0","id":"${canary('unknown-response')}","result":{}}\n`,
      },
    };
    await session.request('tools/call', raw, { id: 7 });
    const [child] = await waitForDescendants(gateway.pid, 1);
    process.kill(child?.pid as number, 'SIGKILL');
    await waitForDescendants(gateway.pid, 0);
    const deleted = await initialize(url, { headers });
    canaries.push(deleted.id);
    await deleted.delete();
    await gateway.stop();

    const written = gateway.stdout() + gateway.stderr();
    expect(gateway.logs().filter(({ msg }) => msg === 'session started').length).toBe(2);
    expect(gateway.logs().filter(({ msg }) => msg === 'session ended').length).toBe(2);
    expect(canaries.filter((text) => written.includes(text))).toEqual([]);
    expect(written).not.toContain('canary');
    expect(written).not.toContain('\n    at '); // no stack
  });

  it('[S01] an id is in a header only: never in a URL, a body or an event', async () => {
    const gateway = await startGateway({ command: everythingFixture });
    const session = await initialize(gateway.url);
    const answers = [
      await session.request('tools/list'),
      await session.request('tools/call', { name: 'echo', arguments: { message: 'x' } }),
      await (await session.getStream('1.1-1')).answer(),
      await (await session.send('{')).answer(),
      await session.delete(),
      await session.delete(),
    ];
    for (const { text } of answers) expect(text).not.toContain(session.id);
    for (const { headers } of answers) expect(headers['mcp-session-id']).toBeUndefined();
  });
});
