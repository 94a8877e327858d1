import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RerunPolicy } from '../../../../src/core/call/rerun.ts';
import type { SharedServerEvent } from '../../../../src/core/ops/shared-server-events.ts';
import type { Era } from '../../../../src/core/protocol/revisions.ts';
import { probeEra } from '../../../../src/features/eras/modern/era-probe.ts';
import { ModernServer } from '../../../../src/features/eras/modern/modern-server.ts';
import { createFakeServer, type FakeBackend, type FakeServer } from '../../../support/fake-backend.ts';
import { discovered } from './shared-fixture.ts';

type Said = Record<string, unknown>;
type OnSend = (message: Said, backend: FakeBackend) => void;

const respond = (backend: FakeBackend, { id }: Said, outcome: object): void =>
  backend.says({ jsonrpc: '2.0', id, ...outcome });
const noSuchMethod = { error: { code: -32601, message: 'x' } };

/** Servers by how they answer what comes before a handshake. */
const answerAsModern: OnSend = (message, backend) => {
  respond(backend, message, message['method'] === 'server/discover' ? { result: discovered } : noSuchMethod);
};
const modern = createServer(answerAsModern);
const legacy = createServer((message, backend) => {
  respond(backend, message, message['method'] === 'initialize' ? { result: {} } : noSuchMethod);
});
const silent = createServer((message, backend) => {
  if (message['method'] === 'initialize') respond(backend, message, { result: {} });
});
const late = createServer((message, backend) => {
  if (message['method'] === 'initialize') respond(backend, message, { result: {} });
  else setTimeout(() => respond(backend, message, { result: discovered }), 4_500);
});
const exiting = createServer((message, backend) => {
  if (message['method'] === 'server/discover') backend.ends();
  else respond(backend, message, { result: {} });
});
const unsupported = { error: { code: -32022, message: 'x', data: { supported: ['2026-07-28'] } } };
const crashing = createServer((_, backend) => backend.ends());
/** The first process crashes whatever it is told, and the others do not. */
const crashedOnce = (next: OnSend) => () => {
  const server = createFakeServer((message, backend) =>
    queueMicrotask(() => (backend === server.opened[0] ? backend.ends() : next(message, backend))),
  );
  return server;
};
const broken = createServer((_, backend) => backend.ends({ reason: 'failed' }));
const refuseAll: OnSend = (message, backend) => respond(backend, message, noSuchMethod);
const mute = createServer(() => undefined);

function createServer(onSend: OnSend): () => FakeServer {
  return () => createFakeServer((message, backend) => queueMicrotask(() => onSend(message, backend)));
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('an era probe', () => {
  it.each<[string, () => FakeServer, number, object, number?]>([
    ['modern one', modern, 0, { era: 'modern' }],
    ['legacy one that refuses', legacy, 0, { era: 'legacy', isDoubtful: false }],
    ['legacy one that ignores unknown requests', silent, 5_000, { era: 'legacy', isDoubtful: false }, 2],
    ['modern one that answers late', late, 4_500, { era: 'modern' }, 2],
    ['legacy one that ends on the probe', exiting, 0, { era: 'legacy', isDoubtful: true }, 2],
    ['modern one that crashed once', crashedOnce(answerAsModern), 0, { era: 'modern' }, 2],
    [
      'modern one that crashed once, and says so when it refuses initialize',
      crashedOnce((message, backend) => respond(backend, message, unsupported)),
      0,
      { era: 'modern' },
      2,
    ],
    ['legacy one that crashed once and refuses all', crashedOnce(refuseAll), 0, { era: 'legacy', isDoubtful: true }, 2],
    ['one that always crashes', crashing, 0, { era: undefined, end: { reason: 'exited' } }, 2],
    ['one that cannot be started', broken, 0, { era: undefined, end: { reason: 'failed' } }],
    ['one that says nothing at all', mute, 20_000, { era: undefined, end: undefined }, 2],
  ])('[R6.05] recognises a server: %s', async (_, create, waitMs, outcome, processes = 1) => {
    const server = create();
    const probe = probeEra({ open: server.open, version: '1', timeoutMs: 20_000 });
    await vi.advanceTimersByTimeAsync(waitMs);
    expect(await probe.outcome).toMatchObject(outcome);
    await probe.close();
    expect(server.opened).toHaveLength(processes);
    expect(server.living).toEqual([]);
  });

  it.each<[string, () => FakeServer, object]>([
    ['modern one', modern, { era: 'modern' }],
    ['one that always crashes', crashing, { era: undefined, end: { reason: 'exited' } }],
  ])('after an end on initialize alone starts only one process of a server: %s', async (_, create, outcome) => {
    const server = create();
    const probe = probeEra({ open: server.open, version: '1', timeoutMs: 9_000, hasEnded: true });
    await vi.advanceTimersByTimeAsync(0);
    expect(await probe.outcome).toMatchObject(outcome);
    await probe.close();
    expect([server.opened.length, server.living]).toEqual([1, []]);
  });

  it('recognises a server that ignores unknown requests within a short time limit, too', async () => {
    const server = silent();
    const probe = probeEra({ open: server.open, version: '1', timeoutMs: 3_000 });
    await vi.advanceTimersByTimeAsync(2_500);
    expect(await probe.outcome).toMatchObject({ era: 'legacy' });
    expect(server.living).toEqual([]);
  });

  it('leaves no process behind if it is closed early', async () => {
    const server = mute();
    const probe = probeEra({ open: server.open, version: '1', timeoutMs: 9_000 });
    await probe.close();
    expect(await probe.outcome).toEqual({ era: undefined, end: undefined });
    expect(server.living).toEqual([]);
  });
});

describe('the era lookup', () => {
  const serverOf = (
    sibling: FakeServer,
    era: Era | 'auto' = 'auto',
    more: { readonly isRemote?: boolean; readonly isOverHttp?: boolean } = {},
  ) => {
    const main = modern();
    const observed: SharedServerEvent[] = [];
    const limits = {
      ...{ maxSharedCalls: 10, maxQueuedBytes: 10_000, graceMs: 1_000 },
      ...{ requestIdleMs: 60_000, requestTotalMs: 60_000 },
    };
    const server = {
      ...{ name: 'fake', digest: '', open: main.open, isRemote: false, startTimeoutMs: 9_000 },
      ...{ onBackendExit: 'restore' as const, reruns: new RerunPolicy(), ...more },
    };
    const parts = {
      server,
      isOverHttp: more.isOverHttp === true,
      era,
      openForProbe: sibling.open,
      version: '1',
      limits,
      emit: (event: SharedServerEvent) => void observed.push(event),
    };
    return { main, observed, modern: new ModernServer(parts) };
  };
  const find = async (server: ModernServer, waitMs = 0) => {
    const found = server.findEra();
    await vi.advanceTimersByTimeAsync(waitMs);
    return found;
  };

  it('[R6.06] [R6.07] probes once, on a process that serves nobody, and remembers the era', async () => {
    const sibling = modern();
    const { main, modern: server, observed } = serverOf(sibling);
    expect(server.era).toBeUndefined();
    expect(await Promise.all([find(server), find(server)])).toEqual(['modern', 'modern']);
    expect(server.era).toBe('modern');
    expect(sibling.opened).toHaveLength(1);
    expect(sibling.living).toEqual([]);
    expect(main.opened).toEqual([]);
    expect(observed).toMatchObject([{ type: 'era-found', era: 'modern' }]);
    await server.drain(0);
  });

  it('[R6.07] probes a server that ended on the probe again after a while, once', async () => {
    const sibling = exiting();
    const { modern: server } = serverOf(sibling);
    expect(await find(server)).toBe('legacy');
    expect(server.era).toBe('legacy');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.era).toBeUndefined();
    await find(server);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.era).toBe('legacy');
    expect(sibling.opened).toHaveLength(4);
    await server.drain(0);
  });

  it('[R6.07] learns no era from a crash', async () => {
    const crashes = crashing();
    const { modern: server, observed } = serverOf(crashes);
    expect(await find(server)).toBe('server_start_failed');
    expect(server.era).toBeUndefined();
    expect(observed).toMatchObject([{ type: 'shared-start-failed', end: { reason: 'exited' }, isByProbe: false }]);
    await server.drain(0);
  });

  it.each([
    ['alone', false],
    ['and a client', true],
  ])('reports a failed start as a health probe’s only if no client waits: health probe %s', async (_, joins) => {
    const { modern: server, observed } = serverOf(crashing());
    const found = server.findEra(undefined, undefined, true);
    if (joins) void server.findEra();
    await vi.advanceTimersByTimeAsync(0);
    expect(await found).toBe('server_start_failed');
    expect(observed).toMatchObject([{ type: 'shared-start-failed', end: { reason: 'exited' }, isByProbe: !joins }]);
    await server.drain(0);
  });

  it('probes a server that ended for a session once, and leaves the report of the end to the session', async () => {
    const crashes = crashing();
    const { modern: server, observed } = serverOf(crashes);
    const found = server.findEra(undefined, 'end');
    await vi.advanceTimersByTimeAsync(0);
    expect(await found).toBe('server_start_failed');
    expect([crashes.opened.length, observed]).toEqual([1, []]);
    await server.drain(0);
  });

  it('[R6.07] probes a remote server again after a while, and keeps its era while the server is away', async () => {
    let isAway = false;
    const sibling = createFakeServer((message, backend) =>
      queueMicrotask(() => {
        if (isAway) backend.ends({ reason: 'failed' });
        else respond(backend, message, noSuchMethod);
      }),
    );
    const { modern: server, observed } = serverOf(sibling, 'auto', { isRemote: true });
    for (const away of [false, true, false]) {
      isAway = away;
      expect(server.era).toBeUndefined();
      expect(await find(server)).toBe('legacy');
      await vi.advanceTimersByTimeAsync(60_000);
    }
    expect(observed.map(({ type }) => type)).toEqual(['era-found', 'shared-start-failed']);
    await server.drain(0);
  });

  it('[R6.07] believes a bare refusal or a failure of a server at a URL for seconds only', async () => {
    const ends = [{ isOtherTransport: true }, { isOtherTransport: false }];
    const sibling = createServer((message, backend) => {
      const end = ends.shift();
      if (end === undefined) answerAsModern(message, backend);
      else backend.ends({ reason: 'failed', ...end });
    })();
    const { modern: server } = serverOf(sibling, 'auto', { isRemote: true, isOverHttp: true });
    expect(await find(server)).toBe('legacy');
    await vi.advanceTimersByTimeAsync(4_999);
    expect(server.era).toBe('legacy');
    await vi.advanceTimersByTimeAsync(1);
    expect(await find(server)).toBe('legacy');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await find(server)).toBe('modern');

    ends.push({ isOtherTransport: false });
    const { modern: other } = serverOf(sibling, 'auto', { isRemote: true, isOverHttp: true });
    expect([await find(other), await find(other)]).toEqual(['server_start_failed', 'server_start_failed']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await find(other)).toBe('modern');
    await Promise.all([server.drain(0), other.drain(0)]);
  });

  it.each([
    ['legacy by a bare refusal', true],
    ['unknown by a failure', false],
  ])(
    '[R9.11b] probes a server whose era is %s again when the server answers like a modern one',
    async (_, isOtherTransport) => {
      const sibling = createServer((message, backend) => {
        if (backend === sibling.opened[0]) backend.ends({ reason: 'failed', isOtherTransport });
        else answerAsModern(message, backend);
      })();
      const { modern: server } = serverOf(sibling, 'auto', { isRemote: true, isOverHttp: true });
      await find(server);
      const found = server.findEra({}, 'modern');
      await vi.advanceTimersByTimeAsync(0);
      expect(await found).toBe('modern');
      await server.drain(0);
    },
  );

  it('finds no era of a server that does not start, and does not start it again at once', async () => {
    const sibling = broken();
    const { modern: server, observed } = serverOf(sibling);
    expect([await find(server), await find(server)]).toEqual(['server_start_failed', 'server_start_failed']);
    expect(sibling.opened).toHaveLength(1);
    expect(observed).toMatchObject([{ type: 'shared-start-failed', end: { reason: 'failed' }, isByProbe: false }]);
    await vi.advanceTimersByTimeAsync(5_000);
    await find(server);
    expect(sibling.opened).toHaveLength(2);
    expect(await find(serverOf(mute()).modern, 9_000)).toBe('server_start_timeout');
    await server.drain(0);
  });

  it.each(['legacy', 'modern'] as const)('does not probe a server that is configured as %s', async (era) => {
    const sibling = mute();
    const { modern: server, main } = serverOf(sibling, era);
    expect(server.era).toBe(era);
    server.start();
    await vi.advanceTimersByTimeAsync(0);
    expect(main.opened).toHaveLength(era === 'modern' ? 1 : 0);
    expect(sibling.opened).toEqual([]);
    await server.drain(0);
    expect(main.living).toEqual([]);
  });

  it('ends a running probe in a drain', async () => {
    const sibling = mute();
    const { modern: server } = serverOf(sibling);
    const found = server.findEra();
    await server.drain(0);
    expect(await found).toBe('server_start_timeout');
    expect(sibling.living).toEqual([]);
  });
});
